#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Parameters are checked, queries answer, and what cannot be related is said once or refused."""
import os
import re
import tempfile

from graph import check, data, events, finish, run

PAIR = data("pairs/mono-1cpu-guest.dat", "pairs/mono-1cpu-guest-guestrole.dat")
ALONE = data("pairs/mono-nosync.dat", "pairs/mono-nosync-guestrole.dat")
SINGLE, = data("single/v7-none.dat")


def babeltrace2(inputs, params="", *options):
    arguments = ["babeltrace2", "-c", "source.tandem.tracedat", "-p",
                 "inputs=[" + ",".join(f'"{path}"' for path in inputs) + "]"]
    if params:
        arguments += ["-p", params]
    return run(*arguments, *options)


def flat(text):
    return re.sub(r"\s+", " ", text)


def refused(params, *words):
    result = babeltrace2([SINGLE], params)
    check(result.returncode != 0, f"{params} is accepted")
    for word in words:
        check(word in flat(result.stderr), f"{params}: {word!r} is not in the message")


def accepted(params, inputs=(SINGLE,)):
    result = babeltrace2(list(inputs), params, "-o", "dummy")
    check(result.returncode == 0, f"{params} is refused: {flat(result.stderr)[:400]}")


refused("nams=ftrace", 'unknown parameter "nams"')
refused('names="perf"', '"perf" is none of "lttng", "ftrace"')
refused("names=1", "must be a text")
refused('symbols="yes"', "must be yes or no")
refused("clock-hz=0", "0 is not between 1 and")
refused("clock-hz=-5", "is not between")
refused('on-unrelated="maybe"', '"maybe" is none of')
refused('corrections="/nonexistent.corrections"', "/nonexistent.corrections")
refused('corrections={web="/nonexistent"}', 'no machine is called "web"')
refused('machines=["a b"]', "is no name for a machine")
refused('machines=["a","b"]', "2 names for 1 inputs")
for params in ("names=lttng", "names=ftrace", "clock-hz=1000000000", "clock-hz=+2000000000", "clock-offset-ns=-5",
               "clock-offset-ns=+5", "symbols=yes", "print=yes", 'on-unrelated="fail"', 'buffers="top"',
               'buffers=["top"]', 'machines=["web"]'):
    accepted(params)

missing = run("babeltrace2", "run", "-c", "s:source.tandem.tracedat", "-c", "o:sink.utils.dummy", "-x", "s:o")
check('parameter "inputs" is missing' in flat(missing.stderr), "missing inputs are not told")
gone = babeltrace2(["/nonexistent/trace.dat"])
check(gone.returncode != 0 and "/nonexistent/trace.dat" in gone.stderr, "a missing file is not named")

# Offsets.
plain = [event.ns for event in events([SINGLE])]
moved = [event.ns for event in events([SINGLE], clock_offset_ns=1000)]
check([ns + 1000 for ns in plain] == moved, "clock-offset-ns does not move every stamp by as much")

