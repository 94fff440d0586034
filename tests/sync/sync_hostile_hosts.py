#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The agent among strangers: whatever one of them does, an authorised host is served, and the log stays short."""
import os
import socket
import struct
import sys
import tempfile
import time

import tandem_wire as t

SECRET = b"the right one"


def refused(agent, what, data, secret=None, greet=False, opened=False):
    """Sends bytes in some state; the agent must close."""
    peer = agent.connect(secret=secret)
    if greet:
        assert peer.greet()
    if opened:
        assert peer.open()[0] == t.OPENED
    if data is not None:
        try:
            peer.sock.sendall(data(peer) if callable(data) else data)
        except ConnectionError:
            pass
    assert peer.ends(), f"{what}: the agent keeps the connection"
    peer.sock.close()
    assert agent.is_alive(), what


def serves(agent, secret=None, times=1):
    """A whole session by an authorised host."""
    for _ in range(times):
        peer = agent.connect(secret=secret)
        assert peer.greet(), "an authorised host is refused"
        got = peer.open()
        assert got and got[0] == t.OPENED, got
        peer.send(t.BURST, struct.pack("<II", 8, 0))
        assert peer.read_frame()[0] == t.READY
        for sequence in range(8):
            peer.send(t.EXCHANGE, t.message(1, 7, sequence, h1=1 + sequence))
            kind, body, _ = peer.read_frame()
            assert kind == t.EXCHANGE and len(body) == 96
            assert struct.unpack_from("<Q", body, 16)[0] == sequence
            h1, g2, g3 = struct.unpack_from("<QQQ", body, 24)
            assert h1 == 1 + sequence and 0 < g2 <= g3
        peer.send(t.QUERY)
        kind, body, _ = peer.read_frame()
        assert kind == t.NOTES and b"l " in body
        peer.send(t.CLOSE)
        peer.sock.close()


def attacks(agent, secret):
    start = {"secret": secret, "greet": True}
    running = {"secret": secret, "greet": True, "opened": True}
    good_probe = lambda peer: peer.seal(t.EXCHANGE, t.message(1, 7, 1, h1=1))
    refused(agent, "garbage", os.urandom(4000))
    refused(agent, "HTTP", b"GET / HTTP/1.1\r\n\r\n")
    refused(agent, "another major version", t.frame(t.HELLO, bytes(64), major=2))
    refused(agent, "a huge length", t.frame(t.HELLO, b"", length=0xFFFFFFFF))
    refused(agent, "a greeting of 64 KiB", t.frame(t.HELLO, bytes(65536)))
    refused(agent, "a short HELLO", t.frame(t.HELLO, bytes(63)))
    refused(agent, "OPEN before HELLO", t.frame(t.OPEN, t.open_body()))
    refused(agent, "an ERROR first", t.frame(t.ERROR, bytes(4) + b"boo"))
    if secret:
        refused(agent, "a wrong secret", lambda peer: (peer.greet(), b"")[1], secret=b"a wrong one")
        refused(agent, "OPEN without proof", lambda peer: (peer.greet(), t.frame(t.OPEN, t.open_body()))[1])
        refused(agent, "an untagged frame", t.frame(t.OPEN, t.open_body()), **start)
        refused(agent, "a replayed frame", lambda peer: 2 * peer.seal(t.BURST, struct.pack("<II", 8, 0)), **running)
        refused(agent, "a changed frame",
                lambda peer: peer.seal(t.BURST, struct.pack("<II", 8, 0))[:-1] + b"\0", **running)
    else:
        refused(agent, "a tagged frame", t.frame(t.OPEN, t.open_body(), flags=t.TAGGED), **start)
    refused(agent, "a second HELLO", lambda peer: peer.seal(t.HELLO, bytes(64)), **start)
    refused(agent, "an unknown type", lambda peer: peer.seal(999), **start)
    refused(agent, "an unknown purpose", lambda peer: peer.seal(t.OPEN, t.open_body(purpose=9)), **start)
    refused(agent, "no clock", lambda peer: peer.seal(t.OPEN, t.open_body(lines=b"")), **start)
    refused(agent, "an unknown clock", lambda peer: peer.seal(t.OPEN, t.open_body(lines=b"clock sundial\n")), **start)
    refused(agent, "no clock at all: counter", lambda peer: peer.seal(t.OPEN, t.open_body(lines=b"clock counter\n")),
            **start)
    refused(agent, "an unknown type in a session", lambda peer: peer.seal(998), **running)
    refused(agent, "a cut BURST", lambda peer: peer.seal(t.BURST, bytes(7)), **running)

    def burst_then(make):
        def run(peer):
            peer.send(t.BURST, struct.pack("<II", 4, 0))
            assert peer.read_frame()[0] == t.READY
            return make(peer)
        return run

    refused(agent, "a cut message", burst_then(lambda peer: peer.seal(t.EXCHANGE, bytes(95))), **running)
    refused(agent, "a message of zeros", burst_then(lambda peer: peer.seal(t.EXCHANGE, bytes(96))), **running)
    refused(agent, "another session's message",
            burst_then(lambda peer: peer.seal(t.EXCHANGE, t.message(1, 8, 1, h1=1))), **running)
    refused(agent, "a reply", burst_then(lambda peer: peer.seal(t.EXCHANGE, t.message(2, 7, 1, h1=1))), **running)
    refused(agent, "a message twice", burst_then(lambda peer: good_probe(peer) + good_probe(peer)), **running)
    refused(agent, "more messages than announced", burst_then(lambda peer: b"".join(
        peer.seal(t.EXCHANGE, t.message(1, 7, n, h1=1)) for n in range(6))), **running)
    refused(agent, "a reading past 2^62",
            burst_then(lambda peer: peer.seal(t.EXCHANGE, t.message(1, 7, 1, h1=1 << 62))), **running)


