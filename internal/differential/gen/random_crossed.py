"""Random graphs in which anything may stand behind anything: tables in every kind of store, keys in windows, joins of all kinds nested in each other,
processors that open the stores of the DSL, sources with times of their own, queries of all stores. Used by random_scenarios.py with the focus "crossed"."""
import copy
from random_features import handlers, out

VALUES = ["a1", "a2", "b1", "b", "c", "", "x/1", "x/2", "a b", "12", "40"]


def scenario(r, name, seed, pipeline):
    d = Graph(r).scenario()
    d.update(name=name, area="random-crossed", notes="seed %s" % seed)
    return d


class Node:
    def __init__(self, id, kind, k="string", v="string", **kw):
        self.id, self.kind, self.k, self.v, self.win, self.store, self.versioned, self.source, self.agg, self.held = id, kind, k, v, None, None, False, False, False, False
        self.joined = False # a number that comes of a join: the runner's Go type for it is another
        self.typed = v == "string" # its values' serde is known in Kafka Streams, which takes strings for granted
        self.__dict__.update(kw)


def windowed_type(k, w):
    if w["type"] == "session": return {"sessionWindowed": k}
    return {"timeWindowed": k, "size": w["diff"] if w["type"] == "sliding" else 9223372036854775807 if w["type"] == "unlimited" else w["size"]}


