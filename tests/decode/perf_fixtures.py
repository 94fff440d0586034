#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""perf.data files of real machines: counts as perf counted them, and every sample as perf itself reads it.

usage: perf_fixtures.py RECORD_DUMP [FOLDER]
"""
import glob
import lzma
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import perf_oracle  # noqa: E402

DUMP = sys.argv[1]
FOLDER = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "..", "data", "perf")
CONTEXT_MARKS = 2 ** 64 - 4095
failed = 0


def check(what, wanted, got):
    global failed
    if wanted == got:
        print("ok - " + what)
    else:
        failed += 1
        print("NOT OK - %s: wanted %.600r, got %.600r" % (what, wanted, got))


def lines(*options):
    done = subprocess.run([DUMP, *options], stdout=subprocess.PIPE, check=True, timeout=120)
    return done.stdout.decode("utf-8", "surrogateescape").splitlines()


def unescape(text):
    return text.encode("ascii").decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")


def as_we_read(path):
    found = {}
    for line in lines(path):
        word = line.split(" ")
        if word[0] == "R":
            chain = [] if word[9] == "-" else [int(address, 16) for address in word[9].split(",")]
            found.setdefault(int(word[1]), []).append({
                "time": int(word[2]), "event": word[4], "pid": int(word[5]), "tid": int(word[6]),
                "comm": unescape(word[8]), "chain": [ip for ip in chain if ip < CONTEXT_MARKS], "raw": word[10]})
    return found


def first_difference(wanted, got):
    for one, other in zip(wanted, got):
        if one != other:
            return one, other
    return len(wanted), len(got)


def compare_with_perf(path, name):
    ours = as_we_read(path)
    theirs = {}
    for cpu, samples in perf_oracle.by_cpu(perf_oracle.samples(path)).items():
        theirs[cpu] = [{
            "time": s["time"], "event": s["event"], "pid": s["pid"], "comm": s["comm"], "chain": s["chain"],
            "tid": s["tid"], "raw": s["raw"][4:]} for s in samples]
        for mine, other in zip(ours.get(cpu, []), theirs[cpu]):
            if other["tid"] == 2 ** 32 - 1:  # a task that is being released: the kernel's record still knows it
                other.update(pid=-1, tid=mine["tid"], comm=mine["comm"])
            if other["comm"].startswith(":"):
                other["comm"] = "-"  # perf's word for "no name known"
    check(name + ": same CPUs as perf", sorted(theirs), sorted(ours))
    for cpu, wanted in theirs.items():
        got = ours.get(cpu, [])
        check("%s: CPU %d, every sample as perf reads it" % (name, cpu), "no difference",
              "no difference" if wanted == got else first_difference(wanted, got))


def check_fixture(path, stats_path, name):
    with open(stats_path, encoding="ascii") as source:
        stats = [line.split() for line in source]
    wanted = sorted(tuple(word) for word in stats if word[0] == "count")
    check(name + ": counts by CPU and event", wanted,
          sorted(tuple(line.split()) for line in lines("--counts", path) if line.startswith("count")))
    raw_times = [int(line.split(" ")[2]) for line in lines(path) if line.startswith("R ")]
    for which, time in (("first", min(raw_times)), ("last", max(raw_times))):
        check("%s: %s time" % (name, which), [word[1] for word in stats if word[0] == which],
              ["%d.%09d" % divmod(time, 10 ** 9)])
    lost = sum(int(word[3]) for word in stats if word[:2] == ["records", "LOST_SAMPLES"] and len(word) > 3)
    lost += sum(int(word[2]) for word in stats
                if word[:2] == ["records", "LOST_SAMPLES"] and int(word[2]) > 1000)
    check(name + ": lost events", lost, sum(int(line.split(" ")[4]) for line in lines(path) if line[0] == "L"))
    check(name + ": nothing unreadable", [], [line for line in lines(path) if line[0] == "F"])


def main():
    work = tempfile.mkdtemp(prefix="tandem-perf-")
    has_perf = shutil.which("perf") is not None
    if not has_perf:
        print("SKIP: perf is not installed: the comparison with it is left out")
    for stats_path in sorted(glob.glob(os.path.join(FOLDER, "*.stats"))):
        name = os.path.basename(stats_path)[:-len(".stats")]
        path = os.path.join(work, name + ".data")
        packed = os.path.join(FOLDER, name + ".data.xz")
        if os.path.exists(packed):
            with lzma.open(packed) as source, open(path, "wb") as out:
                shutil.copyfileobj(source, out)
        else:
            shutil.copy(os.path.join(FOLDER, name + ".data"), path)
        check_fixture(path, stats_path, name)
        if has_perf:
            compare_with_perf(path, name)
    shutil.rmtree(work)
    sys.exit(1 if failed else 0 if has_perf else 77)


main()
