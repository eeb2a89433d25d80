"""Random scenarios for what is rarely crossed: cogroups over all windows, chains of foreign-key joins, stores that are shared, global or read-only,
queries between records, routes to topics that are read again, failures in every kind of function, all types, names of everything.
Used by random_scenarios.py with the focus "rare"."""
from random_features import WORDS, handlers, out, pipes, stream, table, to


def scenario(r, name, seed, pipeline):
    family = r.choice([cogroups, foreign, failures, failures, types, shared, globals_, sources, named, queried, joined, buffered, held, windowed, versions, punctuated, rows])
    d = family(r)
    d.update(name=name, area="random-rare-" + family.__name__.strip("_"), notes="seed %s" % seed)
    return d


def config(r, optimize=.25, cache=.15, memory=.15):
    cfg = {}
    if r.random() < optimize: cfg["topologyOptimization"] = r.choice(["all", "all", "reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"])
    if r.random() < cache: cfg["cacheMaxBytes"] = 1000000
    if r.random() < memory: cfg["dslStore"] = "inMemory"
    return cfg


# Left out, since the real stores fail there: ranges of sessions in memory whose ends are the wrong way round, records put into timestamped stores.
def window(r, kinds=("tumbling", "hopping", "sliding", "session", "unlimited")):
    return {"tumbling": {"type": "tumbling", "size": r.choice([5, 10]), "grace": r.choice([0, 5, 20])},
            "hopping": {"type": "hopping", "size": 10, "advance": r.choice([3, 5]), "grace": r.choice([0, 4, 20])},
            "sliding": {"type": "sliding", "diff": r.choice([3, 10]), "grace": r.choice([0, 5, 30])},
            "session": {"type": "session", "gap": r.choice([2, 5]), "grace": r.choice([0, 5, 30])},
            "unlimited": {"type": "unlimited", "start": r.choice([0, 20])}}[r.choice(kinds)]


def store(r, name, w=None, p=1, **kw):
    """what a materialized store can be; a store of windows is kept for long, as results that expire are compared elsewhere"""
    if r.random() > p: return {}
    m = {"store": name, **kw}
    if w and w["type"] != "unlimited": m["retentionMs"] = 100000
    x = r.random()
    if x < .2: m["storeType"] = "inMemory"
    elif x < .3: m["logging"] = False
    elif x < .4: m["caching"] = False
    elif x < .5 and not w: m.update(supplier=True, **r.choice([{"plain": True}, {"storeType": "inMemory"}, {}]))
    elif x < .55 and not w: m["lru"] = 2
    return {"materialized": m}


def cogroups(r):
    n = r.randint(1, 3)
    ops, inputs = [], []
    aggs = r.choice([["concat", "concatKey", "concat"], ["sum", "sum", "sum"], ["collectList"] * 3, ["count"] * 3, ["nullInit", "concat", "nullOn:b"]])
    v = "int64" if aggs[0] == "sum" else "string"
    for i in range(n):
        topic = "in%d" % r.choice([i, i, 0])
        if not any(o.get("topic") == topic for o in ops): ops.append(stream("s%d" % i, topic, value=v))
        s = [o["id"] for o in ops if o.get("topic") == topic][0]
        if r.random() < .35:
            ops.append({"op": "selectKey", "id": "k%d" % i, "from": s, "selector": r.choice(["keyUpper", "constant:all"])})
            s = "k%d" % i
        ops.append({"op": "groupByKey", "id": "g%d" % i, "from": s, **({"named": "grp%d" % i} if r.random() < .3 else {})})
        inputs.append({"from": "g%d" % i, "aggregator": aggs[i]})
    w = window(r) if r.random() < .7 else None
    if w and w["type"] == "session": inputs = [dict(i, aggregator="concat" if i["aggregator"].startswith("nullOn") else i["aggregator"]) for i in inputs]
    ops.append({"op": "cogroup", "id": "c", "inputs": inputs, **({"windows": w} if w else {}), **store(r, "cg", w), **({"named": "together"} if r.random() < .2 else {})})
    after = r.choice(["out", "filter", "map", "suppress", "regroup"])
    if after == "filter": ops += [{"op": "filter", "id": "f", "from": "c", "predicate": "notNull"}] + out("f")
    elif after == "map": ops += [{"op": "mapValues", "id": "f", "from": "c", "mapper": "toString", **store(r, "mapped", w, .4 if not w else 0)}] + out("f")
    elif after == "suppress" and w and w["type"] != "unlimited": ops += [{"op": "suppress", "id": "f", "from": "c", "suppress": {"until": "windowCloses"}}] + out("f")
    elif after == "regroup" and not w: ops += [{"op": "groupBy", "id": "r", "from": "c", "selector": "key"}, {"op": "count", "id": "f", "from": "r", **store(r, "again")}] + out("f")
    else: ops += out("c")
    topics = [(o["topic"], v) for o in ops if o["op"] == "stream"]
    return {"topology": ops, "steps": pipes(r, topics, jump=.1), "config": config(r)}


def foreign(r):
    """foreign-key joins, of tables of all kinds, one behind the other"""
    def src(i, topic):
        m = r.choice([{}, {"materialized": {"store": "st" + i, "lru": 2}}, {"materialized": {"store": "st" + i}}, {"materialized": {"store": "st" + i, "storeType": "inMemory"}}, {"materialized": {"store": "st" + i, "logging": False}}, {"materialized": {"store": "st" + i, "versionedHistoryMs": 100}}])
        return table(i, topic, **m)
    ops = [src("a", "left"), src("b", "right")]
    left, right = "a", "b"
    if r.random() < .15: right = "a"
    if r.random() < .3: ops.append({"op": r.choice(["filter", "mapValues"]), "id": "af", "from": "a"}); ops[-1].update({"predicate": "contains:1"} if ops[-1]["op"] == "filter" else {"mapper": "append:!"}); left = "af"
    if right == "b" and r.random() < .3: ops.append({"op": r.choice(["filter", "mapValues"]), "id": "bf", "from": "b"}); ops[-1].update({"predicate": "longerThan:1"} if ops[-1]["op"] == "filter" else {"mapper": "nullIf:b"}); right = "bf"
    sel = lambda: r.choice(["firstChar", "firstChar", "prefixBefore:/", "value", "keyUpper"])
    j = {"op": "foreignKeyJoin", "id": "j", "kind": r.choice(["inner", "left"]), "left": left, "right": right, "selector": sel(), "joiner": r.choice(["concat", "jsonPair", "nullIfNoRight", "right", "left"]), **store(r, "res")}
    j.setdefault("materialized", {"store": "res"})
    for k in ("lru", "caching"): j["materialized"].pop(k, None)
    if r.random() < .3: j["named"] = "fk"
    ops.append(j)
    if right == "a": ops.append({"op": "toStream", "id": "bs", "from": "b"}); ops.append(to("bs", "rights"))
    last = "j"
    after = r.choice(["out", "again", "filter", "group", "tt", "same", "out"])
    if after == "again" and j["joiner"] != "jsonPair": ops.append({"op": "foreignKeyJoin", "id": "j2", "kind": r.choice(["inner", "left"]), "left": "j", "right": "b", "selector": "firstChar", "joiner": "concat", "materialized": {"store": "res2"}}); last = "j2"
    elif after == "filter": ops.append({"op": "filter", "id": "f", "from": "j", "predicate": "longerThan:3" if j["joiner"] != "jsonPair" else "hasField:r", **store(r, "fil", None, .5)}); last = "f"
    elif after == "group": ops += [{"op": "groupBy", "id": "g", "from": "j", "selector": "key"}, {"op": "aggregate", "id": "c", "from": "g", "aggregator": "collectList" if j["joiner"] == "jsonPair" else "concat", **store(r, "agg")}]; last = "c"
    elif after == "tt" and j["joiner"] != "jsonPair": ops.append({"op": "tableTableJoin", "id": "t", "kind": r.choice(["inner", "left", "outer"]), "left": "j", "right": "a", "joiner": "concat", **store(r, "tt", None, .5)}); last = "t"
    elif after == "same": ops.append({"op": "foreignKeyJoin", "id": "j3", "kind": "left", "left": left, "right": right, "selector": "firstChar", "joiner": "concat", "materialized": {"store": "res3"}}); ops += out("j3", "out3")
    ops += out(last)
    keys = ["a", "b", "c", "x", "y", "A", "a1"]
    return {"topology": ops, "steps": pipes(r, ["left", "left", "right"], values=["a1", "a2", "b1", "b", "x/1", "y/2", "x/2", "c", ""], keys=keys, nulls=.2, spread=25), "config": config(r)}


