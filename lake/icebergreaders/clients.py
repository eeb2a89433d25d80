# Readers and writers of Iceberg tables in the process: PyIceberg and DuckDB. Behind pyenv's serve.py.
import importlib.resources

import duckdb
import pyarrow as pa
from pyiceberg.catalog import load_catalog

_duck = None


def duck():
    global _duck
    if _duck is None:
        _duck = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        for name in ("avro", "iceberg"):
            file = importlib.resources.files("duckdb_extension_" + name) / "extensions" / ("v" + duckdb.__version__) / (name + ".duckdb_extension")
            _duck.execute("LOAD '%s'" % file)  # from the package: nothing is installed where other processes may do the same
        _duck.execute("SET TimeZone = 'UTC'")
    return _duck


def load(request):
    return load_catalog(request["catalog"]["name"], **request["catalog"]["properties"])


def table(request):
    t = load(request).load_table(request["table"])
    return {
        "location": t.location(),
        "metadata": t.metadata_location,
        "properties": dict(t.properties),
        "columns": [{"id": f.field_id, "name": f.name, "type": str(f.field_type), "required": f.required, "doc": f.doc or ""} for f in t.schema().fields],
        "spec": [{"name": f.name, "transform": str(f.transform)} for f in t.spec().fields],
        "snapshots": [{"id": s.snapshot_id, "operation": s.summary.operation.value, "summary": dict(s.summary.additional_properties)} for s in t.snapshots()],
        "files": len(t.inspect.files()) if t.current_snapshot() else 0,
    }


def rows(request):
    t = load(request).load_table(request["table"])
    scan = t.scan(row_filter=request["filter"]) if request.get("filter") else t.scan()
    return arrow_rows(scan.to_arrow())


def duckdb_query(request):
    t = load(request).load_table(request["table"])
    source = "iceberg_scan('%s')" % t.metadata_location.removeprefix("file://")
    cursor = duck().execute("WITH t AS (SELECT * FROM %s) %s" % (source, request["sql"]))
    names = [d[0] for d in cursor.description]
    return [dict(zip(names, r)) for r in cursor.fetchall()]


def python(request):
    catalog = load(request)
    scope = {"catalog": catalog, "table": catalog.load_table(request["table"]), "pa": pa, "datetime": datetime, "out": None}
    exec(request["program"], scope)
    return scope["out"]


serve({"table": table, "rows": rows, "duckDB": duckdb_query, "python": python})
