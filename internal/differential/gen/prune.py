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
    elif "error" in e and e["error"]["kind"] not in ("topology", "bufferFull"): reason = "error " + e["error"]["kind"] + " " + e["error"].get("rootMessage", e["error"]["message"])[:120]
    elif "error" not in e and not any(e.get("outputs", {}).values()): reason = "no output"
    elif os.path.getsize(p) > 150000: reason = "too large"
    if reason: why[reason] += 1; os.remove(p)
    else: left.append(p)
errs = [p for p in left if "error" in json.load(open(p))["expect"]]
for p in errs[4:]: os.remove(p); left.remove(p); why["more than 4 errors"] += 1
if keep:
    for p in left[keep:]: os.remove(p)
    left = left[:keep]
print("kept", len(left), "errors among them", len(errs[:4]), dict(why))
