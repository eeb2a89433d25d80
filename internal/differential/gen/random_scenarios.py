#!/usr/bin/env python3
"""Random scenarios: random_scenarios.py SEED COUNT FOLDER [FIRST_NUMBER [FOCUS]]. FOCUS: mixed (default), tables, windows, joins, features, rare, crossed.

Writes COUNT scenarios without expectations; fill them with the oracle, then run prune.py on the folder, which drops
those that cannot serve (build failures, no output at all, three or more input queues tied)."""
import json, os, random, sys

SEED, COUNT, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
FIRST = int(sys.argv[4]) if len(sys.argv) > 4 else 1
FOCUS = sys.argv[5] if len(sys.argv) > 5 else "mixed"
WORDS = ["a1", "a2", "b1", "b", "c3", "a b", "ab", "x/1", "y/2", "x/2"]

class Gen:
    def __init__(self, r):
        self.r, self.ops, self.n, self.nodes, self.srcs, self.outs, self.used = r, [], 0, [], [], 0, set()
        self.stores = 0

    def id(self):
        self.n += 1
        return "n%d" % self.n

    def add(self, **kw): self.ops.append(kw)
    def node(self, id, kind, k, v, **kw):
        d = dict(id=id, kind=kind, k=k, v=v, **kw)
        self.nodes.append(d)
        return d
    def store(self, p=0.6, always=False):
        if not always and self.r.random() > p: return None
        self.stores += 1
        m = {"store": "store%d" % self.stores}
        if self.r.random() < 0.2: m["storeType"] = "inMemory"
        return m
    def pick(self, f):
        c = [n for n in self.nodes if f(n)]
        return self.r.choice(c) if c else None

    # ---- sources
    def source(self, kind=None, v=None):
        r = self.r
        i = self.id()
        kind = kind or r.choice(["stream", "stream", "stream", "table"])
        v = v or r.choice(["string", "string", "string", "int64"])
        t = "in%d" % (len(self.srcs) + 1)
        op = dict(op=kind, id=i, topic=t, key="string", value=v)
        if kind == "table":
            m = self.store(0.5)
            if m:
                if r.random() < 0.12: m = {"store": m["store"], "versionedHistoryMs": r.choice([30, 200])}
                op["materialized"] = m
        self.ops.append(op)
        self.srcs.append((t, v))
        return self.node(i, kind, "string", v, src=True)

    def window(self, types=("tumbling", "tumbling", "hopping", "sliding", "session")):
        r = self.r
        t = r.choice(types)
        g = r.choice([0, 0, 5, 20])
        if t == "tumbling": return {"type": t, "size": r.choice([5, 10, 20]), "grace": g}
        if t == "hopping":
            s = r.choice([10, 15, 20])
            return {"type": t, "size": s, "advance": r.choice([x for x in (3, 5, 10) if x <= s]), "grace": g}
        if t == "sliding": return {"type": t, "diff": r.choice([5, 10, 20]), "grace": g}
        return {"type": t, "gap": r.choice([3, 5, 10]), "grace": g}

    def agg(self, grouped, k, v, win=None, mat=None):
        r = self.r
        i = self.id()
        c = ["count", "count"] + (["reduce", "aggregate", "aggregate"])
        o = r.choice(c)
        op = dict(op=o, id=i)
        op["from"] = grouped
        out = "int64" if o == "count" else v
        if o == "reduce": op["reducer"] = r.choice(["concat", "last"] if v == "string" else ["sum", "max", "last"])
        if o == "aggregate":
            a = r.choice(["concat", "concatKey", "count"] if v == "string" else ["sum", "concat", "min", "count"])
            op["aggregator"] = a
            out = {"concat": "string", "concatKey": "string", "count": "int64", "sum": "int64", "min": "int64"}[a]
        if mat: op["materialized"] = mat
        self.ops.append(op)
        return self.node(i, "wtable" if win else "table", "windowed" if win else k, out, win=win, materialized=True, agg=True)

    # ---- one random op
    def step(self):
        r = self.r
        n = r.choice(self.nodes[-3:] if r.random() < 0.7 else self.nodes)
        if n["kind"] == "stream": return self.on_stream(n)
        if n["kind"] == "table": return self.on_table(n)
        return self.on_wtable(n)

    def on_stream(self, n):
        r, i = self.r, self.id()
        s = n["v"] == "string"
        o = r.choice({"windows": ["wagg", "wagg", "wagg", "cogroup", "filter"], "joins": ["ssjoin", "ssjoin", "stjoin", "gjoin", "selectKey"], "tables": ["agg", "toTable", "stjoin"]}[FOCUS]) if FOCUS in ("windows", "joins", "tables") and r.random() < .7 else r.choice(["filter", "mapValues", "selectKey", "flatMapValues", "merge", "repartition", "agg", "agg", "wagg", "wagg", "wagg", "ssjoin", "ssjoin", "stjoin", "stjoin", "gjoin", "toTable", "process", "split", "cogroup"])
        f = n["id"]
        self.used.add(f)
        if o == "filter":
            p = r.choice(["contains:a", "startsWith:b", "notNull", "keyEquals:a", "longerThan:1"] if s else ["even", "greaterThan:3", "lessThan:5", "notNull"])
            self.add(op=r.choice(["filter", "filterNot"]), id=i, **{"from": f}, predicate=p)
            return self.node(i, "stream", n["k"], n["v"])
        if o == "mapValues":
            m, t = r.choice([("upper", "string"), ("append:!", "string"), ("appendNull:?", "string"), ("length", "int64"), ("withKey", "string"), ("nullIf:b", "string")] if s else [("addN:3", "int64"), ("toString", "string")])
            self.add(op=o, id=i, **{"from": f}, mapper=m)
            return self.node(i, "stream", n["k"], t)
        if o == "selectKey":
            if not s: o = "filter"; self.add(op="filter", id=i, **{"from": f}, predicate="notNull"); return self.node(i, "stream", n["k"], n["v"])
            self.add(op=o, id=i, **{"from": f}, selector=r.choice(["firstChar", "firstChar", "prefixBefore:/", "value"]))
            return self.node(i, "stream", "string", n["v"])
        if o == "flatMapValues" and s:
            self.add(op=o, id=i, **{"from": f}, fn=r.choice(["splitWords", "repeat:2"]))
            return self.node(i, "stream", n["k"], n["v"])
        if o == "merge":
            g = self.pick(lambda x: x["kind"] == "stream" and x["v"] == n["v"] and x["id"] != f)
            if not g: return None
            self.used.add(g["id"])
            self.add(op=o, id=i, **{"from": f, "with": g["id"]})
            return self.node(i, "stream", n["k"], n["v"])
        if o == "repartition":
            self.add(op=o, id=i, **{"from": f}, **({"named": "rep%d" % self.n} if r.random() < 0.5 else {}))
            return self.node(i, "stream", n["k"], n["v"])
        if o in ("agg", "wagg"):
            g = self.id()
            if s and r.random() < 0.35: self.add(op="groupBy", id=g, **{"from": f}, selector=r.choice(["firstChar", "prefixBefore:/"]), **({"named": "grp%d" % self.n} if r.random() < 0.5 else {}))
            else: self.add(op="groupByKey", id=g, **{"from": f})
            if o == "agg": return self.agg(g, "string", n["v"], mat=self.store())
            w, wi = self.window(), self.id()
            op = dict(op="windowedBy", id=wi, windows=w); op["from"] = g
            mat = self.store(always=True)
            if w["type"] == "session": mat["retentionMs"] = 100000
            if r.random() < 0.25: op["emit"] = "onWindowClose"; mat["retentionMs"] = 100000
            self.ops.append(op)
            t = self.agg(wi, "string", n["v"], win=w, mat=mat)
            if "emit" not in op and r.random() < 0.35:
                u = self.id()
                self.used.add(t["id"])
                self.add(op="suppress", id=u, **{"from": t["id"]}, suppress={"until": "windowCloses"})
                t = self.node(u, "wtable", "windowed", t["v"], win=w, suppressed=True)
            return t
        if o == "ssjoin":
            g = self.pick(lambda x: x["kind"] == "stream" and x["id"] != f) or self.source("stream")
            self.used.add(g["id"])
            b, a = r.choice([(5, 5), (10, 10), (0, 10), (10, 0), (5, 20)])
            self.add(op="streamStreamJoin", id=i, kind=r.choice(["inner", "left", "outer"]), left=f, right=g["id"], joiner=r.choice(["concat", "withKey"]), windows={"before": b, "after": a, "grace": r.choice([0, 5, 20])})
            return self.node(i, "stream", n["k"], "string")
        if o == "stjoin":
            t = self.pick(lambda x: x["kind"] == "table") or self.source("table")
            self.used.add(t["id"])
            self.add(op="streamTableJoin", id=i, kind=r.choice(["inner", "left"]), left=f, right=t["id"], joiner=r.choice(["concat", "withKey"]))
            return self.node(i, "stream", n["k"], "string")
        if o == "gjoin":
            if not s: return None
            t = "in%d" % (len(self.srcs) + 1)
            g = self.id()
            self.add(op="globalTable", id=g, topic=t, key="string", value="string", **({"materialized": {"store": "glob%d" % self.n}} if r.random() < .5 else {}))
            self.srcs.append((t, "string"))
            self.add(op="streamGlobalTableJoin", id=i, kind=r.choice(["inner", "left"]), left=f, right=g, selector=r.choice(["firstChar", "key"]), joiner="concat")
            return self.node(i, "stream", n["k"], "string")
        if o == "toTable":
            m = self.store()
            self.add(op=o, id=i, **{"from": f}, **({"materialized": m} if m else {}))
            return self.node(i, "table", n["k"], n["v"], materialized=bool(m))
        if o == "process":
            st = "pst%d" % self.n
            kind = r.choice(["runningCount", "dedup"])
            p = {"kind": kind, "store": st}
            if kind == "dedup": p.update(by="value" if s else "key", ttlMs=r.choice([5, 20]), storeKind="kv")
            out = "int64" if kind == "runningCount" else n["v"]
            # runningCount on a null key would fail: keep null keys away
            j = self.id()
            self.add(op="filter", id=j, **{"from": f}, predicate="keyNotNull")
            self.add(op=r.choice(["process", "processValues"]), id=i, **{"from": j}, processor=p, provideStores=[{"name": st, "kind": "keyValue", "key": "string", "value": "int64"}])
            return self.node(i, "stream", n["k"], out)
        if o == "split":
            p = ["startsWith:a", "contains:1"] if s else ["even", "greaterThan:4"]
            j, d = self.id(), self.id()
            self.add(op=o, **{"from": f}, branches=[{"id": i, "predicate": p[0]}, {"id": j, "predicate": p[1]}], default={"id": d})
            self.node(i, "stream", n["k"], n["v"]); self.node(j, "stream", n["k"], n["v"])
            return self.node(d, "stream", n["k"], n["v"])
        if o == "cogroup":
            g2 = self.pick(lambda x: x["kind"] == "stream" and x["id"] != f)
            if not g2: return None
            self.used.add(g2["id"])
            ga, gb = self.id(), self.id()
            self.add(op="groupByKey", id=ga, **{"from": f}); self.add(op="groupByKey", id=gb, **{"from": g2["id"]})
            m = self.store(always=True)
            w = self.window(("tumbling", "hopping", "session")) if r.random() < 0.6 else None
            if w and w["type"] == "session": m["retentionMs"] = 100000
            self.add(op=o, id=i, inputs=[{"from": ga, "aggregator": "concat"}, {"from": gb, "aggregator": "concatKey"}], materialized=m, **({"windows": w} if w else {}))
            return self.node(i, "wtable" if w else "table", "windowed" if w else "string", "string", win=w, materialized=True)
        return None

    def on_table(self, n):
        r, i = self.r, self.id()
        s = n["v"] == "string"
        f = n["id"]
        o = r.choice(["fkjoin", "fkjoin", "ttjoin", "groupBy", "suppress"]) if FOCUS == "tables" and r.random() < .7 else r.choice(["filter", "mapValues", "toStream", "groupBy", "groupBy", "ttjoin", "ttjoin", "ttjoin", "fkjoin", "fkjoin", "suppress"])
        self.used.add(f)
        if o == "filter":
            m = self.store(0.4)
            self.add(op=r.choice(["filter", "filterNot"]), id=i, **{"from": f}, predicate=r.choice(["contains:a", "longerThan:2", "contains:1"] if s else ["even", "greaterThan:3"]), **({"materialized": m} if m else {}))
            return self.node(i, "table", n["k"], n["v"], materialized=n.get("materialized") or bool(m))
        if o == "mapValues":
            mp, t = r.choice([("upper", "string"), ("append:!", "string"), ("length", "int64"), ("nullIf:b", "string"), ("withKey", "string")] if s else [("addN:3", "int64"), ("toString", "string")])
            m = self.store(always=True)
            self.add(op=o, id=i, **{"from": f}, mapper=mp, **({"materialized": m} if (r.random() < .5 or t != "string") else {}))
            return self.node(i, "table", n["k"], t)
        if o == "toStream":
            self.add(op=o, id=i, **{"from": f})
            return self.node(i, "stream", n["k"], n["v"])
        if o == "groupBy":
            g = self.id()
            sel = r.choice(["firstChar", "prefixBefore:/", "value"]) if s else "constant:all"
            self.add(op=o, id=g, **{"from": f}, selector=sel)
            a = r.choice(["count", "reduce", "aggregate", "aggregate"])
            op = dict(op=a, id=i); op["from"] = g
            out = n["v"]
            if a == "count": out = "int64"
            if a == "reduce": op["reducer"] = "concat" if s else "sum"
            if a == "aggregate":
                x = r.choice(["concat", "count"] if s else ["sum", "concat"])
                op["aggregator"] = x; out = {"concat": "string", "count": "int64", "sum": "int64"}[x]
            m = self.store()
            if m: op["materialized"] = m
            self.ops.append(op)
            return self.node(i, "table", "string", out, materialized=True)
        if o == "ttjoin":
            t = self.pick(lambda x: x["kind"] == "table" and x["id"] != f) or self.source("table")
            self.used.add(t["id"])
            m = self.store(0.5)
            self.add(op="tableTableJoin", id=i, kind=r.choice(["inner", "left", "outer"]), left=f, right=t["id"], joiner="concat", **({"materialized": m} if m else {}))
            return self.node(i, "table", n["k"], "string")
        if o == "fkjoin":
            if not n.get("src") or not s: return None
            t = self.pick(lambda x: x["kind"] == "table" and x["id"] != f and x.get("src")) or self.source("table", "string")
            if t["v"] != "string": return None
            self.used.add(t["id"])
            m = self.store(always=True)
            self.add(op="foreignKeyJoin", id=i, kind=r.choice(["inner", "left"]), left=f, right=t["id"], selector=r.choice(["firstChar", "prefixBefore:/"]), joiner="concat", materialized=m)
            return self.node(i, "table", n["k"], "string")
        if o == "suppress":
            if not (n.get("agg") or n.get("src")): return None
            self.add(op=o, id=i, **{"from": f}, suppress={"until": "timeLimit", "ms": r.choice([5, 20])} if r.random() < .7 else {"until": "timeLimit", "ms": 1000, "maxRecords": 2, "full": "emitEarly"})
            return self.node(i, "table", n["k"], n["v"], suppressed=True)
        return None

    def on_wtable(self, n):
        r, i = self.r, self.id()
        f = n["id"]
        o = r.choice(["toStream", "keyString", "keyString", "regroup"])
        self.used.add(f)
        if o == "regroup" and not n.get("suppressed") and n.get("agg") and n["v"] == "int64":
            g = self.id()
            self.add(op="groupBy", id=g, **{"from": f}, selector="windowedKey")
            m = self.store(always=True)
            self.add(op="reduce", id=i, **{"from": g}, reducer="sum", materialized=m)
            return self.node(i, "table", "string", "int64", materialized=True)
        self.add(op="toStream", id=i, **{"from": f}, selector="windowedKeyToString")
        return self.node(i, "stream", "string", n["v"])

    def finish(self):
        for n in list(self.nodes):
            if n["id"] in self.used: continue
            self.outs += 1
            f = n["id"]
            if n["kind"] != "stream":
                j = self.id()
                self.add(op="toStream", id=j, **{"from": f})
                f = j
            self.add(op="to", **{"from": f}, topic="out%d" % self.outs)

    def steps(self):
        r, now, st = self.r, r_int(self.r, 0, 30), []
        for _ in range(r.randint(20, 60)):
            if r.random() < 0.04:
                st.append({"advanceWallClock": r.choice([1, 10, 100])})
                continue
            x = r.random()
            if x < 0.70: now += r.randint(0, 4)
            elif x < 0.75: now += r.randint(10, 60)
            ts = now
            y = r.random()
            if y < 0.18: ts = max(0, now - r.randint(1, 10))
            elif y < 0.24: ts = max(0, now - r.randint(10, 40))
            t, v = r.choice(self.srcs)
            key = None if r.random() < 0.03 else r.choice(["a", "b", "c"] if r.random() < .9 else ["x", "y"])
            val = None if r.random() < 0.08 else (r.choice(WORDS) if v == "string" else r.randint(-3, 9))
            st.append({"pipe": {"topic": t, "key": key, "value": val, "timestamp": ts}})
        return st

