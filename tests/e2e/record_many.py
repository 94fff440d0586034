#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""64 agents and one recorder on loopback: all are recorded and synchronised, and the recorder's memory does not grow with what
is recorded.

The agents are processes of their own, each with its own trace instance of this kernel, so that the truth is known: all clocks
are one, and each program's calls are in every file. usage: record_many.py [GUESTS]
"""
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "sync"))
import tandem_wire as t

SECRET = b"the right one"
CALL = 156  # _sysctl: nobody else calls it
ROUNDS, CALLS = 20, 100
DUMP = os.path.join(t.BUILD, "tests", "support", "record-dump")
# Of the whole recorder, with 2 CPUs a guest; 64 guests take some 60 MiB.
MOST_MIB = 256


def peak_mib(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0


def count(path):
    out = subprocess.run([DUMP, "--counts", path], capture_output=True, text=True, timeout=60)
    return sum(int(line.split()[3]) for line in out.stdout.splitlines() if line.startswith("count "))


def wait_for(what, condition, limit=120):
    until = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {limit} s"
        time.sleep(0.1)


def main():
    guests = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    if os.getuid() != 0 or not os.path.isdir("/sys/kernel/tracing/instances"):
        print("SKIP: needs root and tracefs")
        sys.exit(77)
    libc = ctypes.CDLL(None)
    with tempfile.TemporaryDirectory(prefix="tandem-many-") as directory:
        secret = t.secret_file(directory, SECRET)
        agents = [t.Agent("--allow", "raw_syscalls:*", "--max-buffer-kib", "16", secret=SECRET) for _ in range(guests)]
        out = os.path.join(directory, "out")
        command = [t.TANDEM, "record", "-o", out, "--no-kallsyms", "-b", "64", "-e", "raw_syscalls:sys_enter", "-f",
                   f"id == {CALL}", "--secret-file", secret, "--time", "300"]
        for number, agent in enumerate(agents):
            command += ["--guest", f"g{number}={agent.tcp()}"]
        began = time.monotonic()
        # The usual limit of descriptors: the recorder has to know that it needs more.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(out + ".err", "w"), text=True,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard)))

        def all_on():
            assert recorder.poll() is None, open(out + ".err").read()
            names = [n for n in os.listdir("/sys/kernel/tracing/instances")
                     if any(n.startswith(f"tandem-{a.process.pid}-") for a in agents)]
            return len(names) == guests and all(
                open(f"/sys/kernel/tracing/instances/{n}/tracing_on").read().strip() == "1" for n in names)

        wait_for("all record", all_on)
        print(f"{guests} guests record after {time.monotonic() - began:.1f} s", flush=True)
        time.sleep(1)
        marks = []
        for _ in range(ROUNDS):
            for _ in range(CALLS):
                libc.syscall(CALL)
            marks.append(peak_mib(recorder.pid))
            time.sleep(0.25)
        recorder.send_signal(2)
        printed, _ = recorder.communicate(timeout=200)
        errors = open(out + ".err").read()
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        threads_mib = marks[-1]
        print(f"peak of the recorder: {threads_mib:.0f} MiB while it records, {marks[-1] - marks[0]:.1f} MiB more at the end of "
              f"{ROUNDS} rounds; {peak:.0f} MiB with the writing of the files")
        # Bursts may be missed on a busy machine: that costs accuracy, and is said.
        odd = [line for line in errors.splitlines() if "no time exchanges at the end" not in line and "no time exchanges yet" not in line]
        assert recorder.returncode in (0, 3) and (recorder.returncode == 0 or not odd), f"{recorder.returncode}: {errors}"
        assert max(marks) < MOST_MIB and peak < MOST_MIB, f"{peak} MiB"
        assert marks[-1] - marks[0] < 16, f"memory grows: {marks}"
        for number in range(guests):
            seen = count(f"{out}/g{number}.dat")
            assert seen == ROUNDS * CALLS, f"g{number}: {ROUNDS * CALLS} calls were made, {seen} are there"
            t.Corrections(f"{out}/g{number}.corrections").check_identity()
        assert count(f"{out}/host.dat") == ROUNDS * CALLS
        bounds = sorted(max(max(k[2:]) for k in t.Corrections(f"{out}/g{n}.corrections").knots()) for n in range(guests))
        print(f"worst bounds of the clocks: least {bounds[0]} ns, median {bounds[guests // 2]} ns, most {bounds[-1]} ns; "
              "the truth is within all of them")
        for agent in agents:
            agent.process.terminate()
        for agent in agents:
            assert agent.process.wait(60) == 0


main()