def failures(r):
    """a failure in every kind of function, before and behind repartition topics, in tables, joins and serdes"""
    strict = r.random() < .4
    v = "strictString" if strict else "string"
    vals = WORDS + ["bad", "bad"] + (["x!bad", "y!raw"] if strict else [])
    where = r.choice(["tablemap", "tablefilter", "group", "tablegroup", "fksel", "joiner", "ssjoiner", "reduce", "route", "global", "aggserde", "two", "gsel", "flat", "ttjoiner", "close"])
    ops, topics = [stream("s", "in", value=v)], ["in"]
    if where in ("tablemap", "tablefilter", "tablegroup"):
        ops = [table("t", "in", value=v, **({"materialized": {"store": "tab"}} if r.random() < .5 else {}))]
        if where == "tablemap": ops += [{"op": "mapValues", "id": "m", "from": "t", "mapper": "failOn:bad", **({"materialized": {"store": "m"}} if r.random() < .5 else {})}] + out("m")
        elif where == "tablefilter": ops += [{"op": "filter", "id": "m", "from": "t", "predicate": "failOn:bad", **({"materialized": {"store": "m"}} if r.random() < .5 else {})}] + out("m")
        else: ops += [{"op": "groupBy", "id": "g", "from": "t", "selector": r.choice(["failOn:bad", "value"]), "mapper": r.choice(["failOn:a1", "identity"])}, {"op": "reduce", "id": "m", "from": "g", "reducer": "concat", "materialized": {"store": "agg"}}] + out("m")
    elif where == "group": ops += [{"op": "groupBy", "id": "g", "from": "s", "selector": r.choice(["failOn:bad", "value"])}, {"op": "count", "id": "m", "from": "g", "materialized": {"store": "agg"}}] + out("m")
    elif where == "reduce": ops += [{"op": "groupByKey", "id": "g", "from": "s"}, {"op": "reduce", "id": "m", "from": "g", "reducer": "concat", "materialized": {"store": "agg"}}] + out("m")
    elif where == "aggserde": ops += [{"op": "selectKey", "id": "k", "from": "s", "selector": "value"}, {"op": "repartition", "id": "rp", "from": "k"}, {"op": "toTable", "id": "m", "from": "rp", "materialized": {"store": "tab"}}] + out("m")
    elif where == "fksel":
        ops = [table("a", "in", value=v), table("b", "right", value=v), {"op": "foreignKeyJoin", "id": "j", "kind": r.choice(["inner", "left"]), "left": "a", "right": "b", "selector": r.choice(["failOn:bad", "value"]), "joiner": r.choice(["concat", "failOnRight:b"]), "materialized": {"store": "res"}}] + out("j")
        topics = ["in", "right"]
    elif where == "ttjoiner":
        ops = [table("a", "in", value=v), table("b", "right", value=v), {"op": "tableTableJoin", "id": "j", "kind": r.choice(["inner", "left", "outer"]), "left": "a", "right": "b", "joiner": "failOnRight:b", **({"materialized": {"store": "res"}} if r.random() < .5 else {})}] + out("j")
        topics = ["in", "right"]
    elif where == "joiner":
        ops += [table("t", "right", value=v), {"op": "streamTableJoin", "id": "j", "kind": r.choice(["inner", "left"]), "left": "s", "right": "t", "joiner": "failOnRight:b"}, to("j")]
        topics = ["in", "right"]
    elif where == "ssjoiner":
        ops += [stream("t", "right", value=v), {"op": "streamStreamJoin", "id": "j", "kind": r.choice(["inner", "left", "outer"]), "left": "s", "right": "t", "joiner": "failOnRight:b", "windows": {"before": 10, "after": 10, "grace": r.choice([0, 5])}}, to("j")]
        topics = ["in", "right"]
    elif where == "route": ops += [{"op": "to", "from": "s", "topicFrom": {"prefix": "o-", "selector": r.choice(["failOn:bad", "firstChar", "key"])}}]
    elif where in ("global", "gsel"):
        ops += [{"op": "globalTable", "id": "g", "topic": "glob", "key": "string", "value": v}, {"op": "streamGlobalTableJoin", "id": "j", "kind": r.choice(["inner", "left"]), "left": "s", "right": "g", "selector": "failOn:bad" if where == "gsel" else "firstChar", "joiner": "failOnRight:b"}, to("j")]
        topics = ["in", "glob"]
    elif where == "flat": ops += [{"op": "flatMapValues", "id": "f", "from": "s", "fn": "repeat:2"}, {"op": "peek", "id": "p", "from": "f", "label": "seen"}, {"op": "mapValues", "id": "m", "from": "p", "mapper": "failOn:bad"}, to("m"), to("p", "all")]
    elif where == "close": ops += [{"op": "groupByKey", "id": "g", "from": "s"}, {"op": "windowedBy", "id": "w", "from": "g", "windows": {"type": "tumbling", "size": 10, "grace": 0}}, {"op": "aggregate", "id": "a", "from": "w", "aggregator": "concat", "materialized": {"store": "agg", "retentionMs": 100000}}, {"op": "suppress", "id": "x", "from": "a", "suppress": {"until": "windowCloses"}}, {"op": "mapValues", "id": "m", "from": "x", "mapper": "failOn:0+bad"}] + out("m")
    else: ops += [{"op": "mapValues", "id": "m", "from": "s", "mapper": "failOn:bad"}, to("m"), {"op": "filter", "id": "f", "from": "s", "predicate": "failOn:a1"}, to("f", "out2"), {"op": "selectKey", "id": "k", "from": "s", "selector": "failOn:b1"}, {"op": "repartition", "id": "rp", "from": "k"}, {"op": "mapValues", "id": "m2", "from": "rp", "mapper": "failOn:b"}, to("m2", "out3")]
    cfg = {"deserializationHandler": r.choice(["logAndContinue"] * 3 + ["logAndFail"]), "processingHandler": r.choice(["logAndContinue"] * 4 + ["logAndFail"]), "productionHandler": r.choice(["continue"] * 3 + ["default"])}
    if r.random() < .6: cfg["dlqTopic"] = "dlq"
    steps = pipes(r, topics, values=vals)
    for st in steps:
        # what can't be decoded
        if "pipe" in st and strict and r.random() < .05: st["pipe"].pop("value"); st["pipe"]["valueText"] = "z!raw"
        elif "pipe" in st and isinstance(st["pipe"].get("value"), str) and "!raw" in st["pipe"]["value"]: st["pipe"]["valueText"] = st["pipe"].pop("value")
        elif "pipe" in st and isinstance(st["pipe"].get("value"), str) and "!bad" in st["pipe"]["value"]: st["pipe"]["valueText"] = st["pipe"].pop("value")
    return {"topology": ops, "steps": steps, "config": {**cfg, **config(r, .15, .1)}}