# A clock in ticks: shown as ns with one warning, or turned into ns by its frequency.
ticks, = data("single/v7-raw-tsc.dat")
raw = list(events([ticks]))
result = babeltrace2([ticks], "", "-o", "dummy")
check(result.stderr.count('Clock "x86-tsc" counts ticks') == 1, "a clock in ticks is not told once")
result = babeltrace2([ticks], "clock-hz=2000000000", "-o", "dummy")
check("counts ticks" not in result.stderr, "a clock with a frequency is still told as ticks")
halved = [event.ns for event in events([ticks], clock_hz=2000000000)]
check(len(raw) == len(halved) and all(abs(b.ns // 2 - h) <= 1 for b, h in zip(raw, halved)),
      "ticks of a 2 GHz clock are not half as many ns")

# Relations.
result = babeltrace2(ALONE, "", "-o", "dummy")
check(result.returncode == 0, "unrelated inputs fail by default")
check(result.stderr.count("Nothing relates the clock of") == 1, "unrelated inputs are not told once")
result = babeltrace2([SINGLE], 'buffers="nosuch"', "-o", "dummy")
check('No input has a buffer called "nosuch"' in flat(result.stderr), "a buffer that is not there is not told")
result = babeltrace2([SINGLE], 'buffers="top"', "-o", "dummy")
check("No input has a buffer" not in result.stderr, "the top buffer is told as missing")
result = babeltrace2([SINGLE, SINGLE], "", "-o", "dummy")
check("is the same file as" in flat(result.stderr), "a file that is given twice is not told")
result = babeltrace2(ALONE, 'on-unrelated="fail"', "-o", "dummy")
check(result.returncode != 0 and "nothing relates the clock of" in flat(result.stderr), "on-unrelated=fail does not fail")
result = babeltrace2(PAIR, 'on-unrelated="fail"', "-o", "dummy")
check(result.returncode == 0 and result.stderr == "", f"a tied pair is not taken in silence: {result.stderr}")

# A shift that trace-cmd measured between two different clocks is doubted; good ones are not.
MIXED = data("pairs/default-clock.dat", "pairs/default-clock-guestrole.dat")
result = babeltrace2(MIXED, "", "-o", "dummy")
check(result.stderr.count("measured between two different clocks") == 1, f"mixed clocks are not told once: {result.stderr}")
for good in (data("kvm/kvm-tsc.dat", "kvm/kvm-tsc-l2.dat"), data("pairs/tsc-zstd.dat", "pairs/tsc-zstd-guestrole.dat"),
             data("kvm/kvm-two-guests.dat", "kvm/kvm-two-guests-l2.dat", "kvm/kvm-two-guests-l2b.dat")):
    result = babeltrace2(good, "", "-o", "dummy")
    check("measured" not in result.stderr, f"{good}: {result.stderr}")
    check(result.stderr.count("counts ticks") == ("tsc-zstd" in good[0]), f"{good}: {result.stderr}")

# A corrections file that says the same as trace-cmd's shift gives the same stamps, and one that says 1000 ticks more others.
KVM = data("kvm/kvm-tsc.dat", "kvm/kvm-tsc-l2.dat")
with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "web.corrections")
    stamps = []
    for more in (0, 1000):
        with open(path, "w", encoding="ascii") as out:
            out.write("tandem-corrections 1\nhost - clock x86-tsc unit-hz 2596147000\nguest - clock x86-tsc unit-hz 2596147000\n"
                      f"segment start 0 2\nk 0 {271170493400 + more} 0 0\nk 1000000000000 {1271170493400 + more} 0 0\nend\n")
        stamps.append([event.ns for event in events(KVM, corrections=path, machines=["", "web"], with_fields=False)
                       if event.machine == "web"])
        named = [event.ns for event in events(KVM, corrections={"web": path}, machines=["", "web"], with_fields=False)
                 if event.machine == "web"]
        check(named == stamps[-1], "corrections by name and without differ")
shifted = [event.ns for event in events(KVM, machines=["", "web"], with_fields=False) if event.machine == "web"]
check(stamps[0] == shifted, "the same correction gives other stamps")
check(all(384 <= b - a <= 386 for a, b in zip(stamps[0], stamps[1])), "1000 ticks more are not 385 ns more")

# Names.
names = {event.machine for event in events(PAIR, machines=["host", "web"])}
check(names == {"host", "web"}, f"machines are called {names}")
names = {event.machine for event in events(list(reversed(PAIR)))}
check(names == {"host", "guestrole"}, f"the host is not found in either order: {names}")
buffers = {event.buffer for event in events(data("single/v7-multibuf.dat"))}
check("top" in buffers and len(buffers) > 1, f"buffers are {buffers}")
one = sorted(buffers - {"top"})[0]
only = {event.buffer for event in events(data("single/v7-multibuf.dat"), buffers=one)}
check(only == {one}, f"buffers={one} gives {only}")

# Queries.
def query(path, kind="file"):
    return run("babeltrace2", "query", "source.tandem.tracedat", "babeltrace.support-info", "-p",
               f'input="{path}",type="{kind}"')


with tempfile.TemporaryDirectory() as work:
    empty, cut, foreign = (os.path.join(work, name) for name in ("empty", "cut", "foreign"))
    open(empty, "wb").close()
    with open(SINGLE, "rb") as whole, open(cut, "wb") as out:
        out.write(whole.read(9))
    with open(foreign, "wb") as out:
        out.write(b"PERFILE2" + bytes(100))
    result = query(SINGLE)
    check("weight: 0.8" in result.stdout and "group:" in result.stdout, f"support-info says {result.stdout}")
    for path, kind in ((empty, "file"), (cut, "file"), (foreign, "file"), (work, "directory"), (SINGLE, "string"),
                       ("/nonexistent", "file"), ("", "file")):
        result = query(path, kind)
        check(result.returncode == 0 and result.stdout.strip() in ("0.000000", "0"),
              f"support-info of {path} as {kind}: {result.stdout}{result.stderr}")
unknown = run("babeltrace2", "query", "source.tandem.tracedat", "no-such-thing", "-p", "a=1")
check(unknown.returncode != 0 and "no-such-thing" in unknown.stderr, "an unknown query is not told")

# The ranges of trace-infos are those of the streams, and cut what does not overlap.
result = run("babeltrace2", "query", "source.tandem.tracedat", "babeltrace.trace-infos", "-p",
             "inputs=[" + ",".join(f'"{path}"' for path in PAIR) + "]")
found = {}
for port, begin, end in re.findall(r"port-name: (\S+)\s+range-ns:\s+begin: (\d+)\s+end: (\d+)", result.stdout):
    found[port] = (int(begin), int(end))
ranges = {}
for event in events(PAIR):
    name = f"{event.machine}/{event.buffer}/cpu{event.cpu}"
    ranges[name] = (ranges.get(name, (event.ns, 0))[0], event.ns)
check(found == ranges, f"trace-infos has {found}, the streams {ranges}")
begin, end = max(r[0] for r in found.values()), min(r[1] for r in found.values())
result = run("babeltrace2", "--stream-intersection", "--clock-cycles", PAIR[0])
check(result.returncode == 0 and result.stdout, "--stream-intersection fails")
trimmed = run("babeltrace2", "--begin", f"{begin // 10**9}.{begin % 10**9:09}", "--end", f"{end // 10**9}.{end % 10**9:09}", *PAIR)
inside = sum(begin <= event.ns <= end for event in events(PAIR))
check(len(trimmed.stdout.splitlines()) == inside, "--begin and --end do not cut at their times")
finish()
