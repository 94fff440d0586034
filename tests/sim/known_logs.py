#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real exchange logs whose truth is one constant offset: the bound must hold it at each exchange.

usage: known_logs.py FOLDER COMMAND...     runs "COMMAND in.exchanges out.corrections"

The truths stand in FOLDER/README.md as "| NAME | truth: host = guest + OFFSET ...".
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from corrfile import Corr


def truths(folder):
    for line in open(os.path.join(folder, "README.md")):
        found = re.match(r"\| (\S+\.exchanges) \| host = guest \+ (\d+)", line)
        if found:
            yield found[1], int(found[2])


def main():
    folder, command = sys.argv[1], sys.argv[2:]
    logs = bad = 0
    for name, offset in truths(folder):
        logs += 1
        with tempfile.TemporaryDirectory() as work:
            out = os.path.join(work, "out.corrections")
            log = os.path.join(folder, name)
            done = subprocess.run([*command, log, out], capture_output=True, text=True, timeout=60)
            if done.returncode not in (0, 3):
                print(f"FAIL {name}: exit {done.returncode}: {done.stderr}")
                bad += 1
                continue
            corrections = Corr.load(out)
            misses = 0
            for line in open(log):
                part = line.split()
                if part and part[0] == "x":
                    guest = int(part[3])
                    estimate, minus, plus = corrections.apply(guest)
                    misses += not estimate - minus - 2 <= guest + offset <= estimate + plus + 2
            print(f"{name}: {misses} exchanges outside the bound")
            bad += misses > 0
    if not logs:
        print("FAIL no logs found")
    return 1 if bad or not logs else 0


sys.exit(main())
