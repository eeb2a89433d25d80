"""Random scenarios for what the pipelines don't reach: caches, headers, error handlers, names, timestamps, JSON, the Processor API,
versioned tables, bounded suppression. Used by random_scenarios.py with the focus "features"."""

WORDS = ["a1", "a2", "b1", "b", "c3", "a b", "ab", "x/1", "y/2", "x/2", "", "bad"]


def scenario(r, name, seed, pipeline):
    family = r.choice([decorated, decorated, decorated, stateless, json_events, nodes, versioned, suppressed, windows, tables, joins, times])
    d = family(r, pipeline, name, seed)
    d.update(name=name, area="random-" + family.__name__, notes="seed %s" % seed)
    return d


def stream(i, topic, key="string", value="string", **kw): return dict(op="stream", id=i, topic=topic, key=key, value=value, **kw)
def table(i, topic, key="string", value="string", **kw): return dict(op="table", id=i, topic=topic, key=key, value=value, **kw)
def to(frm, topic="out"): return {"op": "to", "from": frm, "topic": topic}
def out(frm, topic="out"): return [{"op": "toStream", "id": frm + "_s", "from": frm}, to(frm + "_s", topic)]


def pipes(r, topics, n=None, values=None, keys="aabbc", nulls=.08, headers=.3, spread=12, jump=.06):
    """random records, mostly in order"""
    now, steps = r.randint(0, 30), []
    for _ in range(n or r.randint(20, 50)):
        if r.random() < .04:
            steps.append({"advanceWallClock": r.choice([1, 10, 100])})
            continue
        now += r.randint(20, 70) if r.random() < jump else r.randint(0, 4)
        ts = max(0, now - (r.randint(1, spread) if r.random() < .25 else 0))
        topic = r.choice(topics)
        kind = "string"
        if isinstance(topic, tuple): topic, kind = topic
        value = r.choice(values or WORDS) if kind == "string" else r.randint(-3, 9)
        p = {"topic": topic, "key": None if r.random() < .04 else r.choice(keys), "value": None if r.random() < nulls else value, "timestamp": ts}
        if r.random() < headers: p["headers"] = [{"key": r.choice("hk"), "value": r.choice(["1", "2", None])} for _ in range(r.randint(1, 2))]
        steps.append({"pipe": p})
    return steps


def handlers(r, p=.5):
    cfg = {}
    if r.random() < p:
        cfg["deserializationHandler"] = r.choice(["logAndContinue", "logAndContinue", "logAndFail"])
        cfg["processingHandler"] = r.choice(["logAndContinue", "logAndContinue", "logAndFail"])
        cfg["productionHandler"] = r.choice(["continue", "default"])
        if r.random() < .5: cfg["dlqTopic"] = "dlq"
    return cfg


def decorated(r, pipeline, name, seed):
    """a pipeline with headers, caches, names, bad bytes"""
    d = pipeline(r, name, seed)
    cfg = d.setdefault("config", {})
    if r.random() < .4: cfg["cacheMaxBytes"] = 1000000
    if r.random() < .3: cfg["topologyOptimization"] = r.choice(["all", "reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join"])
    if r.random() < .25: cfg["dslStore"] = "inMemory"
    if r.random() < .2: cfg["applicationId"] = "other-app"
    cfg.update(handlers(r, .3))
    for n, op in enumerate(d["topology"]):
        if r.random() < .25 and op["op"] not in ("addStateStore", "windowedBy"): op["named"] = "my-%s-%d" % (op["op"], n)
        m = op.get("materialized")
        if m and r.random() < .2 and "versionedHistoryMs" not in m: m["caching"] = False
        if m and r.random() < .1: m["logging"] = False
        if op["op"] == "streamStreamJoin" and r.random() < .3: op["storeName"] = "stores%d" % n
        if op["op"] == "streamStreamJoin" and r.random() < .2: op["storeType"] = "inMemory"
    for st in d["steps"]:
        if "pipe" in st and r.random() < .3: st["pipe"]["headers"] = [{"key": "h", "value": str(r.randint(0, 9))}]
        if "pipe" in st and isinstance(st["pipe"]["value"], int) and r.random() < .05:
            del st["pipe"]["value"]
            st["pipe"]["valueText"] = "junk"
    return d