def types(r):
    """keys and values of all types"""
    k = r.choice(["int64", "int32", "float64", "bytes", "json", "string"])
    v = r.choice(["int64", "int32", "float64", "bytes", "json", "string"])
    sample = {"int64": [0, 1, -1, 7, 2 ** 40], "int32": [0, 1, -1, 70000], "float64": [0.0, 1.5, -2.25, 1e300], "bytes": ["", "AA==", "/w==", "YWI=", "AAE="], "json": [1, "x", {"b": 1, "a": [1, None]}, [], True], "string": ["", "a", "b", "\u00e9", "z\u0000"]}
    ops = [stream("s", "in", k, v)]
    kind = r.choice(["count", "table", "join", "window", "session", "repartition", "group", "last", "tt"])
    topics = ["in"]
    if kind == "count": ops += [{"op": "groupByKey", "id": "g", "from": "s"}, {"op": "count", "id": "c", "from": "g", **store(r, "st")}] + out("c")
    elif kind == "last": ops += [{"op": "groupByKey", "id": "g", "from": "s"}, {"op": "aggregate", "id": "c", "from": "g", "aggregator": r.choice(["last", "collectList", "concat", "concatKey"]), **store(r, "st")}] + out("c")
    elif kind == "table": ops += [{"op": "toTable", "id": "c", "from": "s", **store(r, "st")}, {"op": "mapValues", "id": "m", "from": "c", "mapper": r.choice(["toString", "withKey", "keyToString", "wrapJson:v"])}] + out("m") + out("c", "out2")
    elif kind == "join": ops += [table("t", "tab", k, v), {"op": "streamTableJoin", "id": "j", "kind": "left", "left": "s", "right": "t", "joiner": r.choice(["concat", "withKey", "right", "jsonPair"])}, to("j")]; topics.append("tab")
    elif kind == "tt": ops = [table("t", "in", k, v), table("u", "tab", k, v), {"op": "tableTableJoin", "id": "j", "kind": "outer", "left": "t", "right": "u", "joiner": r.choice(["concat", "left", "jsonPair"]), "materialized": {"store": "j"}}] + out("j"); topics.append("tab")
    elif kind in ("window", "session"):
        w = window(r, ("session",) if kind == "session" else ("tumbling", "hopping", "sliding"))
        ops += [{"op": "groupByKey", "id": "g", "from": "s"}, {"op": "windowedBy", "id": "w", "from": "g", "windows": w}, {"op": r.choice(["count", "reduce"]), "id": "c", "from": "w", **store(r, "st", w)}]
        if ops[-1]["op"] == "reduce": ops[-1]["reducer"] = r.choice(["last", "first"])
        ops += out("c")
    elif kind == "group": ops += [{"op": "selectKey", "id": "k", "from": "s", "selector": "value"}, {"op": "groupByKey", "id": "g", "from": "k"}, {"op": "reduce", "id": "c", "from": "g", "reducer": "last", **store(r, "st")}] + out("c")
    else: ops += [{"op": "map", "id": "m", "from": "s", "key": "value", "valueSelector": "key"}, {"op": "repartition", "id": "rp", "from": "m", **({"named": "over"} if r.random() < .5 else {})}, {"op": "mapValues", "id": "x", "from": "rp", "mapper": r.choice(["toString", "withKey"])}, to("x")]
    steps, now = [], 0
    for _ in range(r.randint(15, 35)):
        now += r.choice([0, 1, 3, 20])
        p = {"topic": r.choice(topics), "key": r.choice(sample[k]), "value": r.choice(sample[v] + [None]), "timestamp": max(0, now - r.choice([0, 0, 4, 15]))}
        if r.random() < .04: p.pop("value"); p["valueBase64"] = "AAECAw=="
        if r.random() < .02: p.pop("key"); p["keyBase64"] = "AAECAwQ="
        if r.random() < .03: p["key"] = None; p.pop("keyBase64", None)
        steps.append({"pipe": p})
    return {"topology": ops, "steps": steps, "config": {**handlers(r, .7), **config(r)}}


STORES = [{"kind": "keyValue"}, {"kind": "timestampedKeyValue"}, {"kind": "keyValue", "type": "inMemory"}, {"kind": "keyValue", "type": "lru", "maxEntries": 2}, {"kind": "timestampedKeyValue", "type": "inMemory"},
          {"kind": "window", "retentionMs": 100000, "windowMs": 10}, {"kind": "timestampedWindow", "retentionMs": 100000, "windowMs": 10}, {"kind": "window", "retentionMs": 100000, "windowMs": 10, "type": "inMemory"},
          {"kind": "session", "retentionMs": 100000}, {"kind": "session", "retentionMs": 100000, "type": "inMemory"}, {"kind": "versioned", "historyMs": 50}, {"kind": "versioned", "historyMs": 1000, "segmentMs": 100}]


def command(r, kind, now):
    """one store command"""
    K = lambda: r.choice(["a", "b", "ab", "c"])
    B = lambda: r.choice(["a", "b", "ab", "c", "-", "-"])
    V = lambda: r.choice(["v%d" % r.randint(0, 99), "v%d" % r.randint(0, 99), "-"])
    T = lambda: max(0, now - r.choice([0, 0, 1, 7, 40]))
    # The real stores fail on some ranges of sessions in memory.
    lo = max(0, now - r.choice([0, 5, 20, 60])); hi = lo + r.choice([0, 5, 30, 100])
    if kind in ("keyValue", "timestampedKeyValue"):
        ts = " %d" % T() if kind != "keyValue" else ""
        return r.choice(["put %s %s%s" % (K(), V(), ts)] * 6 + ["putIfAbsent %s w%s" % (K(), ts), "delete " + K(), "get " + K(), "range %s %s" % (B(), B()), "reverseRange %s %s" % (B(), B()), "all", "reverseAll", "count", "prefix " + r.choice(["a", "ab", "z"])] + ([] if ts else ["putAll a x%d b y c z" % now]))
    if kind in ("window", "timestampedWindow"):
        ts = " %d" % T() if kind != "window" else ""
        return r.choice(["put %s %s %d%s" % (K(), V(), T(), ts)] * 8 + ["get %s %d" % (K(), lo), "fetch %s %d %d" % (K(), lo, hi), "backwardFetch %s %d %d" % (K(), lo, hi), "fetchRange %s %s %d %d" % (B(), B(), lo, hi), "backwardFetchRange %s %s %d %d" % (B(), B(), lo, hi), "fetchAll %d %d" % (lo, hi), "backwardFetchAll %d %d" % (lo, hi), "all", "backwardAll"])
    if kind == "session":
        e = T(); s = max(0, e - r.choice([0, 3, 10]))
        return r.choice(["put %s %s %d %d" % (K(), V(), s, e)] * 7 + ["remove %s %d %d" % (K(), s, e), "get %s %d %d" % (K(), s, e), "fetch " + K(), "backwardFetch " + K(), "fetchRange %s %s" % tuple(sorted((K(), K()))), "backwardFetchRange %s %s" % tuple(sorted((K(), K()))), "findSessions %s %d %d" % (K(), lo, hi), "backwardFindSessions %s %d %d" % (K(), lo, hi), "findSessionsRange %s %s %d %d" % (*sorted((K(), K())), lo, hi)])
    return r.choice(["put %s %s %d" % (K(), V(), T())] * 6 + ["delete %s %d" % (K(), T()), "get " + K(), "get %s %d" % (K(), lo), "get %s %d" % (K(), hi)])


