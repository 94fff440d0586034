#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem sync among agents that stall, lie, flood and die: the good guest's files are complete, and all ends in time."""
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import tandem_wire as t


class BadAgent:
    """Serves each connection by a function; what it raises is the peer's going away."""

    def __init__(self, behave):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.behave = behave
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            self.behave(t.Peer(sock, client=False), sock)
        except (OSError, AssertionError, TypeError):
            pass
        sock.close()


def stall(_peer, sock):
    while sock.recv(4096):
        pass


def until(state, then):
    """Behaves well up to a state, then does something else."""
    def behave(peer, sock):
        if state == "accepted":
            return then(peer, sock)
        peer.greet()
        if state == "greeted":
            return then(peer, sock)
        peer.read_frame()  # OPEN
        if state == "asked":
            return then(peer, sock)
        session = struct.unpack_from("<I", behave.open_body(peer), 4)[0]
        peer.send(t.OPENED, struct.pack("<II", session, 0) + b"boot x\nclock mono\nraw mono_raw\n")
        if state == "opened":
            return then(peer, sock)
        peer.read_frame()  # BURST
        peer.send(t.READY, struct.pack("<II", 344, 0))
        if state == "ready":
            return then(peer, sock)
        for _ in range(20):
            answer(peer, peer.read_frame())
        return then(peer, sock)

    behave.open_body = lambda peer: behave.last[1]

    original = behave

    def wrapped(peer, sock):
        read = peer.read_frame

        def remember():
            got = read()
            if got and got[0] == t.OPEN:
                original.last = got
            return got
        peer.read_frame = remember
        original(peer, sock)
    return wrapped


def answer(peer, got, **change):
    kind, body, _ = got
    if kind != t.EXCHANGE:
        return
    _, _, _, _, session, _, sequence, h1 = struct.unpack_from("<4sBBHIIQQ", body)
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    fields = {"session": session, "sequence": sequence, "h1": h1, "g2": now, "g3": now} | change
    peer.send(t.EXCHANGE, t.message(2, **fields))


def close(_peer, _sock):
    pass


def reset(_peer, sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def garbage(_peer, sock):
    sock.sendall(os.urandom(100000))
    time.sleep(1)


def flood(peer, sock):
    sock.settimeout(10)
    line = peer.seal(t.NOTES, b"l 1 2 3\n" * 4000)
    while True:
        sock.sendall(line)


def cut(peer, sock):
    sock.sendall(t.frame(t.EXCHANGE, bytes(96))[:50])


def lie(peer, sock):
    """Answers every probe, each wrongly in another way."""
    for number in range(1000):
        got = peer.read_frame()
        if got[0] != t.EXCHANGE:
            if got[0] == t.QUERY:
                peer.send(t.NOTES, b"l x y z\nl 1 2\ne 99999999999999999999 1 x\ncpu 1\n\n\n" + b"z" * 5000)
            elif got[0] == t.BURST:
                peer.send(t.READY, struct.pack("<II", 344, 0))
            continue
        answer(peer, got, **[{"session": 1}, {"sequence": 10 ** 9}, {"h1": 5}, {"g2": 1 << 62}, {"sequence": 0}][number % 5])


def replay(peer, sock):
    """Sends the first good answer again and again."""
    got = peer.read_frame()
    first = None
    while True:
        if got[0] == t.EXCHANGE and not first:
            first = got
        answer(peer, first)
        got = peer.read_frame()


def main():
    states = ("accepted", "greeted", "asked", "opened", "ready", "running")
    bad = {}
    for state in states:
        for then in (stall, close, reset, garbage, flood, cut):
            bad[f"{then.__name__}-{state}"] = BadAgent(until(state, then))
    bad["lie"] = BadAgent(until("ready", lie))
    bad["replay"] = BadAgent(until("ready", replay))
    good = t.Agent()
    with tempfile.TemporaryDirectory(prefix="tandem-bad-") as out:
        guests = ["--guest", f"good={good.tcp()}"]
        for name, agent in bad.items():
            guests += ["--guest", f"{name}=tcp:127.0.0.1:{agent.port}"]
        status, told, errors, seconds = t.sync(os.path.join(out, "bad"), *guests, "--", "sleep", "2")
        t.say(f"{len(bad)} bad agents and a good one: {seconds:.1f} s, status {status}")
        assert status == 3, (status, errors)
        assert seconds < 60, f"{seconds:.0f} s"
        t.Corrections(os.path.join(out, "bad", "good.corrections")).check_identity()
        for name in bad:
            lines = [line for line in errors.splitlines() if f" {name}: " in line or f"guest {name}:" in line]
            assert lines, f"{name}: not a word\n{errors}"
            assert len(lines) <= 8, f"{name}: {len(lines)} lines\n" + "\n".join(lines)
        left = sorted(os.listdir(os.path.join(out, "bad")))
        assert not [n for n in left if n.endswith(".part")] or \
            not [n for n in left if n == "good.exchanges.part"], left

        # Alone: nothing usable, one reason, soon.
        for name in ("stall-accepted", "close-greeted", "garbage-accepted"):
            status, told, errors, seconds = t.sync(os.path.join(out, name), "--guest",
                                                   f"x=tcp:127.0.0.1:{bad[name].port}", "--", "sleep", "1")
            assert status == 1 and seconds < 15, (name, status, seconds, errors)
            assert errors.count("x: never reached: ") == 1 and errors.count("\n") == 2, (name, errors)
            assert not os.listdir(os.path.join(out, name)), os.listdir(os.path.join(out, name))

        # A wrong secret, or none where one is wanted: said at once, no second try.
        guarded = t.Agent(secret=b"open sesame")
        wrong = t.secret_file(out, b"open barley")
        for arguments, reason in ((["--secret-file", wrong], "wrong secret"), ([], "secret")):
            status, told, errors, seconds = t.sync(os.path.join(out, "s"), "--guest", f"x={guarded.tcp()}",
                                                   *arguments, "--", "sleep", "5")
            assert status == 1 and reason in errors and seconds < 5, (status, errors, seconds)
        guarded.stop()

        # An agent that is stopped and goes on: a hung link, then the session continues; one that is killed for good.
        process = subprocess.Popen([t.TANDEM, "sync", "-o", os.path.join(out, "hung"), "--guest",
                                    f"x={good.tcp()}", "--", "sleep", "6"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        good.process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        good.process.send_signal(signal.SIGCONT)
        told, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "trying again" in errors and "answers again" in errors, errors
        t.Corrections(os.path.join(out, "hung", "x.corrections")).check_identity()

        process = subprocess.Popen([t.TANDEM, "sync", "-o", os.path.join(out, "dead"), "--guest",
                                    f"x={good.tcp()}", "--", "sleep", "4"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        good.process.kill()
        told, errors = process.communicate(timeout=60)
        assert process.returncode == 3 and "the last burst failed" in errors, (process.returncode, errors)
        t.Corrections(os.path.join(out, "dead", "x.corrections")).check_identity()


main()
