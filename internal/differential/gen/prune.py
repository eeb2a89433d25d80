#!/usr/bin/env python3
"""prune.py FOLDER [KEEP]: after a fill, delete random scenarios that cannot serve; with KEEP keep only that many."""
import collections, json, os, sys
folder = sys.argv[1]
keep = int(sys.argv[2]) if len(sys.argv) > 2 else None
why = collections.Counter()
left = []
for f in sorted(os.listdir(folder)):
    p = os.path.join(folder, f)
    e = json.load(open(p)).get("expect")
    reason = None
    if e is None: reason = "not filled"
    elif "error" in e and e["error"]["kind"] in ("other", "invalidArgument"): reason = "error " + e["error"]["kind"] + " " + e["error"].get("rootMessage", e["error"]["message"])[:120]
    elif "error" not in e and not any(e.get("outputs", {}).values()): reason = "no output"
    elif any(r.get("key", 0) is None and r.get("value", 0) is None for r in e.get("outputs", {}).get("dlq", [])): reason = "dead letter without its record: lost in Kafka once a sink before it has sent"
    elif os.path.getsize(p) > 150000: reason = "too large"
    if reason: why[reason] += 1; os.remove(p)
    else: left.append(p)
if keep:
    for p in left[keep:]: os.remove(p)
    left = left[:keep]
print("kept", len(left), dict(why))