def shared(r):
    """a store of any kind, written by one or two processors, connected in all ways"""
    st = dict(r.choice(STORES), name="st", key="string", value="string")
    if r.random() < .15: st["logging"] = False
    if r.random() < .15 and st["kind"] != "versioned": st["caching"] = True
    proc = {"kind": "storeCommands", "store": "st"}
    way = r.choice(["add", "provide", "twice", "papi", "papi2"])
    if way == "papi": ops = [{"op": "addSource", "name": "src", "topic": "in", "key": "string", "value": "string"}, {"op": "addProcessor", "name": "p", "processor": proc, "parents": ["src"]}, {"op": "addStore", "store": st, "processors": ["p"]}, {"op": "addSink", "name": "k", "topic": "out", "parents": ["p"]}]
    elif way == "papi2": ops = [{"op": "addSource", "name": "src", "topics": ["in", "in2"], "key": "string", "value": "string"}, {"op": "addProcessor", "name": "p", "processor": proc, "parents": ["src"]}, {"op": "addStore", "store": st, "processors": ["p"]}, {"op": "addSource", "name": "src2", "topic": "in3", "key": "string", "value": "string"}, {"op": "addProcessor", "name": "p2", "processor": proc, "parents": ["src2"]}, {"op": "connect", "processor": "p2", "stores": ["st"]}, {"op": "addSink", "name": "k", "topic": "out", "parents": ["p", "p2"]}]
    else:
        ops = [stream("s", "in"), stream("s2", "in2")]
        if way == "add": ops += [{"op": "addStateStore", "store": st}, {"op": "process", "id": "p", "from": "s", "processor": proc, "stores": ["st"]}, to("p")]
        elif way == "provide": ops += [{"op": "process", "id": "p", "from": "s", "processor": proc, "provideStores": [st], **({"named": "mine"} if r.random() < .4 else {})}, to("p")]
        else: ops += [{"op": "addStateStore", "store": st}, {"op": "process", "id": "p", "from": "s", "processor": proc, "stores": ["st"]}, {"op": "process", "id": "q", "from": "s2", "processor": proc, "stores": ["st"], "named": "other"}, to("p"), to("q", "out2")]
        if not any(o.get("from") == "s2" for o in ops): ops.append(to("s2", "copy"))
    topics = [t for o in ops if o["op"] in ("addSource", "stream") for t in o.get("topics", [o.get("topic")])]
    if way in ("add", "provide"): topics = ["in"]
    steps, now = [], 0
    for i in range(r.randint(20, 50)):
        now += r.choice([0, 1, 2, 5, 30])
        steps.append({"pipe": {"topic": r.choice(topics), "key": "c", "value": command(r, st["kind"], now), "timestamp": i, **({"headers": [{"key": "h", "value": "1"}]} if r.random() < .2 else {})}})
        if r.random() < .15:
            q = command(r, st["kind"], now)
            if q.split()[0] not in ("put", "putIfAbsent", "delete", "remove", "putAll"): steps.append({"query": {"store": "st", "command": q}})
    return {"topology": ops, "steps": steps, "config": {"cacheMaxBytes": 1000000} if st.get("caching") else {}}


def globals_(r):
    """global tables and stores, read-only stores, read by processors and joins"""
    kind = r.choice(["table", "store", "papi", "readonly", "two"])
    kv = {"name": "g", "kind": "keyValue", "key": "string", "value": "string", **r.choice([{}, {"type": "inMemory"}])}
    if kind in ("table", "two"):
        ops = [stream("s", "in"), {"op": "globalTable", "id": "g", "topic": "glob", "key": "string", "value": "string", **r.choice([{}, {"materialized": {"store": "g"}}, {"materialized": {"store": "g", "storeType": "inMemory"}}])}]
        if "materialized" in ops[-1]: ops += [{"op": "process", "id": "e", "from": "s", "processor": {"kind": "enrich", "store": "g"}}, to("e", "rich")]
        ops += [{"op": "streamGlobalTableJoin", "id": "j", "kind": r.choice(["inner", "left"]), "left": "s", "right": "g", "selector": r.choice(["value", "firstChar", "nullKey", "prefixBefore:/"]), "joiner": "withKey", **({"named": "gj"} if r.random() < .4 else {})}, to("j")]
        if kind == "two": ops += [{"op": "globalTable", "id": "g2", "topic": "glob2", "key": "string", "value": "int64"}, {"op": "streamGlobalTableJoin", "id": "j2", "kind": "left", "left": "j", "right": "g2", "selector": "key", "joiner": "concat"}, to("j2", "out2")]
    elif kind == "store": ops = [{"op": "addGlobalStore", "store": kv, "topic": "glob", "key": "string", "value": "string", "processor": {"kind": "storePut", "store": "g"}}, stream("s", "in"), {"op": "process", "id": "e", "from": "s", "processor": {"kind": "enrich", "store": "g"}}, to("e")]
    else:
        op = "addGlobalProcessorStore" if kind == "papi" else "addReadOnlyStore"
        ops = [{"op": op, "store": kv, "sourceName": "gs", "topic": "glob", "name": "gp", "key": "string", "value": "string", "processor": {"kind": "storePut", "store": "g"}},
               {"op": "addSource", "name": "src", "topic": "in", "key": "string", "value": "string"}, {"op": "addProcessor", "name": "e", "processor": {"kind": "enrich", "store": "g"}, "parents": ["src"]}]
        if kind == "readonly": ops.append({"op": "connect", "processor": "e", "stores": ["g"]})
        ops.append({"op": "addSink", "name": "k", "topic": "out", "parents": ["e"]})
    topics = ["in", "in", "glob"] + ([("glob2", "int64")] if kind == "two" else [])
    steps = pipes(r, topics, nulls=.12)
    if "materialized" in ops[1] or kind not in ("table", "two"):
        for i in range(len(steps) - 1, 0, -4): steps.insert(i, {"query": {"store": "g", "command": r.choice(["get a", "all", "range a b", "reverseAll"])}})
    return {"topology": ops, "steps": steps, "config": {**config(r, .2, .1), **handlers(r, .2)}}