def stateless(r, *_):
    """chains of stateless operators, with failures"""
    ops, cur, n = [stream("s0", "in")], "s0", 0
    for n in range(1, r.randint(3, 8)):
        i = "s%d" % n
        op = r.choice(["map", "flatMap", "flatMapValues", "selectKey", "peek", "mapValues", "mapValues", "filter", "repartition", "foreach", "split", "process", "processValues"])
        x = {"op": op, "from": cur, "id": i}
        if op == "map": x.update(key=r.choice(["key", "firstChar", "prefixBefore:/", "keyUpper", "nullKey", "failOn:bad"]), mapper=r.choice(["identity", "upper", "append:!", "nullIf:b", "failOn:bad"]))
        if op == "flatMap": x["fn"] = r.choice(["wordsToKeys", "dup:2", "keyAndSwap"])
        if op == "flatMapValues": x["fn"] = r.choice(["splitWords", "repeat:2", "chars", "withKeyPair"])
        if op == "selectKey": x["selector"] = r.choice(["firstChar", "value", "nullKey", "constant:k", "failOn:bad", "keyUpper"])
        if op in ("peek", "foreach"): x["label"] = r.choice(["l1", "l2"])
        if op == "mapValues": x["mapper"] = r.choice(["upper", "append:x", "appendNull:?", "withKey", "keyToString", "constant:c", "failOn:bad", "toNull", "prefixBefore:/"])
        if op == "filter": x["predicate"] = r.choice(["notNull", "contains:a", "failOn:bad", "not:startsWith:b", "keyNotNull", "longerThan:1"])
        if op == "split": x.pop("id"); x.update(branches=[{"id": i, "predicate": r.choice(["contains:a", "failOn:bad"])}, {"id": i + "b", "predicate": "notNull", "name": "-b%d" % n}])
        if op in ("process", "processValues"): x["processor"] = r.choice([{"kind": "passthrough"}, {"kind": "headers", "add": [{"key": "n", "value": "v"}], "remove": ["h"]}, {"kind": "timestamp", "delta": r.choice([5, 100])}, {"kind": "failOn", "value": "bad"}, {"kind": "context"}, {"kind": "mapValue", "fn": "upper"}])
        if op == "foreach": x.pop("id"); ops.append(x); continue
        ops.append(x)
        cur = i
        if op == "processValues" and x["processor"]["kind"] == "context": ops[-1]["processor"] = {"kind": "passthrough"}
    ops.append(to(cur) if r.random() < .7 else {"op": "to", "from": cur, "topicFrom": {"prefix": "out-", "selector": r.choice(["key", "constant:x"])}})
    if r.random() < .3: ops.append(to("s0", "copy"))
    return {"topology": ops, "steps": pipes(r, ["in"], keys="aabbAc"), "config": handlers(r, .8)}


