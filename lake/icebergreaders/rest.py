"""A small Iceberg REST catalog for tests, on loopback: the REST protocol in front of PyIceberg's SQL catalog, which checks and applies
requirements and updates. Namespaces, tables, loads and commits of one table at a time; no views, no authentication.
Arguments: folder (of rest.db and the warehouse wh). The first line of its output is the URL. It ends at the end of its input.
POST /test/fail?n=N&code=C&after=0|1 fails the next N commits with code C, after=1: once they are done; code 0 drops the connection."""
import json, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlparse

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (CommitFailedException, NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError,
                                  NoSuchTableError, TableAlreadyExistsError)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder

folder = os.path.abspath(sys.argv[1])
catalog = SqlCatalog("rest", uri="sqlite:///" + folder + "/rest.db", warehouse="file://" + folder + "/wh")
lock = threading.Lock()
fault = {"n": 0, "code": 503, "after": 0}
codes = [(NoSuchTableError, 404), (NoSuchNamespaceError, 404), (TableAlreadyExistsError, 409), (NamespaceAlreadyExistsError, 409),
         (NamespaceNotEmptyError, 409), (CommitFailedException, 409), (ValueError, 400), (NotImplementedError, 406)]


class Dropped(Exception):
    pass


def error(code, text):
    return code, {"error": {"message": text, "type": "Error", "code": code}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def handle_any(self):
        n = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(n) or b"{}") if n else {}
        try:
            with lock:
                code, answer = self.route(body)
        except Dropped:
            self.close_connection = True
            return
        except Exception as e:
            code, answer = error(next((c for k, c in codes if isinstance(e, k)), 500), str(e))
        data = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_HEAD = handle_any

    def load(self, t):
        return {"metadata-location": t.metadata_location, "metadata": json.loads(t.metadata.model_dump_json()), "config": {}}

    def route(self, body):
        url = urlparse(self.path)
        path, query, method = [unquote(x) for x in url.path.strip("/").split("/")], parse_qs(url.query), self.command
        if path[:2] == ["test", "fail"]:
            fault.update({k: int(query[k][0]) for k in query})
            return 200, fault
        if path == ["v1", "config"]:
            return 200, {"defaults": {}, "overrides": {}}
        if path[:2] != ["v1", "namespaces"]:
            return error(404, "no route")
        path = path[2:]
        if not path:
            if method == "POST":
                catalog.create_namespace(tuple(body["namespace"]), body.get("properties") or {})
                return 200, {"namespace": body["namespace"], "properties": body.get("properties") or {}}
            return 200, {"namespaces": [list(x) for x in catalog.list_namespaces(())]}
        namespace = tuple(path[0].split("\x1f"))
        if len(path) == 1:
            return (204 if method == "HEAD" else 200), {"namespace": list(namespace), "properties": dict(catalog.load_namespace_properties(namespace))}
        if len(path) == 2:
            return self.create(namespace, body)
        name = namespace + (path[2],)
        if method == "DELETE":
            catalog.drop_table(name)
            return 204, None
        if method != "POST":
            t = catalog.load_table(name)
            return (204, None) if method == "HEAD" else (200, self.load(t))
        return self.commit(name, body)

    def create(self, namespace, body):
        if body.get("stage-create"):
            raise NotImplementedError("stage-create")
        t = catalog.create_table(
            namespace + (body["name"],), schema=Schema.model_validate(body["schema"]), location=body.get("location"),
            properties=body.get("properties") or {},
            partition_spec=PartitionSpec.model_validate(body["partition-spec"]) if body.get("partition-spec") else UNPARTITIONED_PARTITION_SPEC,
            sort_order=SortOrder.model_validate(body["write-order"]) if body.get("write-order") else UNSORTED_SORT_ORDER)
        return 200, self.load(t)

    def commit(self, name, body):
        failing = fault["n"] > 0
        if failing:
            fault["n"] -= 1
        if failing and not fault["after"]:
            return self.fail()
        request = CommitTableRequest.model_validate({"identifier": {"namespace": list(name[:-1]), "name": name[-1]},
                                                     "requirements": body["requirements"], "updates": body["updates"]})
        done = catalog.commit_table(catalog.load_table(name), request.requirements, request.updates)
        if failing:
            return self.fail()
        return 200, {"metadata-location": done.metadata_location, "metadata": json.loads(done.metadata.model_dump_json())}

    def fail(self):
        if fault["code"] == 0:
            raise Dropped()
        return error(fault["code"], "injected")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print("http://127.0.0.1:%d" % server.server_address[1], flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
server.serve_forever()
