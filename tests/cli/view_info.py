#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem view and tandem info: what they print, how they end, on good and on hostile input."""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "plugin"))
from graph import BUILD, DATA, check, data, events, finish, run, stats

TANDEM = os.path.join(BUILD, "cli", "tandem")
PAIR = data("pairs/mono-interval.dat", "pairs/mono-interval-guestrole.dat")


def tandem(*arguments):
    return run(TANDEM, *arguments, timeout=120)


# Usage.
for command in ("view", "info"):
    check(tandem(command).returncode == 2, f"{command} without inputs does not end with 2")
    check(tandem(command, "--no-such-option", PAIR[0]).returncode == 2, f"{command}: an unknown option does not end with 2")
    result = tandem(command, "--help")
    check(result.returncode == 0 and "Example" in result.stdout and result.stderr == "", f"{command} --help")
    result = tandem(command, "--version")
    check(result.returncode == 0 and re.fullmatch(r"tandem \d+\.\d+\.\d+\n", result.stdout), f"{command} --version")
    result = tandem(command, "/nonexistent/trace.dat")
    check(result.returncode == 1 and "/nonexistent/trace.dat" in result.stderr, f"{command}: a missing file: {result}")
check(tandem("view", "--names", "perf", PAIR[0]).returncode == 2, "view --names perf does not end with 2")

# View: a line an event, in one order, each under its machine's name.
line = re.compile(r"\[(\d+)\.(\d{9})\] (\S+) +cpu(\d+) +(.*)")
result = tandem("view", PAIR[0], "web=" + PAIR[1])
check(result.returncode == 0, f"view ends with {result.returncode}")
lines = [match for match in map(line.match, result.stdout.splitlines()) if match]
want = list(events(PAIR, machines=["host", "web"], with_fields=False))
check([(int(m[1]) * 10**9 + int(m[2]), m[3], int(m[4])) for m in lines] == [(e.ns, e.machine, e.cpu) for e in want],
      "view's times, machines and CPUs are not the source's")
check(sum("-- the tracer lost" in text for text in result.stdout.splitlines()) == 2, "losses have no lines")
printed = tandem("view", "--run-args", PAIR[0], "web=" + PAIR[1])
again = run("sh", "-c", printed.stdout)
check(again.stdout == result.stdout, "what --run-args prints does not do the same")
begin, end = want[1000].ns, want[2000].ns
cut = tandem("view", "--begin", f"{begin // 10**9}.{begin % 10**9:09}", "--end", f"{end // 10**9}.{end % 10**9:09}", *PAIR)
check(sum(bool(line.match(t)) for t in cut.stdout.splitlines()) == sum(begin <= e.ns <= end for e in want),
      "--begin and --end do not cut at their times")
for times in (("--begin", "abc"), ("--end", ""), ("--begin", "1.2.3"), ("--begin", "99999999999"), ("--begin", "12:00"),
              ("--begin", "1.0000000001"), ("--begin", "3", "--end", "2.9")):
    bad = tandem("view", *times, PAIR[0])
    check(bad.returncode == 2 and bad.stdout == "" and times[0] in bad.stderr and "seconds, as printed" in bad.stderr
          and len(bad.stderr.splitlines()) <= 2, f"{times}: {bad}")
for times in (("--begin", "-3"), ("--end", "9000000000"), ("--begin", "0.5", "--end", "9000000000.123456789")):
    check(tandem("view", *times, PAIR[0]).returncode == 0, f"{times} is refused")
quiet = tandem("view", "--quiet", *data("pairs/mono-nosync.dat", "pairs/mono-nosync-guestrole.dat"))
check(quiet.returncode == 0 and quiet.stderr == "", f"view --quiet says {quiet.stderr}")

# Info: figures are trace-cmd's.
for names in (("pairs/mono-interval.dat", "pairs/mono-interval-guestrole.dat"), ("single/v7-multibuf.dat",),
              ("single/v7-lost.dat",), ("single/v7-idle.dat",)):
    result = tandem("info", "--json", *data(*names))
    check(result.returncode == 0, f"info of {names} ends with {result.returncode}: {result.stderr}")
    for name, machine in zip(names, json.loads(result.stdout)["machines"]):
        wanted = stats(os.path.join(DATA, name[:-4] + ".stats"))
        check(machine["events"] == wanted["total"], f"{name}: {machine['events']} events, {wanted['total']} reported")
        check(machine["lost_events"] == wanted.get("dropped", 0), f"{name}: {machine['lost_events']} lost")
        by_cpu = {(b["name"], c["cpu"]): c["events"] for b in machine["buffers"] for c in b["cpus"] if c["events"]}
        reported = {("top" if k[2] == "-" else k[2], int(k[1])): int(v[0]) for k, v in wanted["span"].items()}
        check(by_cpu == reported, f"{name}: {by_cpu}, reported {reported}")
result = json.loads(tandem("info", "--json", *PAIR).stdout)["machines"]
check([m["role"] for m in result] == ["host", "guest"] and result[1]["tie"] == "time-shift", "roles and tie of a pair")
check(all(s["count"] == 5 for s in result[1]["sync_samples"]), "5 samples a CPU are not seen")
result = json.loads(tandem("info", "--json", *data("pairs/default-clock.dat", "pairs/default-clock-guestrole.dat")).stdout)
check(result["machines"][1]["shares_time_with_reference"] is False, "a shift of mixed clocks is not doubted")
text = tandem("info", *PAIR).stdout
check("time shift in the file, onto host" in text and "5 samples" in text and "spread" in text, f"text of info: {text}")

check("bound       none: a time shift says no bound" in text, f"the lack of a bound is not said: {text}")
check(result["machines"][1]["bound_worst"] is None, "a time shift has a bound in JSON")

# Hostile input: 1 or 3, a message, never a crash.
with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "x.dat")
    with open(data("single/v7-none.dat")[0], "rb") as file:
        good = file.read()
    for size in (0, 3, 10, 17, 300, 5000, len(good) // 2, len(good) - 4096):
        with open(path, "wb") as out:
            out.write(good[:size])
        for command in ("info", "view"):
            result = tandem(command, path)
            check(result.returncode in (1, 3), f"{command} of {size} bytes ends with {result.returncode}")
            check(path in result.stderr, f"{command} of {size} bytes does not name the file")
    result = tandem("info", "--json", path, data("single/v7-gap.dat")[0])
    check(result.returncode == 3, f"info of a good and a damaged file ends with {result.returncode}")
    check(any(m.get("events") == 2 for m in json.loads(result.stdout)["machines"]), "the good file is not reported")
    # Nothing of it is left that could give events.
    with open(data("single/v7-gap.dat")[0], "rb") as file, open(path, "wb") as out:
        gap = file.read()
        out.write(gap[:len(gap) * 7 // 10])
    for more, code in (((), 1), ((data("single/v7-none.dat")[0],), 3)):
        result = tandem("view", path, *more)
        check(result.returncode == code and path in result.stderr, f"view of a cut file and {more}: {result.returncode}")
multi = data("single/v7-multibuf.dat")[0]
for buffers, code in ((["nope"], 1), (["nope", "top"], 3), (["top"], 0)):
    result = tandem("view", *(word for name in buffers for word in ("--buffer", name)), multi)
    check(result.returncode == code and ("nope" in result.stderr) == (code > 0) and (result.stdout == "") == (code == 1),
          f"--buffer {buffers} ends with {result.returncode}")
check(tandem("view", data("single/v7-idle.dat")[0]).returncode == 0, "view of a whole file does not end with 0")
finish()