def json_events(r, *_):
    """JSON values: fields, lists, upserts"""
    ops = [stream("s", "in", value="json", **({"timestampExtractor": r.choice(["fieldTime:t", "fieldTimeOrPartitionTime:t"])} if r.random() < .4 else {}))]
    kind = r.choice(["list", "upsert", "fields", "count"])
    if kind == "upsert":
        ops += [{"op": "process", "id": "p", "from": "s", "processor": {"kind": "lsnUpsert", "store": "st"}, "provideStores": [{"name": "st", "kind": "keyValue", "key": "string", "value": "json"}]},
                {"op": "toTable", "id": "t", "from": "p", "materialized": {"store": "tab"}}, {"op": "groupBy", "id": "g", "from": "t", "selector": "field:c"},
                {"op": "aggregate", "id": "a", "from": "g", "aggregator": r.choice(["collectList", "count"]), "materialized": {"store": "agg"}}] + out("a")
    elif kind == "list":
        ops += [{"op": "groupBy", "id": "g", "from": "s", "selector": "field:c"}, {"op": "aggregate", "id": "a", "from": "g", "aggregator": "collectList", "materialized": {"store": "agg"}}] + out("a")
    elif kind == "count":
        ops += [{"op": "selectKey", "id": "k", "from": "s", "selector": "field:c"}, {"op": "groupByKey", "id": "g", "from": "k"},
                {"op": "windowedBy", "id": "w", "from": "g", "windows": {"type": "tumbling", "size": 10, "grace": r.choice([0, 5])}}, {"op": "count", "id": "a", "from": "w", "materialized": {"store": "agg"}}] + out("a")
    else:
        ops += [{"op": "mapValues", "id": "m", "from": "s", "mapper": "fieldInt:n"}, {"op": "groupByKey", "id": "g", "from": "m"},
                {"op": "aggregate", "id": "a", "from": "g", "aggregator": r.choice(["sum", "min", "max", "count", "last"]), "materialized": {"store": "agg"}}, {"op": "mapValues", "id": "x", "from": "a", "mapper": r.choice(["wrapJson:sum", "toString", "toFloat64", "toInt32"])}] + out("x")
    steps = []
    for lsn in range(r.randint(20, 40)):
        v = {"op": r.choice(["upsert", "upsert", "delete"]), "lsn": max(0, lsn - r.choice([0, 0, 3])), "data": {"c": r.choice(["x", "y", None]), "n": r.randint(0, 5)}, "c": r.choice(["x", "y", None]), "n": r.choice([1, 2, 2.5, "q", None]), "t": max(0, lsn * 3 - r.choice([0, 0, 10, 200]))}
        if r.random() < .2: v.pop("t")
        p = {"topic": "in", "key": r.choice(["a", "b", "c"]), "value": v, "timestamp": lsn * 3}
        if r.random() < .05: p["value"] = None
        elif r.random() < .05: p.pop("value"); p["valueText"] = r.choice(["{", "", "1 2", "[1]"])
        steps.append({"pipe": p})
    return {"topology": ops, "steps": steps, "config": handlers(r, .8)}


def nodes(r, *_):
    """graphs of the Processor API"""
    ops = [{"op": "addSource", "name": "src", "topic": "in", "key": "string", "value": "string"}]
    parents, n = ["src"], 0
    stores = []
    for n in range(r.randint(2, 6)):
        name = "p%d" % n
        kind = r.choice(["passthrough", "mapValue", "headers", "timestamp", "filter", "forwardTo", "context", "tick", "runningCount", "selectKey", "failOn"])
        p = {"kind": kind}
        x = {"op": "addProcessor", "name": name, "processor": p, "parents": [r.choice(parents)]}
        if kind == "mapValue": p["fn"] = r.choice(["append:.", "upper", "nullIf:b"])
        if kind == "headers": p.update(add=[{"key": name, "value": None}], remove=["h"])
        if kind == "timestamp": p.update(r.choice([{"set": 7}, {"delta": 3}]))
        if kind == "filter": p["predicate"] = "notNull"
        if kind == "selectKey": p["fn"] = r.choice(["keyUpper", "constant:q"])
        if kind == "failOn": p["value"] = "bad"
        if kind == "tick": p.update(type=r.choice(["streamTime", "wallClock"]), intervalMs=r.choice([7, 20]), label=name)
        if kind == "forwardTo": p.update(routes=[{"predicate": "contains:a", "child": "k%d" % n}], default=r.choice(["all", "none"]), all=r.random() < .5); ops.append(x); ops.append({"op": "addSink", "name": "k%d" % n, "topic": "fwd", "parents": [name]}); continue
        if kind == "runningCount":
            p["store"] = "st%d" % n
            st = {"name": "st%d" % n, "kind": "keyValue", "key": "string", "value": "int64"}
            if r.random() < .5: x["provideStores"] = [st]; ops.append(x)
            else: ops.append(x); ops.append({"op": "addStore", "store": st, "processors": [name]})
            ops.append({"op": "addSink", "name": "k%d" % n, "topic": "counts", "parents": [name]})
            continue
        ops.append(x)
        if kind not in ("context", "tick"): parents.append(name)
        ops.append({"op": "addSink", "name": "k%d" % n, "topic": "out%d" % n, "parents": [name]})
    return {"topology": ops, "steps": pipes(r, ["in"], keys="aabb", nulls=.05), "config": handlers(r)}


