"""Answers requests, one JSON line each. The Go package beside it starts this text with a program behind it, which defines the handlers
and ends with serve(handlers)."""
import datetime, decimal, json, math, os, sys, traceback


def plain(v):
    """Turns a value into one that JSON holds exactly: bytes in hexadecimal, times in ISO 8601 with microseconds, floats beyond JSON as words."""
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
    import pyarrow as pa
    result = result.read_all() if hasattr(result, "read_all") else result
    return pa.table(result).to_pylist()


def serve(handlers):
    """Answers until the end of the input."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not mix with the replies
    handlers = {"ping": lambda request: "pong"} | handlers
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"result": plain(handlers[request["op"]](request))}
        except BaseException as e:
            traceback.print_exc()
            reply = {"error": "%s: %s" % (type(e).__name__, e)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
