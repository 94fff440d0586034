#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Damaged files: no crash, no hang; a message with the file; what is undamaged is delivered; the end is a failure."""
import os
import random
import re
import tempfile

from graph import check, data, events, finish, run

BASE, = data("single/v7-multibuf.dat")
PLAIN, = data("single/v7-none.dat")
PAIR = data("pairs/mono-nosync.dat", "single/v7-none.dat")


def babeltrace2(*inputs):
    return run("babeltrace2", *inputs, "--clock-cycles", "--no-delta", timeout=60)


def ended(result, what):
    """Neither killed by a signal nor silent about a failure."""
    check(result.returncode in (0, 1), f"{what}: ended with {result.returncode}")
    check(result.returncode == 0 or result.stderr.strip(), f"{what}: failed without a word")


whole = len(babeltrace2(PLAIN).stdout.splitlines())
check(whole > 100, f"only {whole} events in {PLAIN}")
with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "damaged.dat")

    def damaged(content):
        with open(path, "wb") as out:
            out.write(content)
        return babeltrace2(path)

    for base in (BASE, PLAIN):
        with open(base, "rb") as file:
            good = file.read()
        # Cut at every region.
        for size in sorted({*range(12, 200, 37), *(len(good) * i // 23 for i in range(1, 23))}):
            ended(damaged(good[:size]), f"{os.path.basename(base)} cut to {size} bytes")
        # Flipped bits, the same ones each time.
        chance = random.Random(7)
        for turn in range(40):
            content = bytearray(good)
            for _ in range(1 + turn % 5):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            ended(damaged(bytes(content)), f"{os.path.basename(base)} with flipped bits, turn {turn}")

    # A page of an uncompressed file overwritten: the other pages still come, the page is named, the end is a failure.
    with open(PLAIN, "rb") as file:
        content = bytearray(file.read())
    begin = len(content) // 4096 * 4096 - 4096
    content[begin:begin + 4096] = b"\xff" * 4096
    result = damaged(bytes(content))
    events_left = len(result.stdout.splitlines())
    check(0 < events_left < whole, f"{events_left} of {whole} events after a page was overwritten")
    check(result.returncode == 1, "an unreadable page does not end in a failure")
    check(path in result.stderr, "the damaged file is not named")
    check("could not be read" in re.sub(r"\s+", " ", result.stderr), "it is not said that something is missing")

    # A damaged file beside a good one: all of the good one is delivered.
    merged = babeltrace2(path, data("single/v7-gap.dat")[0])
    check(len(merged.stdout.splitlines()) == events_left + 2, "a damaged file takes events of another with it")

    # No saved names at all: they are learned, and nothing is called by a wrong one.
    content = bytearray(open(data("single/v7-none.dat")[0], "rb").read())
    at = content.find((21).to_bytes(2, "little") + (8).to_bytes(4, "little"))
    check(at > 0, "the option that points to the saved names is not found")
    content[at:at + 2] = (30021).to_bytes(2, "little")
    with open(path, "wb") as out:
        out.write(content)
    before = {(e.ns, e.cpu): e.procname for e in events([PLAIN], with_fields=False)}
    after = {(e.ns, e.cpu): e.procname for e in events([path], with_fields=False)}
    check(before.keys() == after.keys(), "events are missing without the saved names")
    learned = sum(name not in ("<...>", "swapper") for name in after.values())
    check(learned > len(after) // 3, f"only {learned} of {len(after)} events have a learned name")
finish()
