# Readers and writers in the process: delta-rs and DuckDB. Behind pyenv's serve.py.
import importlib.resources

import deltalake, duckdb
import pyarrow as pa


def delta_rs(request):
    table = deltalake.DeltaTable(request["table"], version=request.get("version"))
    metadata, protocol = table.metadata(), table.protocol()
    query = deltalake.QueryBuilder().register("t", table)
    out = {
        "version": table.version(),
        "name": metadata.name or "",
        "description": metadata.description or "",
        "schema": json.loads(table.schema().to_json()),
        "partitionColumns": metadata.partition_columns,
        "configuration": metadata.configuration,
        "minReader": protocol.min_reader_version,
        "minWriter": protocol.min_writer_version,
        "features": sorted(set(protocol.reader_features or []) | set(protocol.writer_features or [])),
        "files": len(table.file_uris()),
        "count": arrow_rows(query.execute("select count(*) as n from t"))[0]["n"],
        "history": table.history(),
        "txn": {},
    }
    for app in request.get("txns") or []:
        version = table.transaction_version(app)
        if version is not None:
            out["txn"][app] = version
    if request.get("sql"):
        out["rows"] = arrow_rows(query.execute(request["sql"]))
    return out


def duck_connection():
    c = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    extension = (importlib.resources.files("duckdb_extension_delta") / "extensions" / ("v" + duckdb.__version__)
                 / "delta.duckdb_extension")
    c.execute("LOAD '%s'" % extension)  # from the package: nothing is installed where other processes may do the same
    c.execute("SET TimeZone='UTC'")
    return c


def duck_db(request):
    with duck_connection() as c:
        c.execute("CREATE TEMP VIEW t AS SELECT * FROM delta_scan('%s')" % request["table"].replace("'", "''"))
        columns = [{"name": d[0], "type": d[1]} for d in c.execute("DESCRIBE " + request["sql"]).fetchall()]
        rows = arrow_rows(c.execute(request["sql"]).to_arrow_table())
    return {"columns": columns, "rows": rows}


def python(request):
    scope = {"table": request["table"], "deltalake": deltalake, "duckdb": duckdb, "pa": pa, "out": None}
    exec(request["program"], scope)
    return scope["out"]


serve({"deltaRS": delta_rs, "duckDB": duck_db, "python": python})
