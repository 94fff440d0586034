#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every guest stamp of the LTTng kernel pair equals the truth, through tandem view and babeltrace2 run."""
import json
import os
import re
import subprocess
import sys

import bt2

sys.dont_write_bytecode = True
from corrections import Corrections

build, source = os.environ["TANDEM_BUILD"], os.environ["TANDEM_SOURCE"]
pair = f"{source}/tests/data/lttng-kernel/pair1"
tandem = f"{build}/cli/tandem"
HOST_EPOCH_NS = 1796039857284825211  # of the host's metadata

truth = Corrections(f"{pair}/truth.corrections")
want, name = [], []
for message in bt2.TraceCollectionMessageIterator(f"{pair}/guest"):
    if type(message) is bt2._EventMessageConst:
        want.append(truth.host_ns(message.default_clock_snapshot.value) + HOST_EPOCH_NS)
        name.append(message.event.name)
assert len(want) == 11257, len(want)

# As sink.tandem.text (tandem view) and as sink.text.pretty print.
LINE = re.compile(r"\[(-?\d+)\.(\d{9})\] (?:\(\S+\) )?(\S+) +(?:cpu\d+ +)?(\S+):")


def stamps(what, command):
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    got, previous, total = [], None, 0
    for line in out.splitlines():
        m = LINE.match(line)
        assert m, line
        ns = int(m[1]) * 10**9 + int(m[2])
        total += 1
        assert previous is None or ns >= previous, f"{what}: time goes back at {line}"
        previous = ns
        if m[3] in ("l2-0", "guest"):  # its own name, or the one that it was given
            got.append((ns, m[4]))
    assert total == 11257 + 26943, (what, total)
    assert [g[1] for g in got] == name, f"{what}: other events"
    wrong = [(g[0], w) for g, w in zip(got, want) if g[0] != w]
    assert not wrong, f"{what}: {len(wrong)} stamps differ, the first: got {wrong[0][0]}, want {wrong[0][1]}"
    print(f"{what}: {len(got)} guest stamps equal the truth")


stamps("tandem view", [tandem, "view", f"{pair}/host", f"{pair}/guest", "--corrections", f"{pair}/truth.corrections"])
printed = subprocess.run(
    [tandem, "view", "--run-args", f"{pair}/host", f"guest={pair}/guest", "--corrections", f"guest={pair}/truth.corrections"],
    stdout=subprocess.PIPE, text=True, check=True).stdout
stamps("what --run-args prints", ["sh", "-c", printed])
run = ["babeltrace2", "run", "-c", "host:source.ctf.fs", "-p", f'inputs=["{pair}/host/kernel"]',
       "-c", "guest:source.ctf.fs", "-p", f'inputs=["{pair}/guest/kernel"]', "-c", "gmux:filter.utils.muxer",
       "-c", "fix:filter.tandem.clock", "-p", f'corrections="{pair}/truth.corrections",host-clock="{pair}/host"',
       "-c", "mux:filter.utils.muxer", "-c", "out:sink.text.pretty", "-p", "clock-seconds=yes",
       "-x", "guest:gmux", "-x", "gmux:fix", "-x", "fix:mux", "-x", "host:mux", "-x", "mux:out"]
stamps("babeltrace2 run", run)
# The host's own epoch as a number does the same as its directory.
run[run.index("-p", run.index("fix:filter.tandem.clock")) + 1] = \
    f'corrections="{pair}/truth.corrections",host-clock={HOST_EPOCH_NS}'
stamps("host-clock as a number", run)

# A constant needs no filter: source.ctf.fs adds it, and the stamps are the same as through the filter.
OFFSET = 727894648992
args = [tandem, "view", f"{pair}/host", f"{pair}/guest", "--offset", f"guest={OFFSET}"]
printed = subprocess.run(args + ["--run-args"], stdout=subprocess.PIPE, text=True, check=True).stdout
assert "filter.tandem.clock" not in printed and "clock-class-offset-ns" in printed, printed
want = []
for message in bt2.TraceCollectionMessageIterator(f"{pair}/guest"):
    if type(message) is bt2._EventMessageConst:
        want.append(message.default_clock_snapshot.value + OFFSET + HOST_EPOCH_NS)
stamps("a constant without a filter", args)

# Causality: the figures of the truth file, and what a shift of the correction makes of them.
def causality(*options):
    out = subprocess.run([tandem, "info", "--causality", "--quiet", f"{pair}/host", f"{pair}/guest", *options],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    return int(re.search(r"contradictions: (\d+)", out)[1]), out


count, text = causality()
assert count == 3475 and "  doubt: most of its events lie outside" in text, text
assert "6517 events, 3375 outside" in text and "100, received before sent: 100" in text, text
count, text = causality("--corrections", f"{pair}/truth.corrections")
assert count == 0 and "11257 events, 0 outside" in text and "doubt" not in text, text
assert "from 15129 ns (guest too early) or 28720 ns (guest too late)" in text, text
for shift, want_count in ((-5000, 0), (5000, 0), (-20000, 1), (100000, 948), (-100000, 1348), (1000000, 3073)):
    count, text = causality("--offset", f"guest={OFFSET + shift}")
    assert count == want_count, (shift, want_count, text)
# The same for trace.dat files of KVM guests, whose offsets are exact.
kvm = f"{source}/tests/data/kvm"
for inputs, events in ((["kvm-tsc", "kvm-tsc-l2"], 1981), (["kvm-two-guests", "kvm-two-guests-l2", "kvm-two-guests-l2b"], 1635)):
    out = subprocess.run([tandem, "info", "--causality", "--quiet", *[f"{kvm}/{i}.dat" for i in inputs]],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    judged = sum(int(n) for n in re.findall(r": (\d+) events, ", out))
    assert judged == events and re.findall(r"contradictions[^:]*: (\d+)", out)[-1] == "0", out
out = subprocess.run([tandem, "info", "--causality", "--json", "--quiet", *[f"{kvm}/{i}.dat" for i in ("kvm-tsc", "kvm-tsc-l2")]],
                     stdout=subprocess.PIPE, text=True, check=True).stdout
assert json.loads(out)["contradictions"] == 0
# Where nothing can be held against anything, no count is given.
blind = [f"{source}/tests/data/pairs/{name}.dat" for name in ("mono-interval", "mono-interval-guestrole")]
out = subprocess.run([tandem, "info", "--causality", "--quiet", *blind], stdout=subprocess.PIPE, text=True, check=True).stdout
assert "nothing could be judged" in out and "contradictions: not known" in out and "contradictions: 0" not in out, out
out = subprocess.run([tandem, "info", "--causality", "--json", "--quiet", *blind], stdout=subprocess.PIPE, text=True, check=True).stdout
assert json.loads(out)["contradictions"] is None and json.loads(out)["causality"][0]["contradictions"] is None, out
print("causality: 3475 contradictions without the correction, 0 with it")
sys.exit(0)
