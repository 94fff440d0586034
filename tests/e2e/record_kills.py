#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills of recorder and agent at random moments: afterwards the kernel is as it was, and what was recorded opens.

usage: record_kills.py [KILLS [SEED]]     default: 6 kills and a seed of the time, which is printed

A round records this machine and an agent of the same kernel, kills recorder or agent after up to 1.2 s, by SIGKILL, SIGTERM
or SIGINT, completes what the recorder left by "tandem record --finish", and looks at every file.
"""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "sync"))
import tandem_wire as t

SECRET = b"the right one"
TRACING = "/sys/kernel/tracing"
INSTANCES = f"{TRACING}/instances"
MOST_S = 1.2


def settings():
    """What a user of the machine's tracer would notice."""
    read = lambda name: open(f"{TRACING}/{name}").read()
    return {name: read(name) for name in ("tracing_on", "trace_clock", "set_event", "buffer_size_kb", "events/enable",
                                          "events/sched/enable", "events/raw_syscalls/enable")}


def ours():
    return [name for name in os.listdir(INSTANCES) if name.startswith("tandem-")]


def of(pid):
    return [name for name in ours() if name.startswith(f"tandem-{pid}-")]


def opens(path):
    """Number of events that trace-cmd and we read of a file; they have to agree."""
    theirs = subprocess.run(["trace-cmd", "report", "-t", "-i", path], capture_output=True, text=True, errors="replace",
                            timeout=100)
    assert theirs.returncode == 0, f"trace-cmd report {path}: {theirs.stderr}"
    count = sum(bool(re.match(r".*\[\d+\] +\d+\.\d+: ", line)) for line in theirs.stdout.splitlines())
    mine = subprocess.run([t.TANDEM, "view", "--quiet", path], capture_output=True, text=True, errors="replace", timeout=100)
    assert mine.returncode == 0 or count == 0, f"tandem view {path}: {mine.returncode} {mine.stderr}"
    # A loss has a line of its own.
    seen = sum(line.startswith("[") and "-- the tracer lost " not in line for line in mine.stdout.splitlines())
    assert seen == count, f"{path}: trace-cmd reads {count} events, we {seen}"
    return count


def wait_gone(pid, limit=20):
    until = time.monotonic() + limit
    while of(pid):
        assert time.monotonic() < until, f"instances of {pid} are left: {of(pid)}"
        time.sleep(0.02)


class Rounds:
    def __init__(self, directory, seed):
        self.directory, self.random = directory, random.Random(seed)
        self.secret = t.secret_file(directory, SECRET)
        self.agent = None
        self.counts = {}
        self.files = self.events = self.early = 0

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def start_agent(self):
        self.agent = t.Agent("--allow", "*:*", secret=SECRET)

    def start_recorder(self, out):
        return subprocess.Popen([t.TANDEM, "record", "-o", out, "--no-kallsyms", "-b", "256", "-e", "sched", "-e",
                                 "raw_syscalls:sys_enter", "-f", "id == 1", "--secret-file", self.secret, "--guest", f"web={self.agent.tcp()}",
                                 "--time", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def look(self, out):
        """All files that are there, after --finish of what is not complete."""
        left = [name for name in os.listdir(out) if name.endswith(".recording")] if os.path.isdir(out) else []
        if left:
            done = subprocess.run([t.TANDEM, "record", "--finish", out], capture_output=True, text=True, timeout=100)
            still = [name for name in os.listdir(out) if name.endswith(".recording")]
            # Killed before the kernel's texts were there: then nothing was recorded either.
            for name in still:
                pages = [p for p in os.listdir(f"{out}/{name}") if p.startswith("cpu")]
                assert not any(os.path.getsize(f"{out}/{name}/{p}") for p in pages), \
                    f"{name} has pages and cannot be finished: {done.returncode} {done.stderr}"
                self.early += 1
        for name in os.listdir(out) if os.path.isdir(out) else []:
            if name.endswith(".dat"):
                self.files += 1
                self.events += opens(f"{out}/{name}")
            elif name.endswith(".corrections"):
                t.Corrections(f"{out}/{name}").check_identity()

    def run(self, number):
        out = os.path.join(self.directory, str(number))
        if not self.agent or not self.agent.is_alive():
            self.start_agent()
        recorder = self.start_recorder(out)
        victim = self.random.choice(["recorder", "recorder", "agent"])
        how = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        time.sleep(self.random.random() * MOST_S)
        self.count(f"{victim} by {how.name}")
        agent_pid = self.agent.process.pid
        if victim == "recorder":
            recorder.send_signal(how)
        else:
            self.agent.process.send_signal(how)
            self.agent.process.wait(150)
            time.sleep(0.2)
            if recorder.poll() is None:
                recorder.send_signal(signal.SIGINT)
        _, errors = recorder.communicate(timeout=150)
        status = recorder.returncode
        if victim == "recorder" and how == signal.SIGKILL:
            # The agent notices by itself and clears up.
            assert status == -how, status
            wait_gone(agent_pid)
        elif victim == "recorder":
            # Killed before it could take signals, or ended in good order, or before there was anything.
            assert status in (0, 1, 3, -how), f"{how.name}: status {status}: {errors}"
            assert status == -how or not of(recorder.pid), f"{how.name}: an instance is left"
            wait_gone(agent_pid)
        else:
            assert status in (0, 1, 3, -signal.SIGINT), f"status {status}: {errors}"
            assert status < 0 or not of(recorder.pid), "the recorder left an instance"
            if how != signal.SIGKILL:
                assert not of(agent_pid), f"the agent left instances after {how.name}"
        # Whatever is left is removed by the next start of either.
        if self.random.random() < 0.5:
            subprocess.run([t.TANDEM, "record", "-o", out + ".next", "--quiet", "--no-kallsyms", "-e", "sched", "--", "true"],
                           capture_output=True, timeout=60)
        else:
            if self.agent.is_alive():
                self.agent.stop()
            self.start_agent()
        left = of(recorder.pid) + (of(agent_pid) if agent_pid != self.agent.process.pid else [])
        assert not left, f"left after the next start: {left}"
        self.look(out)
        subprocess.run(["rm", "-rf", out, out + ".next"], check=True)


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    if os.getuid() != 0 or not os.path.isdir(INSTANCES):
        print("SKIP: needs root and tracefs")
        sys.exit(77)
    print(f"{kills} kills, seed {seed}", flush=True)
    before = settings()
    with tempfile.TemporaryDirectory(prefix="tandem-kills-") as directory:
        rounds = Rounds(directory, seed)
        for number in range(kills):
            try:
                rounds.run(number)
            except BaseException:
                print(f"at kill {number}: {rounds.counts}", file=sys.stderr)
                if "KEEP" in os.environ:
                    subprocess.run(["cp", "-r", directory, os.environ["KEEP"]], check=False)
                raise
        assert rounds.agent.stop() == 0
    assert settings() == before, f"settings differ: {before} and {settings()}"
    print(", ".join(f"{count} {what}" for what, count in sorted(rounds.counts.items())))
    print(f"{rounds.files} files opened with {rounds.events} events in all; {rounds.early} spools of kills before anything "
          "was recorded; nothing is left in tracefs")
    assert rounds.events > 0 or kills < 5, "nothing was ever recorded"


main()