def flood(agent, secret):
    """Asks without reading the answers, until the agent gives up."""
    peer = agent.connect(secret=secret)
    assert peer.greet() and peer.open()[0] == t.OPENED
    peer.sock.setblocking(True)
    peer.sock.settimeout(30)
    try:
        for _ in range(200):
            peer.sock.sendall(b"".join(peer.seal(t.BURST, struct.pack("<II", 4, 0)) + peer.seal(t.QUERY)
                                       for _ in range(2000)))
    except (ConnectionError, socket.timeout):
        pass
    serves(agent, secret)
    peer.sock.close()


def killed_in_every_state(agent, secret):
    """The host's end disappears, cut off or reset, at each step."""
    steps = [
        lambda peer: peer.sock.sendall(t.frame(t.HELLO, peer.own)[:20]),
        lambda peer: peer.greet(),
        lambda peer: peer.sock.sendall(peer.seal(t.OPEN, t.open_body())[:-3]),
        lambda peer: peer.open(),
        lambda peer: peer.send(t.BURST, struct.pack("<II", 100, 0)),
        lambda peer: (peer.read_frame(), peer.send(t.EXCHANGE, t.message(1, 7, 1, h1=1))),
        lambda peer: peer.send(t.QUERY),
    ]
    for reset in (False, True):
        for last in range(len(steps)):
            peer = agent.connect(secret=secret)
            for number, step in enumerate(steps[:last + 1]):
                # Cut-off steps are only ever the last.
                if number in (0, 2) and number != last:
                    continue
                step(peer)
            if reset:
                peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.sock.close()
            serves(agent, secret)


def idle_crowd(agent, secret):
    """1000 connections that say nothing, and 200 more that say HELLO only."""
    crowd = []
    for number in range(1200):
        try:
            sock = socket.create_connection(("127.0.0.1", agent.port), timeout=20)
            if number >= 1000:
                sock.sendall(t.frame(t.HELLO, bytes(64)))
            crowd.append(sock)
        except OSError as error:
            sys.exit(f"connection {number}: {error}")
    began = time.monotonic()
    serves(agent, secret, times=5)
    t.say(f"5 sessions beside {len(crowd)} idle connections: {time.monotonic() - began:.2f} s")
    # Idle sessions too: only so many of peers that nothing is known of.
    if not secret:
        opened = 0
        for _ in range(100):
            peer = agent.connect()
            if peer.greet() and peer.open()[0] == t.OPENED:
                opened += 1
            crowd.append(peer.sock)
        assert opened <= 64, opened
    for sock in crowd:
        sock.close()