def versioned(r, *_):
    """versioned tables in joins, groups and foreign keys"""
    hist = r.choice([20, 100, 1000])
    ops = [stream("s", "in"), table("t", "tab", materialized={"store": "tab", "versionedHistoryMs": hist}), table("u", "tab2", materialized={"store": "tab2", **({"versionedHistoryMs": 100} if r.random() < .5 else {})})]
    kind = r.choice(["join", "grace", "ttjoin", "fk", "group", "filter"])
    if kind in ("join", "grace"): ops += [{"op": "streamTableJoin", "id": "j", "kind": r.choice(["inner", "left"]), "left": "s", "right": "t", "joiner": "concat", **({"grace": r.choice([5, 15])} if kind == "grace" else {})}, to("j")]
    if kind == "ttjoin": ops += [{"op": "tableTableJoin", "id": "j", "kind": r.choice(["inner", "left", "outer"]), "left": "t", "right": "u", "joiner": "concat", **({"materialized": {"store": "res"}} if r.random() < .5 else {})}] + out("j")
    if kind == "fk": ops += [{"op": "foreignKeyJoin", "id": "j", "kind": r.choice(["inner", "left"]), "left": "t", "right": "u", "selector": "firstChar", "joiner": "concat", "materialized": {"store": "res"}}] + out("j")
    if kind == "group": ops += [{"op": "groupBy", "id": "g", "from": "t", "selector": "firstChar"}, {"op": "aggregate", "id": "j", "from": "g", "aggregator": "concat", "materialized": {"store": "res", **({"versionedHistoryMs": 100} if r.random() < .4 else {})}}] + out("j")
    if kind == "filter": ops += [{"op": "filter", "id": "f", "from": "t", "predicate": "contains:a", **({"materialized": {"store": "fil"}} if r.random() < .5 else {})}, {"op": "tableTableJoin", "id": "j", "kind": "left", "left": "f", "right": "u", "joiner": "concat"}] + out("j")
    cfg = {"topologyOptimization": "all"} if r.random() < .2 else {}
    left = kind == "grace" and any(o.get("kind") == "left" for o in ops)
    steps = pipes(r, ["in", "tab", "tab", "tab2"] if kind in ("join", "grace") else ["tab", "tab", "tab2"], spread=40, jump=.1, keys="aabb")
    if left: steps = [s for s in steps if "pipe" not in s or s["pipe"]["key"]]
    return {"topology": ops, "steps": steps, "config": cfg}


def suppressed(r, *_):
    """suppression with all its bounds"""
    sup = r.choice([{"until": "timeLimit", "ms": r.choice([0, 5, 30])}, {"until": "timeLimit", "ms": 1000, "maxRecords": r.choice([1, 2, 3]), "full": r.choice(["emitEarly", "shutDown"])}, {"until": "windowCloses"}])
    if r.random() < .2: sup["logging"] = False
    ops = [stream("s", "in"), {"op": "groupByKey", "id": "g", "from": "s"}]
    w = r.choice([{"type": "tumbling", "size": 10, "grace": r.choice([0, 5])}, {"type": "hopping", "size": 10, "advance": 5, "grace": 3}, {"type": "session", "gap": 5, "grace": r.choice([0, 5])}, {"type": "sliding", "diff": 10, "grace": 5}, None])
    if w is None and sup["until"] == "windowCloses": w = {"type": "tumbling", "size": 10, "grace": 0}
    if w: ops.append({"op": "windowedBy", "id": "w", "from": "g", "windows": w})
    ops.append({"op": r.choice(["count", "aggregate"]), "id": "a", "from": "w" if w else "g", "aggregator": "concat", "materialized": {"store": "agg", "retentionMs": 100000} if w else {"store": "agg"}})
    if ops[-1]["op"] == "count": ops[-1].pop("aggregator")
    ops.append({"op": "suppress", "id": "x", "from": "a", "suppress": sup, **({"named": "hold"} if r.random() < .4 else {})})
    if not w and r.random() < .4: ops += [{"op": "groupBy", "id": "g2", "from": "x", "selector": "constant:all"}, {"op": "count", "id": "c2", "from": "g2", "materialized": {"store": "again"}}] + out("c2")
    else: ops += out("x")
    return {"topology": ops, "steps": pipes(r, ["in"], keys="abc", jump=.1), "config": {"cacheMaxBytes": 1000000} if r.random() < .3 else {}}