def sources(r):
    """patterns, lists of topics, merges, topics that are written and read again"""
    ops = [r.choice([{"op": "stream", "id": "s0", "pattern": r.choice(["in-.*", "in-[ab]"]), "key": "string", "value": "string"}, {"op": "stream", "id": "s0", "topics": ["in-a", "in-b"], "key": "string", "value": "string"}])]
    if "pattern" in ops[0] and r.random() < .4: ops += [{"op": "stream", "id": "s9", "pattern": r.choice(["in-.*", "in-a", ".*-b", "in.+"]), "key": "string", "value": "string"}, {"op": "process", "id": "x9", "from": "s9", "processor": {"kind": "context"}}, to("x9", "ctx9")]
    if r.random() < .3: ops[0]["timestampExtractor"] = r.choice(["plus:5", "logAndSkip", "usePartitionTime"])
    if r.random() < .3: ops[0]["offsetReset"] = r.choice(["earliest", "latest"])
    if r.random() < .4: ops[0]["named"] = "src"
    ops.append(stream("s1", "other"))
    cur = "s0"
    if r.random() < .6: ops.append({"op": "merge", "id": "m", "from": "s0", "with": "s1", **({"named": "both"} if r.random() < .4 else {})}); cur = "m"
    if r.random() < .4: ops.append({"op": "process", "id": "x", "from": cur, "processor": {"kind": "context"}}); ops.append(to("x", "ctx"))
    if r.random() < .5: ops += [to(cur, "mid"), stream("s2", "mid", **({"timestampExtractor": "plus:1"} if r.random() < .4 else {})), {"op": "mapValues", "id": "u", "from": "s2", "mapper": "upper"}, to("u", "out2")]
    if r.random() < .4: ops += [{"op": "to", "from": cur, "topicFrom": {"prefix": "r-", "selector": r.choice(["firstChar", "key", "constant:x"])}}, stream("s3", "r-a"), {"op": "groupByKey", "id": "g3", "from": "s3"}, {"op": "count", "id": "c3", "from": "g3", "materialized": {"store": "c3"}}] + out("c3", "out3")
    ops += [{"op": "groupByKey", "id": "g", "from": cur}, {"op": "count", "id": "c", "from": "g", **store(r, "c")}] + out("c")
    if r.random() < .5: ops += [{"op": "split", "from": cur, "named": "sp-", "branches": [{"id": "b1", "predicate": "contains:a", "name": "A"}, {"id": "b2", "predicate": "startsWith:b"}], **r.choice([{}, {"default": {"id": "b3", "name": "rest"}}, {"default": {"id": "b3"}}])}, {"op": "merge", "id": "bm", "from": "b1", "with": "b2"}, to("bm", "merged")]
    return {"topology": ops, "steps": pipes(r, ["in-a", "in-b", "other", "other"]), "config": {**config(r), **handlers(r, .2)}}


def named(r):
    """names of everything, merged and reused topics; no records are needed"""
    ops, nm = [], (lambda n: {"named": n} if r.random() < .6 else {})
    ops.append(stream("s", "in", **nm("source")))
    ops.append(r.choice([{"op": "map", "key": "keyUpper"}, {"op": "selectKey", "selector": "firstChar"}, {"op": "flatMap", "fn": "dup:2"}]))
    ops[-1].update(id="k", **{"from": "s"}, **nm("rekey"))
    cur = "k"
    for n in range(r.randint(0, 3)):
        ops.append(dict(r.choice([{"op": "filter", "predicate": "notNull"}, {"op": "mapValues", "mapper": "upper"}, {"op": "peek", "label": "l"}, {"op": "flatMapValues", "fn": "splitWords"}, {"op": "filterNot", "predicate": "contains:b"}, {"op": "processValues", "processor": {"kind": "passthrough"}}]), id="x%d" % n, **{"from": cur}, **nm("step%d" % n)))
        cur = "x%d" % n
    for n in range(r.randint(1, 3)):
        way = r.choice(["count", "window", "join", "table", "repartition", "stjoin", "session", "toTable"])
        g = {"op": "groupByKey", "id": "g%d" % n, "from": cur, **nm("grouped%d" % n)}
        if way == "count": ops += [g, {"op": "count", "id": "c%d" % n, "from": g["id"], **nm("counted%d" % n), **r.choice([{}, {"materialized": {"store": "cs%d" % n}}])}, {"op": "toStream", "id": "o%d" % n, "from": "c%d" % n, **nm("str%d" % n)}, dict(to("o%d" % n, "out%d" % n), **nm("sink%d" % n))]
        elif way in ("window", "session"):
            w = window(r, ("session",) if way == "session" else ("tumbling", "hopping", "sliding"))
            closed = r.random() < .2 # kept for long: results that expire before they are sent are a loss of Kafka Streams
            ops += [g, {"op": "windowedBy", "id": "w%d" % n, "from": g["id"], "windows": w, **({"emit": "onWindowClose"} if closed else {})}, {"op": r.choice(["count", "reduce"]), "id": "c%d" % n, "from": "w%d" % n, **nm("counted%d" % n), **({} if r.random() < .5 and not closed else {"materialized": {"store": "cs%d" % n, "retentionMs": 100000}})}]
            if ops[-1]["op"] == "reduce": ops[-1]["reducer"] = "last"
            if r.random() < .4: ops.append({"op": "suppress", "id": "z%d" % n, "from": "c%d" % n, "suppress": {"until": "windowCloses"}, **nm("held%d" % n)}); ops += out("z%d" % n, "out%d" % n)
            else: ops += out("c%d" % n, "out%d" % n)
        elif way == "join": ops += [stream("t%d" % n, "in%d" % n), {"op": "streamStreamJoin", "id": "j%d" % n, "kind": r.choice(["inner", "left", "outer"]), "left": cur, "right": "t%d" % n, "joiner": "concat", "windows": {"before": 5, "after": 5, "grace": 3}, **nm("joined%d" % n), **r.choice([{}, {"storeName": "js%d" % n}])}, dict(to("j%d" % n, "out%d" % n), **nm("sink%d" % n))]
        elif way == "table": ops += [table("t%d" % n, "tab%d" % n, **nm("tsrc%d" % n), **r.choice([{}, {"materialized": {"store": "ts%d" % n}}])), {"op": "filter", "id": "tf%d" % n, "from": "t%d" % n, "predicate": "notNull", **nm("tfil%d" % n), **r.choice([{}, {"materialized": {"store": "fs%d" % n}}, {"materialized": {}}])}, {"op": "mapValues", "id": "tm%d" % n, "from": "tf%d" % n, "mapper": "upper", **nm("tmap%d" % n), **r.choice([{}, {"materialized": {}}])}, {"op": "groupBy", "id": "tg%d" % n, "from": "tm%d" % n, "selector": "firstChar", **nm("tgrp%d" % n)}, {"op": "reduce", "id": "tc%d" % n, "from": "tg%d" % n, "reducer": "concat", **nm("tred%d" % n)}] + out("tc%d" % n, "out%d" % n)
        elif way == "stjoin": ops += [table("t%d" % n, "tab%d" % n), {"op": "streamTableJoin", "id": "j%d" % n, "kind": "left", "left": cur, "right": "t%d" % n, "joiner": "concat", **nm("joined%d" % n)}, to("j%d" % n, "out%d" % n)]
        elif way == "toTable": ops += [{"op": "toTable", "id": "t%d" % n, "from": cur, **nm("tab%d" % n), **r.choice([{}, {"materialized": {"store": "tt%d" % n}}])}, table("u%d" % n, "tab%d" % n), {"op": "tableTableJoin", "id": "j%d" % n, "kind": "outer", "left": "t%d" % n, "right": "u%d" % n, "joiner": "concat", **nm("joined%d" % n), **r.choice([{}, {"materialized": {"store": "jt%d" % n}}])}] + out("j%d" % n, "out%d" % n)
        else: ops += [{"op": "repartition", "id": "r%d" % n, "from": cur, **nm("rep%d" % n), **({"partitions": 3} if r.random() < .3 else {})}, to("r%d" % n, "out%d" % n)]
    cfg = config(r, .6)
    if r.random() < .3: cfg["ensureExplicitNaming"] = True
    if r.random() < .2: cfg["applicationId"] = "my-app"
    topics = ["in"] + [o["topic"] for o in ops if o["op"] in ("table", "stream") and o["topic"] != "in"]
    return {"topology": ops, "steps": pipes(r, topics, n=12), "config": cfg}


