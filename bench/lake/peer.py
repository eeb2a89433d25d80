"""One run of delta-rs, as one child process of the benchmark beside it: reads the same events, lands them with deltalake, and prints
the result. Durable like a sink's commit: the data file, the log's entry and both folders are synced after each commit, which delta-rs
leaves to the operating system; what it takes without that is told apart."""
import argparse, gc, io, json, os, resource, struct, time

import fastavro
import pyarrow as pa
import deltalake
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake

TEXTS = ["event_id", "order_id", "customer_id", "status", "currency"]
TIME = pa.timestamp("us", tz="UTC")
SCHEMA = pa.schema([(n, pa.string()) for n in TEXTS] + [("amount", pa.float64()), ("quantity", pa.int32()), ("event_time", TIME),
                    ("ingest_time", TIME), ("kafka_offset", pa.int64())])


def read_events(path, most):
    events = []
    with open(path, "rb") as f:
        while len(events) < most and (length := f.read(4)):
            events.append(f.read(struct.unpack("<I", length)[0]))
    return events


def decoder(schema):
    parsed = fastavro.parse_schema(json.loads(schema))

    def decode(events):
        rows = [fastavro.schemaless_reader(io.BytesIO(e[5:]), parsed) for e in events]
        return pa.Table.from_arrays([pa.array([r[f.name] for r in rows], f.type) for f in SCHEMA], schema=SCHEMA)
    return decode


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def rss(field="VmRSS:"):
    for line in open("/proc/self/status"):
        if line.startswith(field):
            return int(line.split()[1]) // 1024


def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


class Lander:
    def __init__(self, folder):
        DeltaTable.create(folder, schema=deltalake.Schema.from_arrow(SCHEMA))
        self.folder, self.table = folder, DeltaTable(folder)
        self.written, self.synced, self.next = [], [], 0
        self.properties = WriterProperties(compression="ZSTD", compression_level=1)

    def commit(self, batch):
        self.next += batch.num_rows
        began = time.perf_counter()
        write_deltalake(self.table, batch, mode="append", writer_properties=self.properties,
                        commit_properties=CommitProperties(app_transactions=[Transaction("bench", self.next)]))
        written = time.perf_counter()
        entry = os.path.join(self.folder, "_delta_log", "%020d.json" % self.table.version())
        files = [json.loads(line)["add"]["path"] for line in open(entry) if '"add"' in line]
        began_sync = time.perf_counter()
        for name in files:
            sync(os.path.join(self.folder, name))
        for path in (self.folder, entry, os.path.dirname(entry)):
            sync(path)
        done = time.perf_counter()
        self.written.append((written - began) * 1000)
        self.synced.append((written - began + done - began_sync) * 1000)

    def check(self, rows):
        table = DeltaTable(self.folder)
        if table.transaction_version("bench") != rows:
            raise SystemExit("delta-rs shows progress %s, not %d" % (table.transaction_version("bench"), rows))


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def main():
    a = argparse.ArgumentParser()
    for name in ("part", "dir", "input", "schema"):
        a.add_argument("--" + name, default="")
    a.add_argument("--rows", type=int, default=0)
    a.add_argument("--commits", type=int, default=0)
    a = a.parse_args()
    result = {"version": deltalake.__version__}
    if a.part == "open":
        began = time.perf_counter()
        table = DeltaTable(a.dir)
        table.transaction_version("bench")
        result["open_ms"] = (time.perf_counter() - began) * 1000
        assert table.version() == a.commits, table.version()
    elif a.part == "compact":
        began, used = time.perf_counter(), cpu()
        metrics = DeltaTable(a.dir).optimize.compact(target_size=128 << 20)
        took, used = time.perf_counter() - began, cpu() - used
        table = DeltaTable(a.dir)
        rows = pa.table(deltalake.QueryBuilder().register("t", table).execute("select count(*) as n from t").read_all()).to_pylist()[0]["n"]
        result.update({"files_before": metrics["numFilesRemoved"], "files_after": len(table.file_uris()), "rec_per_s": rows / took,
                       "cpu_us_per_rec": used * 1e6 / rows, "rss_peak_mb": rss("VmHWM:")})
    else:
        decode = decoder(a.schema)
        events = read_events(a.input, a.rows if a.part == "commits" else 1 << 60)
        batches = [events[i:i + a.rows] for i in range(0, len(events), a.rows)]
        if a.part == "columns":
            batches = [decode(b) for b in batches]
        elif a.part == "commits":
            batches = [decode(batches[0])] * a.commits
        lander = Lander(a.dir)
        gc.collect()
        began, used = time.perf_counter(), cpu()
        for batch in batches:
            lander.commit(decode(batch) if a.part == "avro" else batch)
        elapsed, used = time.perf_counter() - began, cpu() - used
        n = lander.next
        lander.check(n)
        result.update({"records": n, "elapsed_s": elapsed, "rec_per_s": n / elapsed, "cpu_us_per_rec": used * 1e6 / n, "cpu_s": used,
                       "commit_ms_p50": median(lander.synced[:500]), "unsynced_commit_ms_p50": median(lander.written[:500]),
                       "rss_mb": rss(), "rss_peak_mb": rss("VmHWM:"), "load1": float(open("/proc/loadavg").read().split()[0])})
    print("RESULT " + json.dumps(result), flush=True)


main()
