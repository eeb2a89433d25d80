"""Answers requests about Iceberg tables, one JSON line each, with PyIceberg and DuckDB. Started by the Go package beside it."""
import datetime, decimal, importlib.resources, json, os, sys, tempfile, traceback

import duckdb
import pyarrow as pa
from pyiceberg.catalog import load_catalog

# Answers have a channel of their own: what libraries print (DuckDB a progress bar) must not come between them.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

_duck = None


def duck():
    global _duck
    if _duck is None:
        folder = tempfile.mkdtemp()
        _duck = duckdb.connect(config={"extension_directory": folder, "autoinstall_known_extensions": "false"})
        for name in ("avro", "iceberg"):
            file = importlib.resources.files("duckdb_extension_" + name) / "extensions" / ("v" + duckdb.__version__) / (name + ".duckdb_extension")
            _duck.execute("INSTALL '%s'" % file)
            _duck.execute("LOAD " + name)
        _duck.execute("SET TimeZone = 'UTC'")
    return _duck


def plain(v):
    if v is None or isinstance(v, (bool, int, str, float)):
        return v
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, datetime.datetime):
        if v.tzinfo is not None:
            return v.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        return v.isoformat(timespec="microseconds")
    if isinstance(v, (datetime.date, datetime.time)):
        return v.isoformat()
    if isinstance(v, (bytes, bytearray)):
        return bytes(v).hex()
    if isinstance(v, dict):
        return {str(k): plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple, set)):
        return [plain(x) for x in v]
    return str(v)


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
    return plain(scan.to_arrow().to_pylist())


def duckdb_query(request):
    t = load(request).load_table(request["table"])
    source = "iceberg_scan('%s')" % t.metadata_location.removeprefix("file://")
    cursor = duck().execute("WITH t AS (SELECT * FROM %s) %s" % (source, request["sql"]))
    names = [d[0] for d in cursor.description]
    return plain([dict(zip(names, r)) for r in cursor.fetchall()])


def python(request):
    catalog = load(request)
    scope = {"catalog": catalog, "table": catalog.load_table(request["table"]), "pa": pa, "datetime": datetime, "out": None}
    exec(request["program"], scope)
    return plain(scope["out"])


operations = {"ping": lambda r: True, "table": table, "rows": rows, "duckDB": duckdb_query, "python": python}

for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = {"result": operations[request["op"]](request)}
    except Exception:
        answer = {"error": traceback.format_exc(limit=-4)}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
