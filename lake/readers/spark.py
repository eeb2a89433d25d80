# Spark with Delta's own implementation, one session for all requests. Behind pyenv's serve.py; the argument is the folder with Delta's jars, the
# second one a folder for Spark's scratch files.
import glob

from pyspark.sql import SparkSession

jars, work = sys.argv[1:3]
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
spark = (SparkSession.builder.master("local[2]").appName("readers")
         .config("spark.jars", ",".join(sorted(glob.glob(os.path.join(jars, "*.jar")))))
         .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
         .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
         .config("spark.driver.memory", "1200m").config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
         .config("spark.sql.shuffle.partitions", "1").config("spark.databricks.delta.snapshotPartitions", "1")
         .config("spark.default.parallelism", "1").config("spark.sql.session.timeZone", "UTC")
         .config("spark.local.dir", work).config("spark.sql.warehouse.dir", os.path.join(work, "warehouse"))
         .config("spark.driver.extraJavaOptions", "-Dderby.system.home=" + work + " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
         .getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
java = spark._jvm.scala.jdk.javaapi.CollectionConverters


def snapshot(table, version):
    # The schema as Spark shows it hides some of Delta's own field metadata: the snapshot has it.
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table)
    none = spark._jvm.scala.Option.empty()
    return log.update(False, none, none) if version is None else log.getSnapshotAt(version, none, none, False)


def read(request):
    table, version = request["table"], request.get("version")
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    frame = reader.load(table)
    if request.get("sql"):  # and nothing else: each answer of Spark's takes its time
        frame.createOrReplaceTempView("t")
        return {"rows": arrow_rows(spark.sql(request["sql"]).toArrow())}
    s = snapshot(table, version)
    metadata, protocol = s.metadata(), s.protocol()
    transactions = {x.appId(): x.version() for x in java.asJava(s.setTransactions())}
    return {
        "version": s.version(), "name": metadata.name() or "", "description": metadata.description() or "",
        "schema": json.loads(metadata.schemaString()), "partitionColumns": list(java.asJava(metadata.partitionColumns())),
        "configuration": dict(java.asJava(metadata.configuration())),
        "minReader": protocol.minReaderVersion(), "minWriter": protocol.minWriterVersion(),
        "features": sorted(java.asJava(protocol.readerAndWriterFeatureNames())) if protocol.minWriterVersion() >= 7 else [],
        "files": s.numOfFiles(), "count": frame.count(),
        "txn": {app: transactions[app] for app in request.get("txns") or [] if app in transactions},
        "history": [{"version": h["version"], "operation": h["operation"], "operationMetrics": h["operationMetrics"], "engineInfo": h["engineInfo"]}
                    for h in spark.sql("DESCRIBE HISTORY delta.`%s`" % table).collect()],
    }


def python(request):
    scope = {"table": request["table"], "spark": spark, "out": None}
    exec(request["program"], scope)
    return scope["out"]


serve({"spark": read, "python": python})
