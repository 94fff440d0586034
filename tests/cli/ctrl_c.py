#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A command is told once that it shall end: by the terminal, whose Ctrl-C it gets itself, else by the recorder."""
import os
import pty
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "convert"))
from convert_case import TANDEM, main

# Counts its SIGINTs: until the first, and for a second behind it. With "own" it has a process group of its own.
COMMAND = """
import os, signal, sys, time
times = []
signal.signal(signal.SIGINT, lambda *_: times.append(1))
if sys.argv[2] == "own":
    os.setpgid(0, 0)
open(sys.argv[1] + ".ready", "w").close()
deadline = time.monotonic() + 60
while not times and time.monotonic() < deadline:
    time.sleep(0.01)
time.sleep(1)
open(sys.argv[1], "w").write(str(len(times)))
"""


def line(directory, counted, group):
    # No agent answers there: sync says so, and runs the command.
    return [TANDEM, "sync", "-q", "-o", os.path.join(directory, "out"), "--force", "--guest",
            "none=unix:" + os.path.join(directory, "none"), "--", sys.executable, "-c", COMMAND, counted, group]


def wait_for(path):
    deadline = time.monotonic() + 60
    while not os.path.exists(path):
        assert time.monotonic() < deadline, "%s does not come" % path
        time.sleep(0.01)


def in_a_terminal(directory, counted, group):
    pid, terminal = pty.fork()
    if pid == 0:
        arguments = line(directory, counted, group)
        os.execv(arguments[0], arguments)
    wait_for(counted + ".ready")
    os.write(terminal, b"\x03")
    deadline = time.monotonic() + 60
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        assert time.monotonic() < deadline, "it does not end"
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                os.read(terminal, 4096)
            except OSError:
                pass
    os.close(terminal)


def by_a_signal(directory, counted, group):
    with subprocess.Popen(line(directory, counted, group), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, start_new_session=True) as recorder:
        wait_for(counted + ".ready")
        recorder.send_signal(signal.SIGINT)
        recorder.wait(60)


def each_way_tells_it_once(directory):
    for end in (in_a_terminal, by_a_signal):
        for group in ("same", "own"):
            counted = os.path.join(directory, end.__name__ + "_" + group)
            end(directory, counted, group)
            with open(counted, encoding="ascii") as file:
                told = file.read()
            assert told == "1", "%s, %s group: told %s times" % (end.__name__, group, told)


main([each_way_tells_it_once])
