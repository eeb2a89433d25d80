"""Answers requests about Delta tables, one JSON line each, with delta-rs and DuckDB. Started by the Go package beside it."""
import datetime, decimal, importlib.resources, json, math, os, sys, traceback

import deltalake, duckdb
import pyarrow as pa


def plain(v):
    """Turns a value into one that JSON holds exactly; see Row in readers.go."""
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        if math.isnan(v):
            return "NaN"
        if math.isinf(v):
            return "Infinity" if v > 0 else "-Infinity"
        return v
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, datetime.datetime):
        zone = ""
        if v.tzinfo is not None:
            v, zone = v.astimezone(datetime.timezone.utc).replace(tzinfo=None), "Z"
        return v.isoformat(timespec="microseconds") + zone
    if isinstance(v, (datetime.date, datetime.time)):
        return v.isoformat()
    if isinstance(v, (bytes, bytearray)):
        return bytes(v).hex()
    if isinstance(v, dict):
        return {str(k): plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple, set)):
        return [plain(x) for x in v]
    return str(v)


def arrow_rows(result):
    result = result.read_all() if hasattr(result, "read_all") else result
    return pa.table(result).to_pylist()


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
    folder = os.path.join(sys.prefix, "duckdb-extensions")
    os.makedirs(folder, exist_ok=True)
    c = duckdb.connect(config={"extension_directory": folder, "autoinstall_known_extensions": "false"})
    extension = (importlib.resources.files("duckdb_extension_delta") / "extensions" / ("v" + duckdb.__version__)
                 / "delta.duckdb_extension")
    c.execute("INSTALL '%s'" % extension)
    c.execute("LOAD delta")
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


def main():
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not mix with the replies
    handlers = {"deltaRS": delta_rs, "duckDB": duck_db, "python": python, "ping": lambda request: "pong"}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": plain(handlers[request["op"]](request))}
        except BaseException as e:
            traceback.print_exc()
            reply = {"error": "%s: %s" % (type(e).__name__, e)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


main()
