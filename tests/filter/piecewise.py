#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stamps equal an independent computation, for corrections with steps, doubt, CPUs, negative offsets, times before 0."""
import os
import re
import subprocess
import sys
import tempfile

import bt2

sys.dont_write_bytecode = True
from corrections import Corrections

build, source = os.environ["TANDEM_BUILD"], os.environ["TANDEM_SOURCE"]
trace = f"{source}/tests/data/lttng-kernel/pair1/host/kernel"  # two CPUs, two streams
work = tempfile.mkdtemp()
env = dict(os.environ, BABELTRACE_PLUGIN_PATH=f"{build}/plugin:{build}/tests/filter")

events = []  # (reading, cpu, name)
for message in bt2.TraceCollectionMessageIterator(trace):
    if type(message) is bt2._EventMessageConst:
        events.append((message.default_clock_snapshot.value, int(message.event.packet.context_field["cpu_id"]),
                       message.event.name))
first, last = events[0][0], events[-1][0]
span = last - first

LINE = re.compile(r"\[(-?)(\d+)\.(\d{9})\] \(\S+\) (?:\S+ )?(\S+): \{ cpu_id = (\d+) \}")


def run(corrections, epoch, *extra, params=""):
    ports = 'ports=2' in params
    graph = ["babeltrace2", "run", "-c", "in:source.ctf.fs", "-p", f'inputs=["{trace}"]',
             "-c", "mux:filter.utils.muxer", "-c", "fix:filter.tandem.clock",
             "-p", f'corrections="{corrections}",host-clock={epoch}{params}',
             "-c", "check:filter.tandemtest.check", "-c", "out:sink.text.pretty", "-p", "clock-seconds=yes", *extra]
    if ports:
        graph += ["-x", "in:fix", "-x", "fix:mux", "-x", "mux:check"]
    else:
        graph += ["-x", "in:mux", "-x", "mux:fix", "-x", "fix:check"]
    if "-c" not in extra:
        graph += ["-x", "check:out"]
    return subprocess.run(graph, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def stamps(done):
    assert done.returncode == 0, done.stderr
    got = []
    for line in done.stdout.splitlines():
        m = LINE.match(line)
        assert m, line
        ns = int(m[2]) * 10**9 + int(m[3])
        got.append((-ns if m[1] else ns, int(m[5]), m[4]))
    return got


def write(name, text):
    path = f"{work}/{name}.corrections"
    with open(path, "w") as out:
        out.write("tandem-corrections 1\nhost h clock mono unit-hz 1000000000\n"
                  "guest g clock mono unit-hz 1000000000\n" + text + "end\n")
    return path


def want(path, epoch, per_stream):
    """Per stream, or over the one port, a stamp is never below the one before."""
    correction, held, out, highest = Corrections(path), 0, [], {}
    for reading, cpu, name in events:
        ns = correction.host_ns(reading, cpu) + epoch
        key = cpu if per_stream else None
        if ns < highest.get(key, ns):
            ns, held = highest[key], held + 1
        highest[key] = ns
        out.append((ns, cpu, name))
    return out, held


def compare(name, path, epoch, held_wanted=None, clamped_edges=False):
    expected, held = want(path, epoch, False)
    done = run(path, epoch)
    got = stamps(done)
    if clamped_edges:
        # Packet edges take part in the clamp and are not in this list: never below, and equal wherever not held.
        exact = sum(g == e for g, e in zip(got, expected))
        assert all(g[0] >= e[0] for g, e in zip(got, expected))
        assert exact >= len(got) - held - 50, (name, exact, held)
    else:
        wrong = [(g, e) for g, e in zip(got, expected) if g != e]
        assert len(got) == len(expected) and not wrong, (name, len(wrong), wrong[:2])
    assert (held > 0) == ("held back" in done.stderr), (name, held, done.stderr)
    if held_wanted is not None:
        assert (held > 0) == held_wanted, (name, held)
    # The same with a port for each stream: only a stream's own stamps hold it back; the muxer puts them in order.
    expected, held = want(path, epoch, True)
    by_port = stamps(run(path, epoch, params=",ports=2"))
    if not clamped_edges:
        assert sorted(by_port) == sorted(expected), name
    assert all(a[0] <= b[0] for a, b in zip(by_port, by_port[1:])), name
    print(f"{name}: {len(got)} stamps as computed, {held} held")


EPOCH = 1796039857284825211
a, b, c = first, first + span // 3, first + 2 * span // 3
# Knots that do not divide evenly, a rate far from 1, then a jump ahead, a doubt, and a slower piece.
compare("steps ahead", write("ahead", f"""segment start 0 3
k {a - 1000} {a + 5000001} 10 20
k {a + 777777777} {a + 777777777 + 5000001 + 12345} 10 20
k {b} {b + 5100000} 10 20
segment step {b + 1} 2
k {b + 1000} {b + 3600 * 10**9} 100 100
k {c} {c + 3600 * 10**9 - 999999} 100 100
doubt {b} {b + 1000}
segment rate {c + 5} 1
k {c + 5} {c + 3600 * 10**9} 7 7
"""), EPOCH, False)
compare("a step back", write("back", f"""segment start 0 1
k {a} {a + 10**9} 1 1
segment step {b} 1
k {b} {b + 10**9 - 50000000} 1 1
"""), EPOCH, True, clamped_edges=True)
compare("negative offset", write("negative", f"""segment start 0 2
k {a} {a - first + 1} 1 1
k {c} {c - first + 17} 1 1
"""), 0, False)
compare("times before the host clock's zero", write("before", f"""segment start 0 1
k {last} {span // 2} 3 3
"""), 0, False)
compare("times before the epoch", write("epoch", f"""segment start 0 1
k {a} {a} 3 3
"""), -10**18, False)
compare("one knot, far away", write("one", "segment start 0 1\nk 5 900000000000007 3 3\n"), 12345, False)

# A CPU with a clock of its own: each stream right by itself needs a port of its own.
cpu = write("cpu", f"segment start 0 1\nk {a} {a} 3 3\ncpu 1 250 5\n")
expected, held = want(cpu, EPOCH, True)
assert held == 0
assert sorted(stamps(run(cpu, EPOCH, params=",ports=2"))) == sorted(expected)
print("cpu: each CPU's own offset")

# A host that counts in other units: readings of the correction become ns by unit-hz.
path = f"{work}/units.corrections"
with open(path, "w") as out:
    out.write("tandem-corrections 1\nhost h clock x86-tsc unit-hz 2596127000\nguest g clock mono unit-hz 1000000000\n"
              f"segment start 0 2\nk {a} {a * 3} 9 9\nk {a + 10**9} {a * 3 + 2596127123} 9 9\nend\n")
expected, held = want(path, 777, False)
assert stamps(run(path, 777)) == expected
print("units: as computed")

# Trimming behind the filter works in corrected time.
path = f"{work}/ahead.corrections"
expected, held = want(path, EPOCH, False)
begin, end = expected[4000][0], expected[20000][0]
inside = [e for e in expected if begin <= e[0] <= end]
done = run(path, EPOCH, "-c", "trim:filter.utils.trimmer", "-p",
           f'begin="{begin // 10**9}.{begin % 10**9:09}",end="{end // 10**9}.{end % 10**9:09}",gmt=yes',
           "-x", "check:trim", "-x", "trim:out")
if done.returncode != 0:
    # The checker cannot seek; the filter can.
    graph = ["babeltrace2", "run", "-c", "in:source.ctf.fs", "-p", f'inputs=["{trace}"]', "-c", "mux:filter.utils.muxer",
             "-c", "fix:filter.tandem.clock", "-p", f'corrections="{path}",host-clock={EPOCH}',
             "-c", "trim:filter.utils.trimmer", "-p",
             f'begin="{begin // 10**9}.{begin % 10**9:09}",end="{end // 10**9}.{end % 10**9:09}"',
             "-c", "out:sink.text.pretty", "-p", "clock-seconds=yes",
             "-x", "in:mux", "-x", "mux:fix", "-x", "fix:trim", "-x", "trim:out"]
    done = subprocess.run(graph, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
got = stamps(done)
assert got == inside, (len(got), len(inside))
print(f"trimmer: {len(got)} of {len(expected)} events, by corrected time")

# Refusals say why.
for params, words in ((',extrapolate="no"', "outside the correction's samples"), (",bogus=1", "bogus"),
                      (',on-missing="never"', "on-missing"), (",ports=0", "ports")):
    done = run(f"{work}/negative.corrections", 0, params=params)
    assert done.returncode != 0 and words in " ".join(done.stderr.split()), (params, done.stderr)
done = run(f"{work}/nothing-there", 0)
assert done.returncode != 0 and "nothing-there" in done.stderr, done.stderr
done = run(f"{work}/nothing-there", EPOCH, params=',on-missing="pass"')
assert [g[0] for g in stamps(done)] == [e[0] + EPOCH for e in events] and done.stderr.count("stay as they are") == 1
done = run(f"{work}/negative.corrections", '"/nonexistent"')
assert done.returncode != 0 and "host-clock" in done.stderr, done.stderr
done = run(f"{work}/negative.corrections", 2**63 - 2)
assert done.returncode != 0 and "292 years" in " ".join(done.stderr.split()), done.stderr
print("refusals: each names its reason")
