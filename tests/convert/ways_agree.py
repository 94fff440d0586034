#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The direct writer against the source component: on every recorded file both show the same, event for event.

Also: babeltrace2 reads the output without a warning (but for losses that the tracer reports), the count of each event
on each CPU is the one that trace-cmd reported, and check-ctf has nothing to say.
usage: ways_agree.py DATA-DIRECTORY
"""
import collections
import glob
import os
import re
import sys
import tempfile

from convert_case import TANDEM, check_ctf, convert, run

BABELTRACE = ["babeltrace2", "--no-delta", "--clock-cycles", "--fields=trace:hostname"]
MADE_UP = ("lttng_statedump_process_state", "vmsync_gh_guest", "vmsync_gh_host")


def groups(data):
    """Files that belong together: a host with its guests, or one alone."""
    for single in sorted(glob.glob(os.path.join(data, "single", "*.dat"))):
        yield [single]
    for kind, mark in (("pairs", "-guestrole"), ("kvm", "-l2")):
        files = sorted(glob.glob(os.path.join(data, kind, "*.dat")))
        for host in files:
            if mark not in host:
                yield [host] + [f for f in files if f.startswith(host[:-4] + mark)]
            elif not any(host.startswith(f[:-4] + mark) for f in files if mark not in f):
                yield [host]


def lines(command):
    done = run(*command)
    assert done.code == 0, done.err
    # A file that does not tell its machine's name has none in the source's way, and its own in ours.
    return sorted(re.sub(r"^(\[\d+\]) \S+ (?=\S+: \{)", r"\1 ", line) for line in done.out.splitlines()), done.err


def recorded(path):
    """What trace-cmd reported when the file was recorded: counts by CPU and event."""
    counts = collections.Counter()
    with open(path[:-4] + ".stats", encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["count"]:
                counts[int(words[2]), words[-2]] += int(words[-1])
    return counts


def compare(inputs, style, out):
    convert(out, "-q", "--names", style, "--no-synthetic", *inputs, code=0)
    dirs = sorted(os.path.join(out, name) for name in os.listdir(out))
    ours, err = lines([*BABELTRACE, *dirs])
    listed = ",".join('"%s"' % path for path in inputs)
    theirs, _ = lines([*BABELTRACE, "-c", "source.tandem.tracedat", "-p", "inputs=[%s],names=%s" % (listed, style)])
    assert ours == theirs, "%s: %s" % (style, next(
        ("%s <> %s" % pair for pair in zip(ours, theirs) if pair[0] != pair[1]), "%d <> %d lines" % (
            len(ours), len(theirs))))
    noise = [line for line in err.splitlines() if line.strip() and "discarded" not in line]
    assert not noise, "babeltrace2 says: " + noise[0]
    counts = collections.Counter()
    for line in ours:
        found = re.search(r"(\S+): \{ cpu_id = (\d+)", line)
        counts[int(found[2]), found[1]] += 1
    return counts


def main():
    failed = 0
    for inputs in groups(sys.argv[1]):
        name = os.path.basename(inputs[0])
        try:
            with tempfile.TemporaryDirectory() as out:
                counts = compare(inputs, "ftrace", os.path.join(out, "f"))
                compare(inputs, "lttng", os.path.join(out, "l"))
                wanted = sum((recorded(path) for path in inputs), collections.Counter())
                # trace-cmd's report folds the exit of a leaf function into its entry.
                assert counts == wanted or "fgraph" in name, "counts: %s" % (counts - wanted or wanted - counts)
                convert(os.path.join(out, "s"), "-q", *inputs)
                said = check_ctf(*sorted(glob.glob(os.path.join(out, "s", "*"))))
                said = [line for line in said.splitlines() if "error:" in line or "warning:" in line]
                assert not [line for line in said if "vmsync" not in line], said[0]
            print("ok   ", name)
        except AssertionError as fault:
            failed += 1
            print("FAIL ", name, ":", str(fault)[:600])
    sys.exit(1 if failed else 0)


main()