def queried(r):
    """the stores of the DSL, asked between records"""
    w = window(r, ("tumbling", "hopping", "session", "sliding"))
    kind = r.choice(["table", "filter", "count", "window", "session", "versioned", "join", "mapped"])
    m = lambda **kw: {"materialized": {"store": "st", **r.choice([{}, {"storeType": "inMemory"}]), **kw}}
    sk = "timestampedKeyValue"
    if kind == "table": ops = [table("t", "in", **m())] + out("t")
    elif kind == "filter": ops = [table("t0", "in"), {"op": "filter", "id": "t", "from": "t0", "predicate": "contains:a", **m()}] + out("t")
    elif kind == "mapped": ops = [table("t0", "in"), {"op": "mapValues", "id": "t", "from": "t0", "mapper": "upper", **m()}] + out("t")
    elif kind == "count": ops = [stream("s", "in"), {"op": "groupByKey", "id": "g", "from": "s"}, {"op": "aggregate", "aggregator": "nullOn:b", "id": "t", "from": "g", **m()}] + out("t")
    elif kind == "versioned": ops = [table("t", "in", materialized={"store": "st", "versionedHistoryMs": r.choice([20, 200])})] + out("t"); sk = "versioned"
    elif kind == "join": ops = [table("a", "in"), table("b", "in2"), {"op": "tableTableJoin", "id": "t", "kind": "outer", "left": "a", "right": "b", "joiner": "concat", **m()}] + out("t")
    else:
        if kind == "session": w = window(r, ("session",)); sk = "session"
        else: w = window(r, ("tumbling", "hopping", "sliding")); sk = "timestampedWindow"
        ops = [stream("s", "in"), {"op": "groupByKey", "id": "g", "from": "s"}, {"op": "windowedBy", "id": "w", "from": "g", "windows": w}, {"op": "aggregate", "aggregator": "concat", "id": "t", "from": "w", **m(retentionMs=r.choice([60, 100000]))}] + out("t")
    steps, now = [], 0
    for st in pipes(r, ["in", "in2"] if kind == "join" else ["in"], keys=["a", "b", "ab", "c"]):
        steps.append(st)
        if "pipe" in st: now = max(now, st["pipe"]["timestamp"])
        if r.random() < .3:
            q = command(r, sk, now)
            if q.split()[0] not in ("put", "putIfAbsent", "delete", "remove", "putAll"): steps.append({"query": {"store": "st", "command": q}})
    return {"topology": ops, "steps": steps, "config": config(r, .1, .15, .1)}


def joined(r):
    """joins behind joins, with grace, out of order, self joins, rekeyed"""
    ops = [stream("a", "in"), stream("b", "in2"), table("t", "tab", **r.choice([{}, {"materialized": {"store": "tab"}}]))]
    def win():
        b, a = r.choice([(5, 5), (10, 0), (0, 10), (3, 12), (12, 3)])
        return {"before": b, "after": a, "grace": r.choice([0, 3, 15])}
    def join(i, l, rt): return {"op": "streamStreamJoin", "id": i, "kind": r.choice(["inner", "left", "outer"]), "left": l, "right": rt, "joiner": "concat", "windows": win(), **({"named": "n" + i} if r.random() < .3 else {}), **r.choice([{}, {}, {"storeType": "inMemory"}, {"storeName": "s" + i}, {"logging": False}])}
    left, right = "a", "b"
    if r.random() < .3: ops.append({"op": "selectKey", "id": "ka", "from": "a", "selector": "firstChar"}); left = "ka"
    if r.random() < .3: ops.append({"op": "selectKey", "id": "kb", "from": "b", "selector": "firstChar"}); right = "kb"
    if r.random() < .15: right = left
    ops.append(join("j", left, right))
    after = r.choice(["out", "again", "table", "count", "rekey", "self"])
    if after == "again": ops += [join("j2", "j", r.choice(["a", "b"])), to("j2", "out2")]
    elif after == "table": ops += [{"op": "streamTableJoin", "id": "j2", "kind": r.choice(["inner", "left"]), "left": "j", "right": "t", "joiner": "concat"}, to("j2", "out2")]
    elif after == "count": w = window(r); ops += [{"op": "groupByKey", "id": "g", "from": "j"}, {"op": "windowedBy", "id": "w", "from": "g", "windows": w}, {"op": "count", "id": "c", "from": "w", **store(r, "c", w)}] + out("c", "out2")
    elif after == "rekey": ops += [{"op": "selectKey", "id": "kj", "from": "j", "selector": "prefixBefore:+"}, join("j2", "kj", "b"), to("j2", "out2")]
    elif after == "self": ops += [join("j2", "j", "j"), to("j2", "out2")]
    ops.append(to("j"))
    return {"topology": ops, "steps": pipes(r, ["in", "in", "in2", "in2", "tab"], spread=20, jump=.1, keys="aab", headers=.3), "config": config(r, .4, .1)}


def buffered(r):
    """stream-table joins with grace: the buffer, late records, versions"""
    hist = r.choice([30, 100, 1000])
    ops = [stream("s", "in"), table("t", "tab", materialized={"store": "tab", "versionedHistoryMs": hist})]
    left = "s"
    if r.random() < .3: ops.append({"op": "selectKey", "id": "k", "from": "s", "selector": "firstChar"}); left = "k"
    ops += [{"op": "streamTableJoin", "id": "j", "kind": "inner" if left == "k" or r.random() < .5 else "left", "left": left, "right": "t", "joiner": r.choice(["concat", "withKey", "right"]), "grace": r.choice([0, 1, 5, 15, 30]), **({"named": "j"} if r.random() < .3 else {})}, to("j")]
    if r.random() < .3: ops += [{"op": "groupByKey", "id": "g", "from": "j"}, {"op": "windowedBy", "id": "w", "from": "g", "windows": window(r, ("tumbling", "session"))}, {"op": "count", "id": "c", "from": "w", "materialized": {"store": "c", "retentionMs": 100000}}] + out("c", "out2")
    steps = [s for s in pipes(r, ["in", "tab"], spread=40, jump=.1, keys="aab", values=["a1", "b1", "c1", "a2"]) if "pipe" not in s or s["pipe"]["key"]]
    return {"topology": ops, "steps": steps, "config": config(r, .2, .1)}


