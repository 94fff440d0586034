#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The merged list of host and guests has the events of "trace-cmd report -t", each at its time, in one order."""
import itertools
import os
import re
import sys

from graph import check, data, events, finish, has_trace_cmd, report, to_ns

if not has_trace_cmd():
    print("SKIP: trace-cmd is not installed")
    sys.exit(77)

# File or buffer where there are several, task, cpu, time, event.
line = re.compile(r"\s*(?:(\S+):\s+)?.*?-(\d+)\s+\[(\d+)\]\s*(\d+(?:\.\d+)?): +(\S+):")

GROUPS = [
    data("pairs/mono-interval.dat", "pairs/mono-interval-guestrole.dat"),
    data("pairs/mono-1cpu-guest.dat", "pairs/mono-1cpu-guest-guestrole.dat"),
    data("pairs/mono-1cpu-guest-guestrole.dat", "pairs/mono-1cpu-guest.dat"),
    data("pairs/tsc-zstd.dat", "pairs/tsc-zstd-guestrole.dat"),
    data("kvm/kvm-tsc.dat", "kvm/kvm-tsc-l2.dat"),
    data("kvm/kvm-two-guests.dat", "kvm/kvm-two-guests-l2.dat", "kvm/kvm-two-guests-l2b.dat"),
    data("pairs/mono-nosync.dat", "pairs/mono-nosync-guestrole.dat"),
    data("single/host618.dat"),
    data("single/v7-raw-tsc.dat"),
    data("single/v7-date.dat"),
]


def grouped(items):
    """Events of one time have no order that is right: they are compared as a set."""
    for ns, same in itertools.groupby(items, key=lambda item: item[0]):
        yield ns, sorted(same)


for inputs in GROUPS:
    name = "+".join(os.path.basename(path) for path in inputs)
    reported = []
    for text in report("-t", *itertools.chain.from_iterable(("-i", path) for path in inputs)):
        match = line.match(text)
        if match:
            _, tid, cpu, time, event = match.groups()
            reported.append((to_ns(time), int(cpu), int(tid), event))
    ours = []
    last = 0
    backwards = 0
    for event in events(inputs, with_fields=False):
        backwards += event.ns < last
        last = event.ns
        ours.append((event.ns, event.cpu, event.tid, event.name))
    check(backwards == 0, f"{name}: {backwards} times go back")
    check(len(ours) > 100, f"{name}: only {len(ours)} events")
    check(len(ours) == len(reported), f"{name}: {len(ours)} events, {len(reported)} reported")
    # The report is merged by its own order; both are sorted by time here.
    reported.sort(key=lambda item: item[0])
    for got, want in zip(grouped(ours), grouped(reported)):
        if not check(got == want, f"{name}: {got} is not {want}"):
            break
finish()