def windows(r, *_):
    """all windows, emission, and what follows"""
    w = r.choice([{"type": "tumbling", "size": r.choice([1, 7, 10]), "grace": r.choice([0, 5])}, {"type": "hopping", "size": 10, "advance": r.choice([1, 3, 10]), "grace": r.choice([0, 4])},
                  {"type": "sliding", "diff": r.choice([1, 5, 10]), "grace": r.choice([0, 5, 30])}, {"type": "session", "gap": r.choice([0, 1, 5]), "grace": r.choice([0, 5, 30])}, {"type": "unlimited", "start": r.choice([0, 10])}])
    ops = [stream("s", "in", value=r.choice(["string", "int64"])), {"op": "groupByKey", "id": "g", "from": "s"} if r.random() < .6 else {"op": "groupBy", "id": "g", "from": "s", "selector": "constant:all"}]
    v = ops[0]["value"]
    x = {"op": "windowedBy", "id": "w", "from": "g", "windows": w}
    if w["type"] != "unlimited" and r.random() < .35: x["emit"] = "onWindowClose"
    mat = {"store": "agg", "retentionMs": 100000}
    if w["type"] == "unlimited": mat = {"store": "agg"}
    if r.random() < .3: mat["storeType"] = "inMemory"
    a = {"op": r.choice(["count", "reduce", "aggregate"]), "id": "a", "from": "w", "materialized": mat}
    if a["op"] == "reduce": a["reducer"] = r.choice(["concat", "last", "first", "nullOn:b"] if v == "string" else ["sum", "min", "max"])
    if a["op"] == "aggregate": a["aggregator"] = r.choice(["concat", "concatKey", "collectList", "nullInit", "nullOn:b", "last"] if v == "string" else ["sum", "min", "count"])
    if a.get("aggregator") == "nullOn:b" and w["type"] == "session": a["aggregator"] = "concat"
    ops += [x, a]
    after = r.choice(["out", "key", "filter", "map", "regroup", "tostream"])
    if after == "filter": ops.append({"op": "filter", "id": "f", "from": "a", "predicate": "notNull" if v == "string" else "valueEquals:1"}); ops += out("f")
    elif after == "map": ops.append({"op": "mapValues", "id": "f", "from": "a", "mapper": "toString"}); ops += out("f")
    elif after == "key": ops += [{"op": "toStream", "id": "k", "from": "a", "selector": r.choice(["windowedKeyToString", "windowStart", "windowedKey"])}, to("k")]
    elif after == "regroup": ops += [{"op": "groupBy", "id": "g2", "from": "a", "selector": "windowedKey"}, {"op": "count", "id": "c2", "from": "g2", "materialized": {"store": "re"}}] + out("c2")
    elif after == "tostream": ops += [{"op": "toStream", "id": "k", "from": "a"}, {"op": "filter", "id": "k2", "from": "k", "predicate": "notNull"}, {"op": "mapValues", "id": "k3", "from": "k2", "mapper": "withKey"}, to("k3")]
    else: ops += out("a")
    return {"topology": ops, "steps": pipes(r, [("in", v)], keys="aab", jump=.1), "config": {"cacheMaxBytes": 1000000} if r.random() < .25 else {}}


def tables(r, *_):
    """chains of tables, materialized or not"""
    ops, ids, n = [table("t0", "in", **({"materialized": {"store": "tab"}} if r.random() < .6 else {})), table("t1", "in2")], ["t0", "t1"], 1
    for n in range(2, r.randint(4, 8)):
        i, f = "t%d" % n, r.choice(ids)
        op = r.choice(["filter", "filterNot", "mapValues", "tableTableJoin", "tableTableJoin", "toStreamToTable", "group"])
        m = {"materialized": {"store": "store%d" % n, **({"storeType": "inMemory"} if r.random() < .3 else {})}} if r.random() < .4 else {}
        if op in ("filter", "filterNot"): ops.append({"op": op, "id": i, "from": f, "predicate": r.choice(["contains:a", "longerThan:1", "keyEquals:a"]), **m})
        elif op == "mapValues": ops.append({"op": op, "id": i, "from": f, "mapper": r.choice(["upper", "append:!", "nullIf:b", "withKey", "toNull"]), **m})
        elif op == "tableTableJoin":
            g = r.choice([x for x in ids if x != f])
            ops.append({"op": op, "id": i, "kind": r.choice(["inner", "left", "outer"]), "left": f, "right": g, "joiner": r.choice(["concat", "nullIfNoRight", "left", "right"]), **m})
        elif op == "group": ops += [{"op": "groupBy", "id": i + "g", "from": f, "selector": r.choice(["firstChar", "value", "key"])}, {"op": r.choice(["reduce"]), "id": i, "from": i + "g", "reducer": r.choice(["concat", "last", "nullOn:b"]), **m}]
        else: ops += [{"op": "toStream", "id": i + "s", "from": f}, {"op": "toTable", "id": i, "from": i + "s", **m}]
        ids.append(i)
    ops += out(ids[-1]) + out(ids[-2], "out2")
    return {"topology": ops, "steps": pipes(r, ["in", "in2"], nulls=.2, spread=20), "config": {**({"topologyOptimization": "all"} if r.random() < .25 else {}), **({"cacheMaxBytes": 1000000} if r.random() < .25 else {}), **({"dslStore": "inMemory"} if r.random() < .2 else {})}}