def r_int(r, a, b): return r.randint(a, b)

def pipeline(r, name, seed):
    g = Gen(r)
    if FOCUS == "tables":
        g.source("table", "string")
        if r.random() < 0.7: g.source("table", "string")
    else:
        g.source("stream" if FOCUS in ("windows", "joins") else None)
        if r.random() < 0.6: g.source("stream" if FOCUS == "joins" else None)
    want, tries, done = r.randint(2, 6), 0, 0
    while done < want and tries < 30:
        tries += 1
        before = (len(g.ops), len(g.nodes), set(g.used), list(g.srcs))
        if g.step() is not None: done += 1
        else:
            g.ops, g.nodes = g.ops[:before[0]], g.nodes[:before[1]]
            g.used, g.srcs = before[2], before[3]
    g.finish()
    d = {"name": name, "area": "random-pipeline", "notes": "seed %s" % seed}
    cfg = {}
    if r.random() < 0.15: cfg["topologyOptimization"] = "all"
    if r.random() < 0.10: cfg["dslStore"] = "inMemory"
    if r.random() < 0.05: cfg["processingGuarantee"] = "exactly_once_v2"
    if cfg: d["config"] = cfg
    d["topology"], d["steps"] = g.ops, g.steps()
    return d

def commands(r, name, seed):
    kind = r.choice(["keyValue", "timestampedKeyValue", "window", "window", "session", "versioned", "versioned"])
    mem = r.random() < 0.4 and kind != "versioned"
    st = {"name": "st", "kind": kind, "key": "string", "value": "string"}
    if mem: st["type"] = "inMemory"
    K = lambda: r.choice(["a", "b", "ab", "c"])
    B = lambda: r.choice(["a", "b", "ab", "c", "-"])
    now = [0]
    def T(w=40):
        now[0] += r.choice([0, 1, 2, 5, 5, 30])
        return max(0, now[0] - r.choice([0, 0, 0, 1, 7, w]))
    n = [0]
    def V():
        n[0] += 1
        return "-" if r.random() < .12 else "v%d" % n[0]
    if kind == "window": st.update(retentionMs=r.choice([100, 100000]), windowMs=10, **({"retainDuplicates": True} if r.random() < .2 else {}))
    if kind == "session": st.update(retentionMs=r.choice([100, 100000]))
    if kind == "versioned": st.update(historyMs=r.choice([50, 100000]))
    def line():
        x = r.random()
        if kind in ("keyValue", "timestampedKeyValue"):
            if x < .5: return "put %s %s" % (K(), V()) + (" %d" % T() if kind != "keyValue" else "")
            return r.choice([lambda: "get " + K(), lambda: "delete " + K(), lambda: "range %s %s" % (B(), B()), lambda: "reverseRange %s %s" % (B(), B()), lambda: "all", lambda: "reverseAll", lambda: "prefix " + r.choice(["a", "ab", "c", "d"]),
                             lambda: "putIfAbsent %s x%d" % (K(), n[0]) + (" %d" % T() if kind != "keyValue" else "")])()
        lo = max(0, now[0] - r.choice([0, 5, 20, 60])); hi = lo + r.choice([0, 5, 30, 100])
        if kind == "window":
            if x < .5: return "put %s %s %d" % (K(), V(), T())
            return r.choice([lambda: "get %s %d" % (K(), lo), lambda: "fetch %s %d %d" % (K(), lo, hi), lambda: "backwardFetch %s %d %d" % (K(), lo, hi), lambda: "fetchRange %s %s %d %d" % (B(), B(), lo, hi), lambda: "fetchAll %d %d" % (lo, hi), lambda: "backwardFetchAll %d %d" % (lo, hi), lambda: "all"])()
        if kind == "session":
            if x < .5:
                e = T(); return "put %s %s %d %d" % (K(), V(), max(0, e - r.choice([0, 3, 10])), e)
            return r.choice([lambda: "fetch " + K(), lambda: "backwardFetch " + K(), lambda: "fetchRange %s %s" % (B(), B()), lambda: "findSessions %s %d %d" % (K(), lo, hi), lambda: "backwardFindSessions %s %d %d" % (K(), lo, hi), lambda: "findSessionsRange %s %s %d %d" % (B(), B(), lo, hi)])()
        if x < .5: return "put %s %s %d" % (K(), V(), T())
        return r.choice([lambda: "get " + K(), lambda: "get %s %d" % (K(), lo), lambda: "get %s %d" % (K(), hi), lambda: "delete %s %d" % (K(), T())])()
    return {"name": name, "area": "random-store", "notes": "seed %s" % seed,
            "topology": [{"op": "addStateStore", "store": st}, {"op": "stream", "id": "s", "topic": "in", "key": "string", "value": "string"},
                         {"op": "process", "id": "p", "from": "s", "processor": {"kind": "storeCommands", "store": "st"}, "stores": ["st"]}, {"op": "to", "from": "p", "topic": "out"}],
            "steps": [{"pipe": {"topic": "in", "key": "c", "value": line(), "timestamp": i}} for i in range(r.randint(25, 60))]}

