#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Damaged perf.data: cut at every place and with flipped bits, nothing may crash, hang or grow; a cut loses only the end.

usage: perf_damage.py RECORD_DUMP REPLAY CORPUS DATA
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

DUMP, REPLAY, CORPUS, DATA = sys.argv[1:5]
WORK = tempfile.mkdtemp(prefix="tandem-damage-")


def replay(folder):
    limits = "ulimit -v %d; " % (2 << 20) if "SANITIZED" not in os.environ else ""
    done = subprocess.run(["bash", "-c", limits + 'exec "$0" "$1"', REPLAY, folder], timeout=250,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, (done.returncode, done.stdout.decode("utf-8", "replace")[-3000:])


def fill(variants):
    folder = tempfile.mkdtemp(dir=WORK)
    for number, data in enumerate(variants):
        with open(os.path.join(folder, "%05d" % number), "wb") as out:
            out.write(data)
    return folder


def cut_anywhere_nothing_breaks(seeds):
    replay(fill(data[:at] for data in seeds for at in range(0, len(data), 7)))


def flipped_anywhere_nothing_breaks(seeds):
    chance = random.Random(20261130)

    def flipped():
        for data in seeds:
            for _ in range(150):
                changed = bytearray(data)
                for _ in range(chance.choice((1, 1, 2, 8))):
                    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
                yield bytes(changed)

    replay(fill(flipped()))


def extreme_words_anywhere_nothing_breaks(seeds):
    chance = random.Random(7)

    def extreme():
        for data in seeds:
            for _ in range(60):
                changed = bytearray(data)
                at = chance.randrange(len(changed) - 8)
                size = chance.choice((2, 4, 8))
                changed[at:at + size] = chance.choice((b"\xff" * size, b"\0" * size, b"\x7f" + b"\xff" * (size - 1)))
                yield bytes(changed)

    replay(fill(extreme()))


def a_cut_loses_only_what_is_behind_it():
    """The records of a cut pipe recording are the first ones of each CPU, to the byte."""
    path = os.path.join(DATA, "host-pipe.data")
    with open(path, "rb") as source:
        whole = source.read()
    records = {}
    for line in subprocess.run([DUMP, path], stdout=subprocess.PIPE, check=True).stdout.splitlines():
        if line.startswith(b"R "):
            records.setdefault(line.split(b" ")[1], []).append(line)
    seen = set()
    for at in range(len(whole) // 2, len(whole), 997):
        cut = os.path.join(WORK, "cut")
        with open(cut, "wb") as out:
            out.write(whole[:at])
        done = subprocess.run([DUMP, cut], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode in (0, 1) and (done.returncode == 0 or done.stderr), (at, done)
        got = {}
        for line in done.stdout.splitlines():
            if line.startswith(b"R "):
                got.setdefault(line.split(b" ")[1], []).append(line)
        for cpu, lines in got.items():
            strip = [line.split(b" ")[:7] for line in lines]
            assert all(line in [whole.split(b" ")[:7] for whole in records[cpu]] for line in strip), (at, cpu)
        seen.add(sum(len(lines) for lines in got.values()))
    assert len(seen) > 3, seen


def main():
    seeds = []
    for name in sorted(os.listdir(CORPUS)):
        with open(os.path.join(CORPUS, name), "rb") as source:
            seeds.append(source.read())
    try:
        for case in (cut_anywhere_nothing_breaks, flipped_anywhere_nothing_breaks,
                     extreme_words_anywhere_nothing_breaks):
            case(seeds)
            print("ok - " + case.__name__.replace("_", " "))
        a_cut_loses_only_what_is_behind_it()
        print("ok - a cut loses only what is behind it")
    finally:
        shutil.rmtree(WORK)


main()