def joins(r, *_):
    """joins of streams with odd windows, self joins, global tables"""
    b, a = r.choice([(0, 0), (5, -2), (-2, 5), (10, 0), (0, 10), (3, 20), (10, 10)])
    kind = r.choice(["inner", "left", "outer"])
    ops = [stream("s", "in"), stream("t", "in2", value=r.choice(["string", "int64"])), {"op": "globalTable", "id": "g", "topic": "glob", "key": "string", "value": "string"}]
    right = "s" if r.random() < .2 else "t"
    left = "s"
    if r.random() < .3: ops.append({"op": "selectKey", "id": "k", "from": "s", "selector": "firstChar"}); left = "k"
    j = {"op": "streamStreamJoin", "id": "j", "kind": kind, "left": left, "right": right, "joiner": r.choice(["concat", "withKey", "left", "nullIfNoRight", "jsonPair"]), "windows": {"before": b, "after": a, "grace": r.choice([0, 3, 15])}}
    if r.random() < .3: j["storeType"] = "inMemory"
    if r.random() < .3: j["named"] = "jj"
    if r.random() < .3: j["storeName"] = "js"
    if r.random() < .1: j["logging"] = False
    ops += [j, to("j")]
    if r.random() < .5: ops += [{"op": "streamGlobalTableJoin", "id": "gj", "kind": r.choice(["inner", "left"]), "left": "s", "right": "g", "selector": r.choice(["firstChar", "key", "value"]), "joiner": r.choice(["concat", "withKey"])}, to("gj", "out2")]
    cfg = {"topologyOptimization": "all"} if r.random() < .4 else {}
    if r.random() < .2: cfg["dslStore"] = "inMemory"
    return {"topology": ops, "steps": pipes(r, ["in", "in", ("in2", ops[1]["value"]), "glob"], spread=25, keys="aab", headers=.4, jump=.1), "config": cfg}


def times(r, *_):
    """timestamp extractors and stream time"""
    e = r.choice(["recordTime", "logAndSkip", "usePartitionTime", "valueTime", "plus:100", "partitionTime", "plus:-10"])
    ops = [stream("s", "in", timestampExtractor=e), stream("s2", "in2"), {"op": "process", "id": "p", "from": "s", "processor": {"kind": "context"}}, to("p"),
           {"op": "groupByKey", "id": "g", "from": "s"}, {"op": "windowedBy", "id": "w", "from": "g", "windows": {"type": "tumbling", "size": 10, "grace": 5}}, {"op": "count", "id": "c", "from": "w", "materialized": {"store": "c"}}] + out("c", "counts")
    ops += [{"op": "process", "id": "tk", "from": "s2", "processor": {"kind": "tick", "type": "streamTime", "intervalMs": 10}}, to("tk", "ticks")]
    cfg = handlers(r, .5)
    if r.random() < .3: cfg["timestampExtractor"] = r.choice(["logAndSkip", "usePartitionTime"])
    if r.random() < .3: cfg["wallClockStart"] = 1000000
    steps = pipes(r, ["in", "in", "in2"], values=["5", "17", "x", "-3", "40"], nulls=.05)
    for st in steps:
        if "pipe" in st and r.random() < .1: st["pipe"]["timestamp"] = -1
    return {"topology": ops, "steps": steps, "config": cfg}