def papi(r, name, seed):
    """punctuators and processors over random times"""
    kind = r.choice(["tick", "countPunctuate", "dedupw"])
    ty = r.choice(["streamTime", "wallClock"])
    iv = r.choice([7, 10, 25])
    kv = {"name": "kv", "kind": "keyValue", "key": "string", "value": "int64"}
    if kind == "tick": ops = [{"op": "process", "id": "p", "from": "s", "processor": {"kind": "tick", "type": ty, "intervalMs": iv, **({"cancelAfter": 3} if r.random() < .3 else {})}}]
    elif kind == "countPunctuate": ops = [{"op": "addStateStore", "store": kv}, {"op": "process", "id": "p", "from": "s", "processor": {"kind": kind, "store": "kv", "type": ty, "intervalMs": iv, "clear": r.random() < .5}, "stores": ["kv"]}]
    else: ops = [{"op": "process", "id": "p", "from": "s", "processor": {"kind": "dedup", "store": "w", "by": "value", "ttlMs": r.choice([5, 15]), "storeKind": "window"}, "provideStores": [{"name": "w", "kind": "window", "key": "string", "value": "int64", "retentionMs": r.choice([30, 1000]), "windowMs": 15}]}]
    ops.append({"op": "to", "from": "p", "topic": "out"})
    st, now = [], 0
    for i in range(r.randint(20, 40)):
        if r.random() < .35: st.append({"advanceWallClock": r.choice([1, 3, 7, 10, 60])}); continue
        now += r.choice([0, 1, 2, 5, 40] if r.random() < .8 else [0])
        st.append({"pipe": {"topic": "in", "key": r.choice(["a", "b"]), "value": r.choice(["x", "y", "z"]), "timestamp": max(0, now - r.choice([0, 0, 0, 3, 12]))}})
    return {"name": name, "area": "random-processor", "notes": "seed %s" % seed, "topology": [{"op": "stream", "id": "s", "topic": "in", "key": "string", "value": "string"}] + ops, "steps": st}

def main():
    os.makedirs(FOLDER, exist_ok=True)
    for i in range(COUNT):
        seed = "%d-%d" % (SEED, i)
        r = random.Random(seed)
        name = "random-%s-%d-%03d" % (FOCUS, SEED, FIRST + i)
        x = r.random()
        if FOCUS == "features":
            import random_features
            d = random_features.scenario(r, name, seed, pipeline)
        elif FOCUS == "rare":
            import random_rare
            d = random_rare.scenario(r, name, seed, pipeline)
        elif FOCUS == "crossed":
            import random_crossed
            d = random_crossed.scenario(r, name, seed, pipeline)
        else:
            d = pipeline(r, name, seed) if FOCUS != "mixed" or x >= 0.22 else commands(r, name, seed) if x < 0.15 else papi(r, name, seed)
        json.dump(d, open(os.path.join(FOLDER, name + ".json"), "w"))
    print(COUNT, "written")

if __name__ == "__main__": main()
