#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Judges a recording of a host that asked its guests questions (request-reply), with all readers of its files.

usage: conversation.py DIR COUNT GUEST...

Request i of a conversation has FIRST + i bytes and so has its reply, so the four system calls of each pair are found
again: host sends, guest receives, guest sends, host receives, which have to be in that order within the bound.
trace-cmd and KernelShark's library must see the same events as we do, at the same times.
"""
import bisect
import os
import re
import subprocess
import sys

FIRST = 300
SENDTO, RECVFROM = 44, 45
# What a TIME_SHIFT of ours may differ by, tdm_timeline_to_shift().
SHIFT_NS = 2
BUILD = os.environ["TANDEM_BUILD"]
OUR_LINE = re.compile(r"\[(\d+)\.(\d{9})\] (\S+) +cpu(\d+) +(.*)-(\d+) +(\w+): ?(.*)")
THEIR_LINE = re.compile(r" *(?:(\S+):)? +(\S.*)-(\d+) +\[(\d+)\] +(\d+)\.(\d{9}): (\w+): *(.*)")


def run(*command, ok=(0,)):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=200)
    if done.returncode not in ok:
        sys.exit(f"{command[0]} {command[1]}: status {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


class Event:
    def __init__(self, seconds, ns, cpu, task, tid, name, text):
        self.time = int(seconds) * 10**9 + int(ns)
        self.cpu, self.task, self.tid, self.name, self.text = int(cpu), task, int(tid), name, text

    def call(self):
        """(system call, enter?, length or result), None for other events."""
        if self.name == "sys_enter":
            found = re.match(r"NR (\d+) \((\w+), (\w+), (\w+),", self.text)
            return found and (int(found[1]), True, int(found[4], 16))
        found = re.match(r"NR (\d+) = (-?\d+)", self.text)
        return found and self.name == "sys_exit" and (int(found[1]), False, int(found[2]))


def ours(directory, names):
    # By the corrections, not by what they became in the file.
    corrections = [word for n in names[1:] for word in ("--corrections", f"{n}={directory}/{n}.corrections")]
    out = run(os.path.join(BUILD, "cli", "tandem"), "view", *corrections, *(f"{directory}/{n}.dat" for n in names))
    events = {name: [] for name in names}
    for line in out.splitlines():
        found = OUR_LINE.match(line)
        if found:
            events[found[3]].append(Event(found[1], found[2], found[4], found[5], found[6], found[7], found[8]))
    return events


def theirs(directory, guest):
    out = run("trace-cmd", "report", "-t", "-i", f"{directory}/host.dat", "-i", f"{directory}/{guest}.dat")
    events = {"host": [], guest: []}
    for line in out.splitlines():
        found = THEIR_LINE.match(line)
        if found:
            events[found[1].removesuffix(".dat")].append(Event(found[5], found[6], found[4], found[2], found[3],
                                                               found[7], found[8]))
    return events


class Bound:
    """Knots of a corrections file, by host reading."""

    def __init__(self, path):
        self.knots = sorted(tuple(map(int, line.split()[1:])) for line in open(path) if line.startswith("k "))
        self.hosts = [knot[1] for knot in self.knots]

    def at(self, host):
        i = bisect.bisect(self.hosts, host)
        near = self.knots[max(0, i - 1):i + 1]
        # Outside the file's reach it grows with the distance, by 200 ppm at most.
        away = max(0, self.hosts[0] - host, host - self.hosts[-1])
        return max(k[2] for k in near) + away // 5000, max(k[3] for k in near) + away // 5000


def pairs(host, guest):
    """By task, by length: when a request and its reply were sent and received, [sent, got] or [got, sent]."""
    def talk(events, receives_first):
        by_tid = {}
        for event in events:
            call = event.call()
            if not call or not event.task.startswith("request-reply"):
                continue
            nr, enters, value = call
            if nr == SENDTO and enters:
                by_tid.setdefault(event.tid, {}).setdefault(value, [None, None])[1 if receives_first else 0] = event.time
            elif nr == RECVFROM and not enters:
                by_tid.setdefault(event.tid, {}).setdefault(value, [None, None])[0 if receives_first else 1] = event.time
        return by_tid

    return talk(host, False), talk(guest, True)


def judge_order(directory, guest, host_events, guest_events, count, shift=0):
    """Number of contradictions of the best matching conversation, and the slack of its least pair."""
    asking, answering = pairs(host_events, guest_events)
    bound = Bound(f"{directory}/{guest}.corrections")
    wanted = range(FIRST, FIRST + count)
    complete = [t for t in answering.values() if all(None not in t.get(n, (None,)) for n in wanted)]
    assert len(complete) == 1, f"{guest}: {len(complete)} conversations of {count} in its file"
    best = None
    for talk in asking.values():
        if not all(None not in talk.get(n, (None,)) for n in wanted):
            continue
        wrong, strict, least = 0, 0, None
        for n in wanted:
            sent, got = talk[n]
            arrived, answered = (t + shift for t in complete[0][n])
            minus, plus = bound.at(arrived)
            wrong += arrived + plus < sent or answered - minus > got
            strict += arrived < sent or answered > got
            slack = min(arrived - sent, got - answered)
            least = slack if least is None else min(least, slack)
        best = min(best or (wrong, strict, least), (wrong, strict, least))
    assert best, f"{guest}: no conversation of {count} in the host's file"
    return best


def same_events(what, mine, other):
    """Both lists of (cpu, time, name) in order of time of each CPU."""
    assert len(mine) == len(other), f"{what}: {len(mine)} events, we see {len(other)}"
    apart = 0
    for cpu in {e[0] for e in mine}:
        a, b = ([e for e in events if e[0] == cpu] for events in (mine, other))
        assert len(a) == len(b), f"{what}: CPU {cpu}: {len(a)} events, we see {len(b)}"
        for x, y in zip(a, b):
            assert x[2] is None or x[2] == y[2], f"{what}: {x} and {y}"
            apart = max(apart, abs(x[1] - y[1]))
    return apart


def kernelshark(directory, names, mine):
    tool = os.path.join(BUILD, "tests", "support", "kshark-dump")
    if not os.path.exists(tool):
        print("SKIP: KernelShark's library is not installed (libkshark-dev libjson-c-dev); the rest goes on")
        return
    streams = {name: [] for name in names}
    guests = []
    for line in run(tool, *(f"{directory}/{n}.dat" for n in names)).splitlines():
        if line.startswith("guest "):
            guests.append(line.split())
        elif re.match(r"\d+ \d+ \d+ \d+ -?\d+$", line):
            stream, cpu, time, _, _ = map(int, line.split())
            streams[names[stream]].append((cpu, time, None))
    for name in names:
        apart = same_events(f"KernelShark, {name}", streams[name], mine[name])
        print(f"KernelShark's library: {name}: {len(streams[name])} events, times {apart} ns apart")
        assert apart <= (SHIFT_NS if name != "host" else 0), f"KernelShark, {name}: {apart} ns apart"
    assert sorted(g[2] for g in guests) == sorted(names[1:]), f"KernelShark knows the guests {guests}"


def main():
    directory, count, guests = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    names = ["host", *guests]
    events = ours(directory, names)
    mine = {name: [(e.cpu, e.time, e.name) for e in events[name]] for name in names}
    for guest in guests:
        wrong, strict, least = judge_order(directory, guest, events["host"], events[guest], count)
        print(f"{guest}: {count} pairs, {wrong} out of order beyond the bound, {strict} at all, least slack {least} ns")
        assert wrong == 0, f"{guest}: causality"
        # A clock that is wrong by 0.1 s shows: nobody waits so long for an answer.
        assert all(judge_order(directory, guest, events["host"], events[guest], count, shift)[0] > count // 2
                   for shift in (-10**8, 10**8)), f"{guest}: a wrong clock would not be seen"
        report = theirs(directory, guest)
        for name in ("host", guest):
            other = [(e.cpu, e.time, e.name) for e in report[name]]
            apart = same_events(f"trace-cmd, {name}", other, mine[name])
            print(f"trace-cmd report -i host -i {guest}: {name}: {len(other)} events, times {apart} ns apart")
            assert apart <= (SHIFT_NS if name != "host" else 0), f"trace-cmd, {name}: {apart} ns apart"
    kernelshark(directory, names, mine)


main()
