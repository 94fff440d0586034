#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compares the write() calls of dd in host.dat with those of guests recorded on the same kernel.

usage: same_events.py DIR GUEST...

The guests' clocks are the host's, so trace-cmd's stamps of the same event, TIME_SHIFT applied, must agree within the
bound that GUEST.corrections states.
"""
import re
import subprocess
import sys

LINE = re.compile(r"^ *(?:\S+:)? *dd-(\d+) +\[(\d+)\] +(\d+)\.(\d+): sys_enter: +NR 1 ")


def report(*args):
    out = subprocess.run(["trace-cmd", "report", "-t", *args], capture_output=True, text=True, check=True)
    times = {}
    for line in out.stdout.splitlines():
        found = LINE.match(line)
        if found:
            name = line.split(":")[0].strip() if ".dat:" in line else ""
            times.setdefault(name, []).append(int(found[3]) * 10**9 + int(found[4]))
    return times


def worst_bound(path):
    bounds = [line.split()[3:5] for line in open(path) if line.startswith("k ")]
    return max(max(int(minus), int(plus)) for minus, plus in bounds)


def main():
    directory, guests = sys.argv[1], sys.argv[2:]
    for guest in guests:
        both = report("-i", f"{directory}/host.dat", "-i", f"{directory}/{guest}.dat")
        sides = list(both.values())
        if len(sides) != 2:
            print(f"{guest}: {len(sides)} machines in trace-cmd's report")
            return 1
        count = min(len(sides[0]), len(sides[1]), 3000)
        # The last events of both are the same ones; a guest starts later than the host.
        apart = [abs(a - b) for a, b in zip(sides[0][-count:], sides[1][-count:])]
        bound = worst_bound(f"{directory}/{guest}.corrections") + 2
        # Two tracers stamp one after the other: what lies between them is no error of the clock.
        late = sum(1 for ns in apart if ns > bound + 20000)
        apart.sort()
        print(f"{guest}: {count} events, median {apart[count // 2]} ns apart, bound {bound} ns, {late} beyond")
        # A task that is preempted between its two stamps says nothing about the clocks.
        if late * 100 > count:
            return 1
    return 0


sys.exit(main())