class Graph:
    def __init__(self, r):
        self.r, self.ops, self.n, self.nodes, self.used, self.topics, self.stores, self.outs = r, [], 0, [], set(), [], {}, 0
        self.cached = r.random() < .3
        # what a graph is mostly made of
        self.bias = r.choice([None, None, "table", "window", "join", "processor", "cogroup", "fk", "suppress"])

    def id(self, p="n"):
        self.n += 1
        return "%s%d" % (p, self.n)

    def add(self, node, op, frm=None, named=.1, **kw):
        x = {"op": op, "id": node.id if node else self.id()}
        if frm: x["from"] = frm
        x.update({k: v for k, v in kw.items() if v is not None})
        if named and self.r.random() < named and op not in ("windowedBy",): x["named"] = "my-%s" % x["id"]
        self.ops.append(x)
        if node:
            node.joined = node.v == "int64" and (op.endswith("Join") or op in ("filter", "filterNot", "selectKey", "repartition", "merge", "toStream", "toTable", "suppress") and any(n.id == frm and n.joined for n in self.nodes))
            node.typed = node.typed or "materialized" in x or op in ("table", "filter", "filterNot", "suppress") and any(n.id == frm and n.typed for n in self.nodes) or op in ("count", "reduce", "aggregate", "cogroup", "table")
            self.nodes.append(node)
        return node

    def chance(self, p): return self.r.random() < p

    # ---- stores
    def mat(self, kind="kv", p=1, win=None, close=False, versioned=.15):
        """what may be materialized; returns (materialized, store kind, versioned)"""
        r = self.r
        if not self.chance(p): return None, None, False
        name = self.id("st")
        m, x, sk, ver = {"store": name}, r.random(), "timestampedKeyValue", False
        if kind == "kv":
            if x < versioned: m["versionedHistoryMs"] = r.choice([10, 50, 1000]); sk, ver = "versioned", True; r.random() < .2 and m.update(segmentMs=20)
            elif x < versioned + .08: m["lru"] = r.choice([1, 2, 3])
            elif x < versioned + .25: m.update(supplier=True, **r.choice([{"plain": True}, {"storeType": "inMemory"}, {}])); sk = "keyValue" if m.get("plain") else sk
            elif x < versioned + .35: m["storeType"] = "inMemory"
            elif x < versioned + .43: m = {}; name = None
        else:
            sk = "session" if kind == "session" else "timestampedWindow"
            if win["type"] != "unlimited":
                m["retentionMs"] = 100000 if close or self.chance(.7) else self.least(win) + r.choice([0, 0, 10, 50])
                size = self.size(win)
                if x < .25: m.update(supplier=True, **r.choice([{"plain": True}, {"storeType": "inMemory"}, {}])); kind == "window" and m.update(windowMs=size)
                if close and (m.get("plain") and self.cached or kind == "session" and "supplier" in m and "storeType" not in m): m.pop("plain", None); m["storeType"] = "inMemory"
                elif x < .35: m["storeType"] = "inMemory"
            elif x < .3: m["storeType"] = "inMemory"
        if m and "lru" not in m and self.chance(.08): m["logging"] = False
        if m and not ver and self.chance(.25): m["caching"] = r.choice([True, False])
        if name and sk: self.stores[name] = (sk, m)
        return {"materialized": m}, name, ver

    def least(self, w):
        return {"tumbling": lambda: w["size"], "hopping": lambda: w["size"], "sliding": lambda: 2 * w["diff"], "session": lambda: w["gap"]}[w["type"]]() + w.get("grace", 0)

    def size(self, w): return {"tumbling": w.get("size"), "hopping": w.get("size"), "sliding": w.get("diff"), "session": 0, "unlimited": 0}[w["type"]]

    def window(self):
        r = self.r
        return r.choice([{"type": "tumbling", "size": r.choice([1, 5, 10]), "grace": r.choice([0, 0, 5, 20])}, {"type": "hopping", "size": 10, "advance": r.choice([2, 3, 5]), "grace": r.choice([0, 4, 20])},
                         {"type": "sliding", "diff": r.choice([3, 5, 10]), "grace": r.choice([0, 5, 30])}, {"type": "session", "gap": r.choice([0, 2, 5]), "grace": r.choice([0, 0, 5, 30])}, {"type": "unlimited", "start": r.choice([0, 15])}])

    # ---- sources
    def source(self, kind=None):
        r = self.r
        kind = kind or r.choice(["stream", "stream", "table"])
        v = r.choice(["string", "string", "string", "int64"])
        t = "in%d" % (len(self.topics) + 1)
        kw = {}
        if self.chance(.2): kw["timestampExtractor"] = r.choice(["plus:7", "plus:-6", "logAndSkip", "usePartitionTime", "partitionTime", "recordTime"] + (["valueTime"] if v == "string" else []))
        n = Node(self.id(), kind, "string", v, source=True)
        if kind == "table":
            m, n.store, n.versioned = self.mat(p=.6)
            if m: kw.update(m)
        self.topics.append((t, v, kw.get("timestampExtractor")))
        return self.add(n, kind, topic=t, key="string", value=v, **kw)

    def pick(self, kind, k=None, v=None, other=None):
        c = [n for n in self.nodes if n.kind == kind and (k is None or n.k == k) and (v is None or n.v == v) and n is not other]
        return self.r.choice(c) if c else None

    # ---- functions by type
    def predicate(self, v):
        return self.r.choice({"string": ["contains:a", "notNull", "longerThan:1", "startsWith:b", "not:contains:a"], "int64": ["even", "greaterThan:2", "lessThan:4", "notNull"]}.get(v, ["notNull", "always"]))

    def mapper(self, v):
        return self.r.choice({"string": [("upper", "string"), ("append:!", "string"), ("length", "int64"), ("withKey", "string"), ("nullIf:b", "string"), ("prefixBefore:+", "string")], "int64": [("addN:3", "int64"), ("toString", "string"), ("withKey", "string")]}.get(v, [("toString", "string"), ("withKey", "string")]))

    def selector(self, n, nulls=True):
        """a new key that keeps to strings, mostly"""
        if isinstance(n.k, dict):
            return self.r.choice([("windowedKeyToString", "string"), ("windowedKeyToString", "string")] + ([("windowedKey", n.k.get("timeWindowed") or n.k.get("sessionWindowed"))]))
        c = [("key", n.k), ("constant:k", "string")]
        if n.k == "string": c += [("keyUpper", "string")]
        if n.v == "string": c += [("firstChar", "string")] * 3 + [("prefixBefore:/", "string"), ("value", "string")]
        if nulls: c += [("nullKey", n.k)]
        return self.r.choice(c)

    def joiner(self, l, rt, table=False):
        c = [("concat", "string")] * 3 + ([("withKey", "string")] if not table else []) + [("left", l.v), ("right", rt.v), ("nullIfNoRight", "string")]
        if l.v == rt.v == "int64": c += [("sumInt", "int64")] * 2
        return self.r.choice(c)

    # ---- steps
    def step(self):
        n = self.r.choice(self.nodes[-4:] if self.chance(.7) else self.nodes)
        return self.on_stream(n) if n.kind == "stream" else self.on_table(n)

    def use(self, *ns):
        for n in ns: self.used.add(n.id)

    def on_stream(self, n):
        r = self.r
        plain = not isinstance(n.k, dict)
        menu = ["filter", "mapValues", "selectKey", "selectKey", "flatMapValues", "merge", "repartition", "split", "through", "toTable", "toTable", "process", "process", "agg", "agg", "wagg", "wagg", "wagg", "cogroup", "ssjoin", "ssjoin", "stjoin", "stjoin", "gjoin"]
        menu += {"table": ["toTable", "agg"] * 5, "window": ["wagg"] * 10, "join": ["ssjoin", "stjoin"] * 6, "processor": ["process"] * 10, "cogroup": ["cogroup"] * 10, "fk": ["toTable"] * 8, "suppress": ["wagg", "agg"] * 5}.get(self.bias, [])
        o = r.choice(menu)
        if o in ("ssjoin", "stjoin", "merge") and not plain and self.chance(.5): o = "selectKey"
        if o == "filter": self.use(n); return self.add(Node(self.id(), "stream", n.k, n.v), r.choice(["filter", "filterNot"]), n.id, predicate=self.predicate(n.v))
        if o == "mapValues":
            m, v = self.mapper(n.v); self.use(n)
            return self.add(Node(self.id(), "stream", n.k, v), o, n.id, mapper=m)
        if o == "selectKey":
            s, k = self.selector(n); self.use(n)
            return self.add(Node(self.id(), "stream", k, n.v), o, n.id, selector=s)
        if o == "flatMapValues":
            self.use(n)
            return self.add(Node(self.id(), "stream", n.k, n.v), o, n.id, fn="splitWords" if n.v == "string" and self.chance(.5) else "repeat:2")
        if o == "merge":
            m = self.pick("stream", n.k, n.v, n)
            if not m or n.joined != m.joined: return None
            self.use(n, m)
            return self.add(Node(self.id(), "stream", n.k, n.v), o, n.id, **{"with": m.id})
        if o == "repartition": self.use(n); return self.add(Node(self.id(), "stream", n.k, n.v), o, n.id, named=.4)
        if o == "split":
            self.use(n)
            bs = [Node(self.id(), "stream", n.k, n.v) for _ in range(2)]
            d = Node(self.id(), "stream", n.k, n.v) if self.chance(.6) else None
            self.ops.append({"op": o, "from": n.id, "branches": [{"id": b.id, "predicate": self.predicate(n.v)} for b in bs], **({"default": {"id": d.id}} if d else {}), **({"named": "sp%d-" % self.n} if self.chance(.3) else {})})
            for b in bs + ([d] if d else []): b.joined = n.joined
            self.nodes += bs + ([d] if d else [])
            return bs[0]
        if o == "through":
            self.use(n)
            t = "mid%d" % self.n
            self.ops.append({"op": "to", "from": n.id, "topic": t})
            return self.add(Node(self.id(), "stream", n.k, n.v, source=True), "stream", topic=t, key=n.k, value=n.v, **({"timestampExtractor": r.choice(["plus:3", "usePartitionTime"])} if self.chance(.2) else {}))
        if o == "toTable":
            m, st, ver = self.mat(p=.7); self.use(n)
            return self.add(Node(self.id(), "table", n.k, n.v, store=st, versioned=ver, win=n.win), o, n.id, **(m or {}))
        if o == "process": return self.process(n)
        if o in ("agg", "wagg", "cogroup"): return self.group(n, o)
        if o == "ssjoin":
            m = self.pick("stream", n.k) or (self.source("stream") if plain and n.k == "string" else None)
            if not m or m.k != n.k: return None
            self.use(n, m)
            j, v = self.joiner(n, m)
            b, a = r.choice([(5, 5), (0, 10), (10, 0), (3, 15), (1, 1), (8, -3), (0, 0)])
            return self.add(Node(self.id(), "stream", n.k, v), "streamStreamJoin", kind=r.choice(["inner", "left", "outer"]), left=n.id, right=m.id, joiner=j, windows={"before": b, "after": a, "grace": r.choice([0, 0, 5, 20])},
                            **r.choice([{}, {}, {"storeType": "inMemory"}, {"storeName": "js%d" % self.n}, {"logging": False}]))
        if o == "stjoin":
            t = self.pick("table", n.k) or (self.source("table") if n.k == "string" else None)
            if not t: return None
            self.use(n, t)
            j, v = self.joiner(n, t)
            kind = r.choice(["inner", "left"])
            kw = {}
            h = self.stores.get(t.store, (None, {}))[1].get("versionedHistoryMs")
            if t.versioned and h and kind == "inner" and self.chance(.6): kw["grace"] = min(h, r.choice([0, 4, 10]))
            return self.add(Node(self.id(), "stream", n.k, v), "streamTableJoin", kind=kind, left=n.id, right=t.id, joiner=j, **kw)
        if o == "gjoin":
            t = "in%d" % (len(self.topics) + 1)
            g = self.id("g")
            sel = [s for s in ["firstChar", "key", "nullKey", "prefixBefore:/", "value", "constant:a"] if (n.v == "string" or s in ("key", "nullKey", "constant:a")) and (n.k == "string" or s not in ("key", "nullKey"))]
            self.topics.append((t, "string", None)); self.use(n)
            self.ops.append({"op": "globalTable", "id": g, "topic": t, "key": "string", "value": "string", **r.choice([{}, {"materialized": {"store": g}}, {"materialized": {"store": g, "storeType": "inMemory"}}, {"materialized": {"store": g, "supplier": True, "storeType": "inMemory"}}])})
            return self.add(Node(self.id(), "stream", n.k, "string"), "streamGlobalTableJoin", kind=r.choice(["inner", "left"]), left=n.id, right=g, selector=r.choice(sel), joiner=r.choice(["concat", "withKey"]))

    def process(self, n):
        r = self.r
        self.use(n)
        open_ = [(s, k) for s, (k, m) in self.stores.items() if k in ("timestampedKeyValue", "keyValue") and self.holds(s)]
        kind = r.choice(["tick", "countPunctuate", "runningCount", "dedup", "context", "headers", "timestamp", "enrich", "enrich", "failOn"])
        if isinstance(n.k, dict) and kind in ("countPunctuate", "runningCount", "enrich", "tick"): kind = "context"
        if n.k != "string" and kind in ("countPunctuate", "runningCount", "enrich", "tick"): kind = "timestamp"
        if kind == "tick" and n.v != "string": kind = "countPunctuate"
        p, kw, k, v, op = {"kind": kind}, {}, n.k, n.v, r.choice(["process", "process", "processValues"])
        st = self.id("ps")
        kv = {"name": st, "kind": "keyValue", "key": "string", "value": "int64", **r.choice([{}, {"type": "inMemory"}])}
        frm = n.id
        if kind == "tick": p.update(type=r.choice(["streamTime", "wallClock"]), intervalMs=r.choice([1, 7, 20]), label=self.id("t")); op = "process"
        elif kind == "countPunctuate": p.update(store=st, type=r.choice(["streamTime", "wallClock"]), intervalMs=r.choice([5, 20]), clear=self.chance(.5)); op, v = "process", "int64"
        elif kind == "runningCount": p["store"] = st; v = "int64"
        elif kind == "dedup": p.update(store=st, by="key" if n.v != "string" or n.k != "string" else r.choice(["value", "key"]), ttlMs=r.choice([5, 20]), storeKind="kv", **({"purgeEveryMs": r.choice([5, 20])} if self.chance(.4) else {})); kv["key"] = "string" if p["by"] == "value" else n.k
        elif kind == "context": op, k, v = "process", "string", "string"
        elif kind == "headers": p.update(add=[{"key": "p", "value": r.choice(["1", None])}], remove=["h"])
        elif kind == "timestamp": p["delta"] = r.choice([-4, 6])
        elif kind == "failOn": p["value"] = r.choice(["b1", "nothing"])
        elif kind == "enrich":
            if not open_: p = {"kind": "context"}
            else: p["store"] = r.choice(open_)[0]; kw["stores"] = [p["store"]]
            op, k, v = "process", "string", "string"
        if kind in ("countPunctuate", "runningCount", "dedup"):
            if kind != "dedup": # a null key would fail
                f = self.id(); self.ops.append({"op": "filter", "id": f, "from": frm, "predicate": "keyNotNull"}); frm = f
            kw["provideStores"] = [kv]
        return self.add(Node(self.id(), "stream", k, v), op, frm, processor=p, **kw)

    def holds(self, s):
        """the store's keys and values are strings or numbers, and it is there"""
        for o in self.ops:
            if o.get("materialized", {}).get("store") == s: return any(x.id == o["id"] and x.k == "string" for x in self.nodes)
        return False

    def group(self, n, how):
        r = self.r
        g = self.id()
        k, frm = n.k, n
        self.use(n)
        if self.chance(.35) and (isinstance(n.k, dict) or n.k == "string"):
            s, k = self.selector(n)
            self.ops.append({"op": "groupBy", "id": g, "from": n.id, "selector": s, **({"named": "grp-" + g} if self.chance(.3) else {})})
        else: self.ops.append({"op": "groupByKey", "id": g, "from": n.id, **({"named": "grp-" + g} if self.chance(.2) else {})})
        deep = isinstance(k, dict)
        if how == "cogroup":
            others = [x for x in self.nodes if x.kind == "stream" and x.k == k and x is not n][:4]
            ins = [(g, n.v)]
            for x in r.sample(others, min(len(others), r.randint(0, 2))):
                i = self.id(); self.use(x)
                self.ops.append({"op": "groupByKey", "id": i, "from": x.id}); ins.append((i, x.v))
            aggs = r.choice([["concat", "concatKey"], ["collectList"], ["count"], ["nullInit", "concat"]])
            if all(v == "int64" for _, v in ins): aggs = ["sum"]
            win = self.window() if not deep and self.chance(.7) else None
            m, st, ver = self.mat("kv" if not win else "session" if win["type"] == "session" else "window", win=win)
            v = {"concat": "string", "collectList": "json", "count": "int64", "nullInit": "string", "sum": "int64"}[aggs[0]]
            self.mats(st, ver, win)
            return self.add(Node(self.id(), "table", windowed_type(k, win) if win else k, v, win=win, store=st, versioned=ver, agg=True), "cogroup", inputs=[{"from": i, "aggregator": aggs[x % len(aggs)]} for x, (i, _) in enumerate(ins)], windows=win, **m)
        win, kw = None, {}
        if how == "wagg" and not deep:
            win = self.window()
            if win["type"] != "unlimited" and self.chance(.3): kw["emit"] = "onWindowClose"
            w = self.id()
            self.ops.append({"op": "windowedBy", "id": w, "from": g, "windows": win, **kw}); g = w
        m, st, ver = self.mat("kv" if not win else "session" if win["type"] == "session" else "window", p=1 if kw else .85, win=win, close=bool(kw))
        return self.aggregate(g, k, n.v, win, m or {}, st, ver, stream=True)

    def mats(self, *_): pass

    def aggregate(self, g, k, v, win, m, st, ver, stream=False):
        r = self.r
        o = r.choice(["count", "reduce", "aggregate", "aggregate"])
        if o == "reduce" and v == "json": o = "count"
        kw, ov = {}, "int64"
        if o == "reduce": kw["reducer"] = r.choice((["concat", "last", "first"] + (["nullOn:b"] if not win or win["type"] != "session" else [])) if v == "string" else ["sum"] + (["min", "max", "last"] if stream else [])); ov = v
        if o == "aggregate":
            a = r.choice((["concat", "concatKey", "count", "collectList", "nullInit"] if v != "int64" else ["sum", "concat", "collectList"]) + (["last"] if stream else []) + (["nullOn:b"] if v == "string" and not (win and win["type"] == "session") else []))
            kw["aggregator"] = a; ov = {"count": "int64", "sum": "int64", "last": v, "collectList": "json"}.get(a, "string")
        return self.add(Node(self.id(), "table", windowed_type(k, win) if win else k, ov, win=win, store=st, versioned=ver, agg=True), o, g, **kw, **m)

    def on_table(self, n):
        r = self.r
        plain = not isinstance(n.k, dict)
        menu = ["filter", "filter", "mapValues", "mapValues", "toStream", "toStream", "groupBy", "groupBy", "ttjoin", "ttjoin", "ttjoin", "fkjoin", "fkjoin", "suppress"]
        menu += {"table": ["ttjoin", "groupBy"] * 4, "fk": ["fkjoin"] * 10, "suppress": ["suppress"] * 8, "join": ["toStream"] * 3 + ["ttjoin"] * 3, "window": ["toStream"] * 6}.get(self.bias, [])
        o = r.choice(menu)
        self.use(n)
        inherits = dict(versioned=n.versioned and False)
        if o == "filter":
            m, st, ver = self.mat(p=.4) if plain or self.chance(.5) else (None, None, False)
            return self.add(Node(self.id(), "table", n.k, n.v, store=st, versioned=ver, win=n.win), r.choice(["filter", "filterNot"]), n.id, predicate=self.predicate(n.v), **(m or {}))
        if o == "mapValues":
            mp, v = self.mapper(n.v)
            if not plain and mp == "prefixBefore:+": mp = "upper"
            m, st, ver = self.mat(p=.5)
            return self.add(Node(self.id(), "table", n.k, v, store=st, versioned=ver, win=n.win), o, n.id, mapper=mp, **(m or {}))
        if o == "toStream":
            if self.chance(.5 if not plain else .2):
                s, k = self.selector(n)
                if s not in ("nullKey",): return self.add(Node(self.id(), "stream", k, n.v), o, n.id, selector=s)
            return self.add(Node(self.id(), "stream", n.k, n.v), o, n.id)
        if o == "groupBy":
            g = self.id()
            s, k = self.selector(n)
            self.ops.append({"op": o, "id": g, "from": n.id, "selector": s, **({"named": "grp-" + g} if self.chance(.3) else {})})
            m, st, ver = self.mat(p=.8)
            return self.aggregate(g, k, n.v, None, m or {}, st, ver)
        if o == "ttjoin":
            t = self.pick("table", n.k, other=None if self.chance(.1) else n) or (self.source("table") if n.k == "string" else None)
            if not t: return None
            self.use(t)
            j, v = self.joiner(n, t, True)
            m, st, ver = self.mat(p=.5)
            return self.add(Node(self.id(), "table", n.k, v, store=st, versioned=ver, win=n.win), "tableTableJoin", kind=r.choice(["inner", "left", "outer"]), left=n.id, right=t.id, joiner=j, **(m or {}))
        if o == "fkjoin":
            sel = [s for s in ["firstChar", "firstChar", "prefixBefore:/", "value", "keyUpper", "key", "constant:a", "windowedKey", "windowedKeyToString"] if (n.v == "string" or s not in ("firstChar", "prefixBefore:/", "value")) and (n.k == "string" or s not in ("keyUpper",)) and (not plain or not s.startswith("windowed")) and (n.k == "string" or s != "key")]
            t = self.pick("table", "string", other=None if self.chance(.15) else n) or self.source("table")
            if not n.typed or not t.typed: return None
            self.use(t)
            j, v = self.joiner(n, t, True)
            m, st, ver = self.mat(p=1)
            # An inner join of what comes of one topic keeps results in Kafka Streams whose right row is gone.
            kind = "left" if self.roots(n.id) & self.roots(t.id) else r.choice(["inner", "left"])
            return self.add(Node(self.id(), "table", n.k, v, store=st, versioned=ver), "foreignKeyJoin", kind=kind, left=n.id, right=t.id, selector=r.choice(sel), joiner=j, **(m or {}))
        if o == "suppress":
            sup = r.choice([{"until": "timeLimit", "ms": r.choice([0, 5, 30]), **r.choice([{}, {}, {"maxRecords": 2, "full": "emitEarly"}, {"maxBytes": 300, "full": "emitEarly"}])}, {"until": "timeLimit", "ms": 20, "maxRecords": r.choice([3, 20]), "full": "shutDown"}])
            if n.agg and n.win and n.win["type"] != "unlimited" and self.chance(.7): sup = {"until": "windowCloses", **r.choice([{}, {}, {"maxRecords": 30, "full": "shutDown"}])}
            if self.chance(.1): sup["logging"] = False
            return self.add(Node(self.id(), "table", n.k, n.v, win=n.win, held=True), o, n.id, suppress=sup)

    def roots(self, id):
        """the topics that a node's records come from"""
        for o in self.ops:
            if o.get("id") == id or id in [b["id"] for b in o.get("branches", [])] or o.get("default", {}).get("id") == id:
                if "topic" in o and o["op"] in ("stream", "table"):
                    through = [x["from"] for x in self.ops if x["op"] == "to" and x["topic"] == o["topic"]]
                    return {o["topic"]}.union(*[self.roots(x) for x in through])
                above = [o[x] for x in ("from", "with", "left", "right") if x in o] + [x["from"] for x in o.get("inputs", [])]
                return set().union(*[self.roots(x) for x in above])
        return set()

    def finish(self):
        for n in list(self.nodes):
            if n.id in self.used: continue
            f = n.id
            if n.kind == "table":
                f = self.id()
                self.ops.append({"op": "toStream", "id": f, "from": n.id})
            self.outs += 1
            self.ops.append({"op": "to", "from": f, "topic": "out%d" % self.outs})

    def queries(self):
        """each store that has a name, asked for everything at the end"""
        q = []
        for o in self.ops:
            m = o.get("materialized", {})
            s = m.get("store")
            if s not in self.stores or o["op"] == "globalTable": continue
            n = [x for x in self.nodes if x.id == o["id"]]
            if not n or n[0].k not in ("string",) and not n[0].win: continue
            kind = self.stores[s][0]
            if kind in ("timestampedKeyValue", "keyValue") and n[0].k == "string":
                cmds = ["all", "get a", "range a c", "get k", "count"] if "lru" in m else ["all", "reverseAll", "get a", "range a b", "prefix a", "count"]
                q.append({"query": {"store": s, "command": self.r.choice(cmds)}})
            elif kind == "versioned" and n[0].k == "string": q.append({"query": {"store": s, "command": self.r.choice(["get a", "get a 20", "get b"])}})
            elif kind == "timestampedWindow" and isinstance(n[0].k, dict) and n[0].k.get("timeWindowed") == "string": q.append({"query": {"store": s, "command": self.r.choice(["all", "fetch a 0 60", "fetchAll 0 100"])}})
            elif kind == "session" and isinstance(n[0].k, dict) and n[0].k.get("sessionWindowed") == "string": q.append({"query": {"store": s, "command": self.r.choice(["fetch a", "findSessions a 0 200", "backwardFetch b"])}})
        return q

    def scenario(self):
        r = self.r
        self.source()
        if self.chance(.7): self.source()
        want, tries, done = r.randint(2, 7), 0, 0
        while done < want and tries < 40:
            tries += 1
            before = copy.copy((len(self.ops), len(self.nodes), set(self.used), list(self.topics), dict(self.stores)))
            if self.step() is not None: done += 1
            else:
                del self.ops[before[0]:], self.nodes[before[1]:]
                self.used, self.topics, self.stores = before[2], before[3], before[4]
        self.finish()
        cfg = {}
        if self.cached: cfg["cacheMaxBytes"] = 1000000
        if self.chance(.25): cfg["topologyOptimization"] = r.choice(["all", "all", "reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"])
        if self.chance(.12): cfg["dslStore"] = "inMemory"
        if self.chance(.1): cfg["processingGuarantee"] = "exactly_once_v2"
        if self.chance(.2): cfg["wallClockStart"] = 1000
        h = handlers(r, .5)
        if h: h["processingHandler"] = "logAndContinue"
        cfg.update(h)
        return {"topology": self.ops, "steps": self.steps() + self.queries(), "config": cfg}

    def steps(self):
        r, now, steps = self.r, self.r.randint(0, 25), []
        keys = r.choice(["aab", "abc", "abcAk"])
        late, jump = r.choice([.1, .25, .4]), r.choice([.03, .1])
        for _ in range(r.randint(15, 45)):
            if self.chance(.06): steps.append({"advanceWallClock": r.choice([1, 7, 25])}); continue
            now += r.randint(15, 60) if self.chance(jump) else r.choice([0, 0, 1, 1, 2, 3, 4])
            ts = now if not self.chance(late) else max(0, now - r.choice([1, 2, 5, 8, 12, 25, 40]))
            t, v, e = r.choice(self.topics)
            if e in ("logAndSkip", "usePartitionTime", "partitionTime") and self.chance(.1): ts = -1
            p = {"topic": t, "key": None if self.chance(.05) else r.choice(keys), "value": None if self.chance(.12) else r.choice(VALUES) if v == "string" else r.randint(-3, 6), "timestamp": ts}
            if e == "valueTime" and self.chance(.7): p["value"] = str(ts)
            if self.chance(.2): p["headers"] = [{"key": r.choice("hp"), "value": r.choice(["1", "2", None])}]
            steps.append({"pipe": p})
        return steps
