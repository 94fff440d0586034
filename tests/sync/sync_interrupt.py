#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ctrl-C while a guest is connected to, and last bursts of a guest that is slow to answer.

The guests here take connections and say nothing (a UNIX path), or have a full queue of connections (TCP): both are waited
for seconds, unless nobody wants them any more.
"""
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

import tandem_wire as t

IMMEDIATE = 3.5  # seconds; the waits that are cut short are of 5 and 10


class Silent:
    """Addresses that connect, or nearly so, and then nothing."""

    def __init__(self, directory):
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(os.path.join(directory, "silent"))
        self.unix.listen(16)
        self.tcp = socket.socket()
        self.tcp.bind(("127.0.0.1", 0))
        self.tcp.listen(0)
        self.queued = []
        for _ in range(4):
            queued = socket.socket()
            queued.setblocking(False)
            queued.connect_ex(self.tcp.getsockname())
            self.queued.append(queued)
        self.addresses = [f"unix:{directory}/silent", f"tcp:127.0.0.1:{self.tcp.getsockname()[1]}"]


def interrupted(command, number=signal.SIGINT):
    """(seconds from the signal to the end, status, what it said)"""
    process = subprocess.Popen([t.TANDEM, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, text=True)
    time.sleep(0.5)
    assert process.poll() is None, f"{command}: ended at once: {process.communicate()[0]}"
    begin = time.monotonic()
    process.send_signal(number)
    said = process.communicate(timeout=60)[0]
    return time.monotonic() - begin, process.returncode, said


def first_connect(work):
    silent = Silent(work)
    ran = os.path.join(work, "ran")
    for address in silent.addresses:
        guest = f"g={address}"
        url = "tandem://" + address.removeprefix("tcp:") + "/g"
        out = os.path.join(work, "out")
        for command in (["sync", "-o", out, "--guest", guest],
                        ["sync", "-o", out, "--guest", guest, "--", "touch", ran],
                        ["sync", "-o", out, "--guest", guest, "--need-guests"],
                        ["record", "-o", out, "-e", "sched:sched_switch", "--guest", guest, "--", "touch", ran],
                        ["doctor", "--guest", guest],
                        ["view", url]):
            if command[0] == "record" and not os.access("/sys/kernel/tracing/instances", os.W_OK):
                continue
            for number in (signal.SIGINT, signal.SIGTERM) if command[-1] == guest else (signal.SIGINT,):
                took, status, said = interrupted(command, number)
                assert took < IMMEDIATE, f"{command}: {took:.1f} s from the signal to the end\n{said}"
                assert status != 0, f"{command}: status 0\n{said}"
                assert "trying again" not in said, f"{command}: {said}"
                assert not os.path.exists(ran), f"{command}: the command was run"
                left = os.listdir(out) if os.path.isdir(out) else []
                assert not left, f"{command}: left {left}"
    t.say("interrupted at the first connect: sync, record, doctor and view end at once")


class Relay:
    """Before the agent. Once told so it breaks its connection and leaves the next ones without a byte."""

    def __init__(self, path, agent_path, silent):
        self.agent_path, self.silent = agent_path, silent
        self.open, self.is_broken = [], False
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            if self.is_broken and self.silent > 0:
                self.silent -= 1
                self.open.append(near)
                continue
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.agent_path)
            self.open += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.move, args=(a, b), daemon=True).start()

    @staticmethod
    def move(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def break_off(self):
        self.is_broken = True
        for connection in self.open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def last_burst(work, agent):
    """The connection breaks right before the end; the next ones stay silent for longer than a connect is waited for."""
    for silent, want_end in ((1, True), (1000, False)):
        path = os.path.join(work, f"relay{silent}")
        relay = Relay(path, agent.path, silent)
        out = os.path.join(work, f"last{silent}")
        process = subprocess.Popen([t.TANDEM, "sync", "-o", out, "--guest", f"g=unix:{path}"], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
        until = time.monotonic() + 30
        while not os.path.exists(os.path.join(out, "g.corrections")):
            assert time.monotonic() < until, "no first burst"
            time.sleep(0.05)
        relay.break_off()
        process.send_signal(signal.SIGINT)
        if not want_end:
            # Nobody answers any more: a further Ctrl-C ends the tries.
            time.sleep(1)
            assert process.poll() is None, "the last burst was not tried again"
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[0]
        if not want_end:
            took = time.monotonic() - begin
            assert took < IMMEDIATE, f"{took:.1f} s from the second signal to the end\n{said}"
        assert ("last burst" in said) != want_end, said
        assert process.returncode == (0 if want_end else 3), f"status {process.returncode}\n{said}"
        t.Corrections(os.path.join(out, "g.corrections")).check_identity()
    t.say("a guest that is slow at the end is asked again; a second Ctrl-C gives up")


def main():
    agent = t.Agent()
    with tempfile.TemporaryDirectory(prefix="tandem-interrupt-") as work:
        first_connect(work)
        last_burst(work, agent)
    agent.stop()


main()