def held(r):
    """suppression behind everything, in front of everything"""
    sup = r.choice([{"until": "timeLimit", "ms": r.choice([0, 5, 30]), **r.choice([{}, {"maxRecords": 2, "full": "emitEarly"}, {"maxBytes": 200, "full": "emitEarly"}])}, {"until": "timeLimit", "ms": 40, "maxRecords": 3, "full": "shutDown"}, {"until": "timeLimit", "ms": 40, "maxBytes": 400, "full": "shutDown"}])
    src = r.choice(["table", "filter", "map", "join", "group", "fk", "window", "totable"])
    ops, topics = [table("t", "in", **r.choice([{}, {"materialized": {"store": "tab"}}]))], ["in"]
    last = "t"
    if src == "filter": ops.append({"op": "filter", "id": "f", "from": "t", "predicate": "contains:a", **store(r, "f", None, .5)}); last = "f"
    elif src == "map": ops.append({"op": "mapValues", "id": "f", "from": "t", "mapper": r.choice(["upper", "nullIf:b"]), **store(r, "f", None, .5)}); last = "f"
    elif src in ("join", "fk"):
        ops.append(table("u", "in2")); topics.append("in2")
        if src == "join": ops.append({"op": "tableTableJoin", "id": "f", "kind": r.choice(["inner", "left", "outer"]), "left": "t", "right": "u", "joiner": "concat", **store(r, "f", None, .5)})
        else: ops.append({"op": "foreignKeyJoin", "id": "f", "kind": "left", "left": "t", "right": "u", "selector": "firstChar", "joiner": "concat", "materialized": {"store": "f"}})
        last = "f"
    elif src == "group": ops += [{"op": "groupBy", "id": "g", "from": "t", "selector": "firstChar"}, {"op": "aggregate", "id": "f", "from": "g", "aggregator": "concat", "materialized": {"store": "agg"}}]; last = "f"
    elif src == "totable": ops = [stream("s", "in"), {"op": "toTable", "id": "t", "from": "s", **store(r, "tab", None, .5)}]
    elif src == "window":
        w = window(r, ("tumbling", "hopping", "session", "sliding"))
        ops = [stream("s", "in"), {"op": "groupByKey", "id": "g", "from": "s"}, {"op": "windowedBy", "id": "w", "from": "g", "windows": w}, {"op": r.choice(["count", "aggregate"]), "aggregator": "concat", "id": "f", "from": "w", "materialized": {"store": "agg", "retentionMs": 100000}}]
        if ops[-1]["op"] == "count": ops[-1].pop("aggregator")
        last = "f"
        if r.random() < .6: sup = {"until": "windowCloses", **r.choice([{}, {"maxRecords": 4, "full": "shutDown"}])}
    ops.append({"op": "suppress", "id": "x", "from": last, "suppress": sup, **({"named": "hold"} if r.random() < .3 else {})})
    after = r.choice(["out", "filter", "group", "join", "map"])
    if src == "window": after = r.choice(["out", "filter", "regroup"])
    if after == "filter": ops += [{"op": "filter", "id": "y", "from": "x", "predicate": "notNull"}] + out("y")
    elif after == "map": ops += [{"op": "mapValues", "id": "y", "from": "x", "mapper": "append:~", **({"materialized": {"store": "y"}} if r.random() < .5 else {})}] + out("y")
    elif after == "group": ops += [{"op": "groupBy", "id": "g2", "from": "x", "selector": r.choice(["firstChar", "constant:all"])}, {"op": "aggregate", "id": "y", "from": "g2", "aggregator": "concat", "materialized": {"store": "y"}}] + out("y")
    elif after == "regroup": ops += [{"op": "groupBy", "id": "g2", "from": "x", "selector": "windowedKey"}, {"op": "count", "id": "y", "from": "g2", "materialized": {"store": "y"}}] + out("y")
    elif after == "join": ops += [table("v", "in3"), {"op": "tableTableJoin", "id": "y", "kind": r.choice(["inner", "left", "outer"]), "left": "x", "right": "v", "joiner": "concat", **store(r, "y", None, .5)}] + out("y"); topics.append("in3")
    else: ops += out("x")
    return {"topology": ops, "steps": pipes(r, topics, keys="aabc", nulls=.12, jump=.1), "config": config(r, .2, .2)}


def windowed(r):
    """windowed results: views of them, aggregated again, closed, written and read again"""
    w = window(r)
    v = r.choice(["string", "int64"])
    ops = [stream("s", "in", value=v)]
    if r.random() < .3: ops.append({"op": "selectKey", "id": "k", "from": "s", "selector": "keyUpper"})
    x = {"op": "windowedBy", "id": "w", "from": "g", "windows": w}
    if w["type"] != "unlimited" and r.random() < .35: x["emit"] = "onWindowClose"
    ops += [{"op": "groupByKey", "id": "g", "from": ops[-1]["id"], **({"named": "grp"} if r.random() < .3 else {})}, x]
    a = {"op": r.choice(["count", "reduce", "aggregate"]), "id": "a", "from": "w", **store(r, "agg", w)}
    if a["op"] == "reduce": a["reducer"] = r.choice(["concat", "last", "first"] if v == "string" else ["sum", "min", "max"])
    if a["op"] == "aggregate": a["aggregator"] = r.choice(["concat", "collectList", "nullInit"] if v == "string" else ["sum", "min", "max", "count"])
    ops.append(a)
    after = r.choice(["values", "filter", "tostream", "table", "string", "process", "group"])
    if after == "values": ops += [{"op": "mapValues", "id": "m", "from": "a", "mapper": r.choice(["toString", "withKey", "keyToString"])}] + out("m")
    elif after == "filter": ops += [{"op": r.choice(["filter", "filterNot"]), "id": "m", "from": "a", "predicate": r.choice(["notNull", "valueEquals:1", "never"])}] + out("m")
    elif after == "string": ops += [{"op": "toStream", "id": "m", "from": "a", "selector": "windowedKeyToString"}, {"op": "groupByKey", "id": "g2", "from": "m"}, {"op": "count", "id": "c2", "from": "g2", "materialized": {"store": "c2"}}] + out("c2")
    elif after == "table": ops += [{"op": "toStream", "id": "m", "from": "a", "selector": "windowedKey"}, {"op": "toTable", "id": "tt", "from": "m", "materialized": {"store": "tt"}}] + out("tt")
    elif after == "process": ops += [{"op": "toStream", "id": "m", "from": "a"}, {"op": "process", "id": "p", "from": "m", "processor": {"kind": "context"}}, to("p")]
    elif after == "group": ops += [{"op": "toStream", "id": "m", "from": "a"}, {"op": "map", "id": "mm", "from": "m", "key": "windowedKey", "mapper": "toString"}, {"op": "groupByKey", "id": "g2", "from": "mm"}, {"op": "reduce", "id": "c2", "from": "g2", "reducer": "concat", "materialized": {"store": "c2"}}] + out("c2")
    else: ops += [{"op": "toStream", "id": "m", "from": "a"}, {"op": "selectKey", "id": "k2", "from": "m", "selector": "windowStart"}, {"op": "repartition", "id": "rp", "from": "k2"}, to("rp")]
    return {"topology": ops, "steps": pipes(r, [("in", v)], keys="aab", jump=.1, spread=30), "config": config(r)}