def idle_agent_sleeps(agent):
    """Nobody is connected: no thread of the agent runs."""
    def switches():
        total = 0
        for task in os.listdir(f"/proc/{agent.process.pid}/task"):
            with open(f"/proc/{agent.process.pid}/task/{task}/status") as f:
                total += sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
        return total

    time.sleep(0.5)
    before = switches()
    time.sleep(3)
    assert switches() == before, f"{switches() - before} wakeups in 3 s"


def higher_minor_version_is_taken(agent):
    peer = agent.connect()
    peer.sock.sendall(t.frame(t.HELLO, peer.own + b"more of a later version", minor=77))
    assert peer.read_frame()[0] == t.HELLO
    peer.sock.sendall(t.frame(t.OPEN, t.open_body(lines=b"clock mono\nfuture yes\n"), minor=77))
    assert peer.read_frame()[0] == t.OPENED
    peer.sock.close()


def trust():
    """Other addresses only with a secret; the file only for its owner."""
    import subprocess
    run = lambda *a: subprocess.run([t.AGENT, *a], capture_output=True, text=True, timeout=20)
    done = run("--listen", "tcp:0.0.0.0:0")
    assert done.returncode == 2 and "--secret-file is needed" in done.stderr, done
    assert run("--listen", "tcp:[::]:0").returncode == 2
    assert run("--listen", "tcp:localhost:0").returncode == 2
    with tempfile.TemporaryDirectory() as directory:
        path = t.secret_file(directory, SECRET)
        os.chmod(path, 0o644)
        done = run("--listen", "tcp:127.0.0.1:0", "--secret-file", path)
        assert done.returncode == 1 and "lets others at it" in done.stderr, done


def privileges_are_gone(agent):
    """In every thread, a session's among them: no capability, none to be gained, and of real time the lowest priority only."""
    peer = agent.connect()
    assert peer.greet() and peer.open()[0] == t.OPENED
    tasks = os.listdir(f"/proc/{agent.process.pid}/task")
    assert len(tasks) == 2, tasks
    for task in tasks:
        with open(f"/proc/{agent.process.pid}/task/{task}/status") as f:
            status = dict(line.split(":", 1) for line in f)
        for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert os.getuid() != 0 or int(status[kind], 16) == 0, (kind, status[kind])
        assert int(status["NoNewPrivs"]) == 1
    with open(f"/proc/{agent.process.pid}/limits") as f:
        priority = next(line.split()[3:5] for line in f if line.startswith("Max realtime priority"))
    assert os.getuid() != 0 or priority in (["1", "1"], ["0", "0"]), priority
    peer.sock.close()


def main():
    trust()
    agent = t.Agent()
    privileges_are_gone(agent)
    serves(agent)
    higher_minor_version_is_taken(agent)
    attacks(agent, None)
    killed_in_every_state(agent, None)
    flood(agent, None)
    idle_crowd(agent, None)
    time.sleep(1)
    idle_agent_sleeps(agent)
    lines = agent.log().splitlines()
    assert len(lines) < 200, f"{len(lines)} lines of log"
    assert agent.stop() == 0

    agent = t.Agent(secret=SECRET)
    serves(agent, SECRET)
    attacks(agent, SECRET)
    killed_in_every_state(agent, SECRET)
    idle_crowd(agent, SECRET)
    assert "wrong secret" in agent.log()
    # Root on a UNIX socket needs no proof.
    peer = t.Peer(socket.socket(socket.AF_UNIX))
    peer.sock.connect(agent.path)
    assert peer.greet()
    got = peer.open()
    assert (got[0] == t.OPENED) == (os.getuid() == 0), got
    peer.sock.close()
    assert agent.stop() == 0


main()
