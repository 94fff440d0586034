#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Judges a recording of a KVM host and its guest with the TSC as clock.

usage: windows.py WORK    WORK/rec holds the recording, WORK/record.out what the host printed: KVM's offsets before and after
"""
import json
import os
import subprocess
import sys

TANDEM = os.path.join(os.environ["TANDEM_BUILD"], "cli", "tandem")
# Far more than any host needs to leave and enter a guest: with such a clock events have to lie outside.
WRONG_TICKS = 100_000_000


def knots(path):
    return [tuple(map(int, line.split()[1:])) for line in open(path) if line.startswith("k ")]


def causality(work, *how):
    done = subprocess.run([TANDEM, "info", "--causality", "--json", "--quiet", *how, f"host={work}/rec/host.dat",
                           f"l2={work}/rec/l2.dat"], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 3), f"status {done.returncode}: {done.stderr}"
    vcpus = json.loads(done.stdout)["causality"][0]["vcpus"]
    return (sum(v["judged"] for v in vcpus), sum(v["outside"] for v in vcpus),
            max((v["outside_most_ns"] for v in vcpus), default=0), [v["windows"] for v in vcpus])


def main():
    work = sys.argv[1]
    told = [tuple(line.split()[1:]) for line in open(f"{work}/record.out") if line.startswith("offsets")]
    print("tsc-offset of the vCPUs before and after:", told)
    if len(told) < 2 or not told[0] or len(set(told[0] + told[1])) != 1:
        print("SKIP: KVM changed the offsets while we recorded, or the vCPUs have different ones")
        sys.exit(77)
    offset = -int(told[0][0])

    exact = knots(f"{work}/rec/l2.corrections")
    assert exact and all(host - guest == offset for guest, host, _, _ in exact), \
        f"KVM says {offset}, the corrections of the recording {exact[:3]}"
    subprocess.run([TANDEM, "estimate", "-q", f"{work}/rec/l2.exchanges", f"{work}/measured.corrections"], check=True,
                   timeout=100)
    measured = knots(f"{work}/measured.corrections")
    off = [(abs(host - guest - offset), max(minus, plus)) for guest, host, minus, plus in measured]
    assert measured and all(distance <= bound for distance, bound in off), f"exchanges are off: {off}"
    print(f"exchanges alone and tsc-offset differ by at most {max(d for d, _ in off)} ticks, bound {max(b for _, b in off)}")

    bounds = {f"{work}/rec/l2.corrections": max(max(k[2:]) for k in exact), f"{work}/measured.corrections": max(b for _, b in off)}
    for path, bound in bounds.items():
        judged, outside, most, windows = causality(work, "--corrections", f"l2={path}")
        print(f"{os.path.basename(path)}: {judged} events, windows {windows}, {outside} outside, at most {most} ns away, "
              f"bound {bound} ticks")
        assert len(windows) == 2 and all(windows) and judged > 200, "the recording has too little to judge"
        # A tick is a nanosecond at most, here and on any machine of this century.
        assert most <= bound, f"{outside} events of the guest lie up to {most} ns outside the windows of their vCPU"
    with open(f"{work}/wrong.corrections", "w") as wrong:
        for line in open(f"{work}/rec/l2.corrections"):
            word = line.split()
            print(*(word[:2] + [str(int(word[2]) - WRONG_TICKS)] + word[3:] if word[0] == "k" else word), file=wrong)
    judged, outside, most, _ = causality(work, "--corrections", f"l2={work}/wrong.corrections")
    assert outside > judged // 20, f"a wrong clock is not seen: {outside} of {judged} outside"


main()
