#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Events of each CPU, buffer and name, and each stream's first and last stamp, are those that trace-cmd reports."""
import collections
import glob
import os

from graph import DATA, check, events, finish, stats, to_ns


def buffer_name(label):
    return "-" if label == "top" else label


seen = 0
for path in sorted(glob.glob(DATA + "/*/*.dat")):
    figures = path[:-4] + ".stats"
    if not os.path.exists(figures):
        continue
    seen += 1
    wanted = stats(figures)
    counts = collections.Counter()
    spans = {}
    for event in events([path], with_fields=False):
        key = (str(event.cpu), buffer_name(event.buffer))
        counts[key + (event.name,)] += 1
        first, _ = spans.get(key, (event.ns, 0))
        spans[key] = (first, event.ns)
    name = os.path.relpath(path, DATA)
    for key in set(counts) | {k[1:] for k in wanted["count"]}:
        got, want = counts.get(key, 0), wanted["count"].get(("-",) + key, 0)
        # The report folds the exit of a leaf function into its entry: there the ring buffer's count is right.
        if "funcgraph_exit" in key:
            check(got >= want, f"{name}: {key}: {got} events, at least {want} reported")
        else:
            check(got == want, f"{name}: {key}: {got} events, {want} reported")
    has_graph = any("funcgraph_entry" in key for key in counts)
    for key, (_, first, last) in ((k[1:], v) for k, v in wanted["span"].items()):
        if key not in spans:
            check(False, f"{name}: no stream {key}")
            continue
        check(spans[key][0] == to_ns(first), f"{name}: {key} begins at {spans[key][0]}, {first} reported")
        # A leaf's folded exit may have been the last line.
        check(spans[key][1] == to_ns(last) or (has_graph and spans[key][1] >= to_ns(last)),
              f"{name}: {key} ends at {spans[key][1]}, {last} reported")
check(seen >= 15, f"only {seen} files have figures")
finish()