def versions(r):
    """versioned tables, however they come to be, in front of everything that looks at time"""
    hist = r.choice([10, 50, 1000])
    mat = lambda n: {"materialized": {"store": n, "versionedHistoryMs": hist, **({"segmentMs": 20} if r.random() < .3 else {})}}
    how = r.choice(["source", "totable", "agg", "filter", "map"])
    ops = [stream("s", "in")]
    if how == "source": ops.append(table("t", "tab", **mat("v")))
    elif how == "totable": ops += [stream("u", "tab"), {"op": "toTable", "id": "t", "from": "u", **mat("v")}]
    elif how == "agg": ops += [stream("u", "tab"), {"op": "groupByKey", "id": "g", "from": "u"}, {"op": "aggregate", "id": "t", "from": "g", "aggregator": "concat", **mat("v")}]
    elif how == "filter": ops += [table("t0", "tab", **r.choice([{}, mat("v0")])), {"op": "filter", "id": "t", "from": "t0", "predicate": "contains:a", **mat("v")}]
    else: ops += [table("t0", "tab", **r.choice([{}, mat("v0")])), {"op": "mapValues", "id": "t", "from": "t0", "mapper": "append:!", **mat("v")}]
    after = r.choice(["join", "left", "grace", "group", "tt", "fk", "fkright", "out", "suppress", "filter"])
    ops.append(table("o", "other", **r.choice([{}, {"materialized": {"store": "o", "versionedHistoryMs": 100}}])))
    if after in ("join", "left", "grace"): ops += [{"op": "streamTableJoin", "id": "j", "kind": "left" if after == "left" else "inner", "left": "s", "right": "t", "joiner": "concat", **({"grace": min(hist, 8)} if after == "grace" else {})}, to("j")]
    elif after == "group": ops += [{"op": "groupBy", "id": "gg", "from": "t", "selector": "firstChar"}, {"op": "aggregate", "id": "j", "from": "gg", "aggregator": "concat", "materialized": {"store": "res"}}] + out("j")
    elif after == "tt": ops += [{"op": "tableTableJoin", "id": "j", "kind": r.choice(["inner", "left", "outer"]), "left": "t", "right": "o", "joiner": "concat", **r.choice([{}, {"materialized": {"store": "res"}}, mat("res")])}] + out("j")
    elif after in ("fk", "fkright"): ops += [{"op": "foreignKeyJoin", "id": "j", "kind": r.choice(["inner", "left"]), "left": "t" if after == "fk" else "o", "right": "o" if after == "fk" else "t", "selector": "firstChar", "joiner": "concat", "materialized": {"store": "res"}}] + out("j")
    elif after == "filter": ops += [{"op": "filter", "id": "j", "from": "t", "predicate": "longerThan:1", **r.choice([{}, mat("res"), {"materialized": {"store": "res"}}])}] + out("j")
    else: ops += out("t")
    steps = [x for x in pipes(r, ["in", "tab", "tab", "other"], keys="aab", values=["a1", "b1", "a", "b", "c1"], nulls=.15, spread=50, jump=.12)]
    return {"topology": ops, "steps": steps, "config": config(r, .2, .1, 0)}


def punctuated(r):
    """punctuations of both kinds, several at once, in and behind sub-topologies"""
    kv = lambda n: {"name": n, "kind": "keyValue", "key": "string", "value": "int64", **r.choice([{}, {"type": "inMemory"}])}
    ops, last = [stream("s", "in")], "s"
    if r.random() < .3: ops.append({"op": "selectKey", "id": "k", "from": "s", "selector": "firstChar"}); ops.append({"op": "repartition", "id": "rp", "from": "k"}); last = "rp"
    for n in range(r.randint(1, 3)):
        ty, iv = r.choice(["streamTime", "wallClock"]), r.choice([1, 7, 10, 25])
        kind = r.choice(["tick", "countPunctuate", "dedup", "runningCount"])
        p = {"kind": kind}
        if kind == "tick": p.update(type=ty, intervalMs=iv, label="t%d" % n, **({"cancelAfter": r.choice([1, 3])} if r.random() < .3 else {})); prov = {}
        elif kind == "countPunctuate": p.update(store="st%d" % n, type=ty, intervalMs=iv, clear=r.random() < .5); prov = {"provideStores": [kv("st%d" % n)]}
        elif kind == "runningCount": p.update(store="st%d" % n); prov = {"provideStores": [kv("st%d" % n)]}
        else: p.update(store="st%d" % n, by=r.choice(["value", "key", "firstChar"]), ttlMs=r.choice([5, 20]), storeKind="kv", **({"purgeEveryMs": r.choice([5, 20])} if r.random() < .6 else {})); prov = {"provideStores": [kv("st%d" % n)]}
        ops += [{"op": "process", "id": "p%d" % n, "from": last, "processor": p, **prov}, to("p%d" % n, "out%d" % n)]
        if kind in ("dedup", "tick") and r.random() < .5: last = "p%d" % n
        if kind == "tick" and r.random() < .4: ops += [{"op": "process", "id": "c%d" % n, "from": "p%d" % n, "processor": {"kind": "context"}}, to("c%d" % n, "ctx%d" % n)]
    steps = []
    for st in pipes(r, ["in"], values=["x", "y", "a1", "b1"], keys="ab", jump=.15, spread=15):
        steps.append(st)
        if r.random() < .25: steps.append({"advanceWallClock": r.choice([1, 3, 7, 10, 60])})
    cfg = {"wallClockStart": r.choice([1000, 5])} if r.random() < .3 else {}
    return {"topology": ops, "steps": steps, "config": cfg}


def rows(r):
    """stateless chains over tables' streams and back, headers on the way"""
    ops = [table("t", "in", **store(r, "tab", None, .6)), {"op": "toStream", "id": "s", "from": "t", **({"selector": r.choice(["keyUpper", "value", "constant:x"])} if r.random() < .4 else {})}]
    if "materialized" in ops[0]: ops[0]["materialized"].pop("caching", None)
    cur = "s"
    for n in range(r.randint(1, 4)):
        x = dict(r.choice([{"op": "mapValues", "mapper": "appendNull:?"}, {"op": "filter", "predicate": "keyNotNull"}, {"op": "process", "processor": {"kind": "headers", "add": [{"key": "n", "value": str(n)}], "remove": ["k"]}}, {"op": "process", "processor": {"kind": "timestamp", "delta": r.choice([-3, 4])}}, {"op": "selectKey", "selector": "firstChar"}, {"op": "flatMap", "fn": "keyAndSwap"}, {"op": "repartition"}]), id="x%d" % n, **{"from": cur})
        ops.append(x); cur = x["id"]
    end = r.choice(["table", "count", "out", "join"])
    if end == "table": ops += [{"op": "toTable", "id": "e", "from": cur, **store(r, "e", None, .6)}] + out("e")
    elif end == "count": ops += [{"op": "groupByKey", "id": "g", "from": cur}, {"op": "reduce", "id": "e", "from": "g", "reducer": r.choice(["last", "concat"]), **store(r, "e")}] + out("e")
    elif end == "join": ops += [{"op": "streamTableJoin", "id": "e", "kind": "left", "left": cur, "right": "t", "joiner": "concat"}, to("e")]
    else: ops.append(to(cur))
    steps = pipes(r, ["in"], keys=["a", "b", "c"], nulls=.2, headers=.6)
    return {"topology": ops, "steps": steps, "config": {**config(r), **handlers(r, .2)}}
