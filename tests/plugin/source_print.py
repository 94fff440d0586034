#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""print=yes gives the text of "trace-cmd report", symbols=yes names of values; fields stay what they are without."""
import collections
import os
import re
import sys

import bt2

from graph import check, data, event_of, events, finish, has_trace_cmd, messages, report, run, to_ns

if not has_trace_cmd():
    print("SKIP: trace-cmd is not installed")
    sys.exit(77)

line = re.compile(r"\s*(?:\S+:\s+)?.*?-(\d+)\s+\[(\d+)\]\s*(\d+(?:\.\d+)?): +(\S+): *(.*)$")
dropped = re.compile(r"\n?CPU:\d+ \[.*EVENTS DROPPED\]")
compared = collections.Counter()
for path in data("single/host618.dat", "single/v7-stack.dat", "single/v7-syscalls.dat", "single/v7-fgraph.dat", "kvm/kvm-tsc.dat",
                 "single/v7-cpumask.dat"):
    want, current = collections.defaultdict(list), None
    for text in report("-t", "-i", path):
        match = line.match(text)
        if match:
            tid, cpu, time, event, rest = match.groups()
            current = [rest]
            want[(to_ns(time), int(cpu), int(tid), event)].append(current)
        elif current:
            current[0] += "\n" + text
    for message in messages([path], print=True):
        if type(message) is not bt2._EventMessageConst:
            continue
        event = event_of(message, with_fields=False)
        lines = want.get((event.ns, event.cpu, event.tid, event.name), [])
        if len(lines) != 1:
            continue
        text = str(message.event.specific_context_field["print"]).strip()
        shown = dropped.sub("", lines[0][0]).strip()
        # The report folds the exit of a leaf function into its entry.
        if event.name == "funcgraph_entry" and shown.endswith(";"):
            continue
        compared[event.name] += 1
        check(text == shown, f"{os.path.basename(path)}: {event.name} at {event.ns}: {text!r} is not {shown!r}")
check(len(compared) >= 15, f"only {len(compared)} kinds of events have a text")
print(sum(compared.values()), "texts of", len(compared), "kinds")

path, = data("kvm/kvm-tsc.dat")
labels = set()
for message in messages([path], symbols=True):
    if type(message) is bt2._EventMessageConst and message.event.name == "kvm_exit":
        labels |= set(message.event.payload_field["exit_reason"].labels)
check({"interrupt", "npf"} & labels, f"exit reasons are called {labels}")
plain_fields = [event.fields for event in events([path])]
named_fields = [event.fields for event in events([path], symbols=True, print=True)]
check(plain_fields == named_fields, "fields differ with symbols and print")
quiet = run("babeltrace2", path, "-p", "print=yes,symbols=yes", "-o", "dummy")
check(quiet.stderr == "", f"something writes to stderr: {quiet.stderr[:300]}")
finish()
