#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Traces and strangers: whoever may not, breaks the rules, dies or repeats what others said is refused, costs the log a few
lines, leaves nothing behind, and a recording that runs beside it does not notice. First the agent, then record --serve."""
import os
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time

import tandem_wire as t

SECRET = b"the right one"
INSTANCES = "/sys/kernel/tracing/instances"
STREAM = 2
EVENT = "raw_syscalls:sys_enter"
# Writes that nobody else makes: found again in the files.
SIZE, WRITES = 7777, 400


def instances(pid):
    return [name for name in os.listdir(INSTANCES) if name.startswith(f"tandem-{pid}-")]


def wait_for(what, condition, limit=30):
    until = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {limit} s"
        time.sleep(0.05)


def ask(peer, *events, **keys):
    """OPEN for a trace. (OPENED's lines, None) or (None, reason)."""
    got = peer.open(purpose=STREAM, lines=t.stream_lines(*(events or [EVENT]), **keys))
    if got and got[0] == t.OPENED:
        return t.lines_of(got[1][8:]), None
    return None, got[1][4:].decode() if got and got[0] == t.ERROR else "closed"


def greeted(connect, secret=SECRET):
    peer = connect(secret)
    assert peer.greet(), "an authorised host is refused"
    return peer


def page_peer(connect, token, cpu, secret=SECRET):
    peer = greeted(connect, secret)
    got = peer.open(purpose=STREAM, lines=f"token {token}\ncpu {cpu}\n".encode())
    return peer, got


def traces(connect, cpus_wanted=None):
    """A whole proper session; pages are sealed, so only their amount is looked at."""
    control = greeted(connect)
    opened, reason = ask(control)
    assert opened, reason
    assert t.read_texts(control), "no texts"
    pages = [page_peer(connect, opened["token"], cpu) for cpu in range(int(opened["cpus"]))]
    assert all(got[0] == t.OPENED for _, got in pages)
    control.send(t.START)
    assert control.read_frame()[0] == t.STARTED
    control.send(t.STOP)
    for peer, _ in pages:
        while peer.sock.recv(65536):
            pass
    got = control.read_frame()
    assert got[0] == t.END and "sent-bytes" in t.lines_of(got[1]), got
    assert t.read_texts(control), "no texts at the end"
    for peer in [control] + [p for p, _ in pages]:
        peer.sock.close()


def unauthorised(connect):
    """Nothing without proof, however it is asked for; 60 times, for the log."""
    for _ in range(20):
        peer = connect(None)
        assert not peer.greet() or not ask(peer)[0], "a trace without the secret"
        assert peer.ends()
        peer = connect(b"a wrong one")
        assert not peer.greet(), "a wrong secret"
        assert peer.ends()
        peer = connect(None)
        try:
            peer.sock.sendall(t.frame(t.HELLO, peer.own) + t.frame(t.OPEN, t.open_body(STREAM, 7, t.stream_lines(EVENT))) +
                              t.frame(t.START))
        except ConnectionError:
            pass
        assert peer.ends()


class Tape:
    """A socket that remembers what was sent through it."""

    def __init__(self, sock):
        self.sock, self.sent = sock, b""

    def sendall(self, data):
        self.sent += data
        self.sock.sendall(data)

    def __getattr__(self, name):
        return getattr(self.sock, name)


def replays(connect, ask_for):
    """What an authorised host said, once more: all of it, and each beginning of it."""
    peer = connect(SECRET)
    peer.sock = Tape(peer.sock)
    assert peer.greet()
    got = ask_for(peer)
    assert got and got[0] == t.OPENED, got
    peer.send(t.START)
    said = peer.sock.sent
    peer.sock.close()
    cuts, at = [], 0
    while at < len(said):
        at += 16 + struct.unpack_from("<I", said, at + 12)[0]
        cuts.append(at)
    for cut in cuts[1:]:
        thief = connect(None)
        try:
            thief.sock.sendall(said[:cut])
        except ConnectionError:
            pass
        kinds = []
        while (got := thief.read_frame()) is not None:
            kinds.append(got[0])
        assert t.OPENED not in kinds and t.AUTH not in kinds, f"a replay of {cut} bytes was answered with {kinds}"
        thief.sock.close()


def bad_requests(connect):
    """Authorised, but what is asked for cannot be had."""
    requests = {
        "no events": t.stream_lines(),
        "no clock": f"event {EVENT}\nfilter -\n".encode(),
        "an unknown clock": t.stream_lines(EVENT, clock="sundial"),
        "an event that is not allowed": t.stream_lines("irq:irq_handler_entry"),
        "an event that is not there": t.stream_lines("sched:sched_nonsense"),
        "a filter that is none": f"event {EVENT}\nfilter id ===\nclock mono\n".encode(),
        "a path": t.stream_lines("../../../../etc/passwd"),
        "a path as a system": t.stream_lines("..:enable"),
        "a clock with a path": t.stream_lines(EVENT, clock="../x"),
        "a token that is none": b"token \n",
        "an unknown token": b"token 00112233445566778899aabbccddeeff\ncpu 0\n",
        "a long token": b"token " + b"a" * 5000 + b"\ncpu 0\n",
        "a token without CPU": b"token 00112233445566778899aabbccddeeff\n",
        "zeros": bytes(1000),
    }
    for what, lines in requests.items():
        peer = greeted(connect)
        got = peer.open(purpose=STREAM, lines=lines)
        assert got is None or got[0] == t.ERROR, f"{what}: {got}"
        assert peer.ends(), what
        peer.sock.close()


def out_of_turn(connect):
    """Frames that have no place in the session's state end it."""
    frames = [(t.STOP, b""), (t.HELLO, bytes(64)), (t.OPEN, t.open_body(STREAM, 7, t.stream_lines(EVENT))), (t.PAGE, bytes(4104)),
              (t.TEXTS, b""), (t.END, b""), (777, b"x" * 1000), (t.EXCHANGE, t.message(1, 7, 1, h1=1))]
    for started in (False, True):
        for kind, body in frames:
            if started and kind == t.STOP:
                continue
            peer = greeted(connect)
            opened, reason = ask(peer)
            assert opened, reason
            assert t.read_texts(peer)
            if started:
                peer.send(t.START)
                assert peer.read_frame()[0] == t.STARTED
            peer.send(kind, body)
            assert peer.ends(), f"frame {kind}, started {started}: the agent goes on"
            peer.sock.close()
        for raw in (os.urandom(3000), t.frame(t.START), t.frame(t.STOP, length=0xFFFFFFF0)):
            peer = greeted(connect)
            assert ask(peer)[0] and t.read_texts(peer)
            if started:
                peer.send(t.START)
                assert peer.read_frame()[0] == t.STARTED
            peer.sock.sendall(raw)
            assert peer.ends(), "garbage in a session"
            peer.sock.close()


def wrong_pages(connect):
    """Page connections that are nobody's, twice, too late, or say what is not theirs to say."""
    control = greeted(connect)
    opened, reason = ask(control)
    assert opened, reason
    assert t.read_texts(control)
    token, cpus = opened["token"], int(opened["cpus"])
    for cpu in (cpus, 4096, 1 << 32, 1 << 63, (1 << 64) - 1):
        peer, got = page_peer(connect, token, cpu)
        assert got[0] == t.ERROR, f"CPU {cpu}: {got}"
        peer.sock.close()
    first, got = page_peer(connect, token, 0)
    assert got[0] == t.OPENED
    peer, got = page_peer(connect, token, 0)
    assert got[0] == t.ERROR, "one CPU's pages twice"
    stranger = connect(None)
    assert not stranger.greet() or stranger.open(purpose=STREAM, lines=f"token {token}\ncpu 1\n".encode())[0] == t.ERROR
    # Bytes where none are wanted: they are nobody's affair.
    first.sock.sendall(os.urandom(2000))
    control.send(t.START)
    assert control.read_frame()[0] == t.STARTED
    peer, got = page_peer(connect, token, cpus - 1)
    assert got[0] == t.ERROR, "pages after the start"
    control.send(t.STOP)
    try:
        while first.sock.recv(65536):
            pass
    except ConnectionError:
        pass
    control.sock.close()
    peer, got = page_peer(connect, token, 0)
    assert got[0] == t.ERROR, "pages of a session that is over"


def dies_anywhere(connect):
    """The host's end disappears at each step, closed or reset."""
    for reset in (False, True):
        for steps in range(6):
            peers = [greeted(connect)]
            control = peers[0]
            if steps >= 1:
                opened, reason = ask(control)
                assert opened, reason
            if steps >= 2:
                assert t.read_texts(control)
                peers += [page_peer(connect, opened["token"], cpu)[0] for cpu in range(int(opened["cpus"]))]
            if steps >= 3:
                control.send(t.START)
            if steps >= 4:
                assert control.read_frame()[0] == t.STARTED
            if steps >= 5:
                control.send(t.STOP)
            # The pages' end first, or the control's.
            for peer in peers if reset else reversed(peers):
                if reset:
                    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.sock.close()


def work():
    for _ in range(WRITES):
        os.write(NULL, bytes(SIZE))


NULL = os.open("/dev/null", os.O_WRONLY)


def count_writes(path):
    out = subprocess.run(["trace-cmd", "report", "-i", path], capture_output=True, text=True, errors="replace")
    return sum(f", {SIZE:x}, " in line and "NR 1 (" in line for line in out.stdout.splitlines())


def limit_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def start_recording(out, secret, *options):
    process = subprocess.Popen([t.TANDEM, "record", "-o", out, "--no-kallsyms", "-b", "4096", "-e", EVENT, "-f",
                                "id == 1", "--secret-file", secret,
                                *options, "--time", "120"],
                               stdout=subprocess.PIPE, stderr=open(out + ".err", "w"), text=True, preexec_fn=limit_files)
    return process


def finish_recording(process, out, names):
    process.send_signal(2)
    process.communicate(timeout=60)
    errors = open(out + ".err").read()
    assert process.returncode == 0, f"the recording beside it: status {process.returncode}: {errors}"
    for name in names:
        seen = count_writes(f"{out}/{name}.dat")
        assert seen >= 2 * WRITES, f"{name}.dat: {2 * WRITES} writes were made, {seen} are there"


def against_agent(directory):
    agent = t.Agent("--allow", "raw_syscalls:*", "--allow", "sched:*", secret=SECRET)
    connect = lambda secret: agent.connect(secret=secret)
    secret = t.secret_file(directory, SECRET)
    out = os.path.join(directory, "agent")
    recording = start_recording(out, secret, "--guest", f"web={agent.tcp()}")
    pid = agent.process.pid
    wait_for("the recording", lambda: instances(pid) and os.path.exists(f"{out}/web.recording/texts"))
    time.sleep(0.5)
    work()
    unauthorised(connect)
    replays(connect, lambda peer: peer.open(purpose=STREAM, lines=t.stream_lines(EVENT)))
    bad_requests(connect)
    out_of_turn(connect)
    wrong_pages(connect)
    dies_anywhere(connect)
    traces(connect)
    # Half-open: greeted or not, they say nothing more.
    crowd = []
    for number in range(600):
        peer = connect(None)
        if number % 2:
            peer.sock.sendall(t.frame(t.HELLO, peer.own)[:40])
        crowd.append(peer)
    traces(connect)
    work()
    wait_for("instances of dead sessions go", lambda: len(instances(pid)) == 1)
    finish_recording(recording, out, ["host", "web"])
    for peer in crowd:
        peer.sock.close()
    lines = agent.log().splitlines()
    assert len(lines) < 120, f"{len(lines)} lines of log"
    assert agent.stop() == 0
    assert not instances(pid), "the agent left instances"
    t.say(f"agent: a recording went on beside strangers; {len(lines)} lines of log")


def view(connect, machine="host", secret=SECRET):
    """A viewer up to its START; None where it is refused."""
    peer = connect(secret)
    if not peer.greet():
        return None
    got = peer.open(purpose=STREAM, lines=f"machine {machine}\n".encode())
    if not got or got[0] != t.OPENED:
        return None
    assert t.read_texts(peer)
    peer.send(t.START)
    assert peer.read_frame()[0] == t.STARTED
    return peer


def against_service(directory):
    agent = t.Agent("--allow", "raw_syscalls:*", secret=SECRET)
    secret = t.secret_file(directory, SECRET)
    out = os.path.join(directory, "service")
    recording = start_recording(out, secret, "--guest", f"web={agent.tcp()}", "--serve", "tcp:127.0.0.1:0")
    address = lambda: [line for line in open(out + ".err") if "Serving: address" in line]
    wait_for("the service", lambda: address() and os.path.exists(f"{out}/web.recording/texts"))
    port = int(address()[0].split('"')[1].rsplit(":", 1)[1])
    connect = lambda secret=None: t.Peer(socket.create_connection(("127.0.0.1", port), timeout=20), secret=secret)
    wait_for("viewers may come", lambda: view(connect))
    work()
    for _ in range(20):
        assert not view(connect, secret=None), "a viewer without the secret"
        assert not view(connect, secret=b"a wrong one"), "a viewer with a wrong secret"
        assert not view(connect, machine="nobody"), "a machine that is not recorded"
        assert not view(connect, machine="../host")
        peer = connect()
        peer.sock.sendall(os.urandom(4000))
        assert peer.ends()
    replays(connect, lambda peer: peer.open(purpose=STREAM, lines=b"machine host\n"))
    for kind, body in ((t.START, b""), (t.STOP, b""), (t.PAGE, bytes(4104)), (777, b""), (t.HELLO, bytes(64))):
        peer = view(connect)
        peer.send(kind, body)
        assert peer.ends(), f"a viewer that sends frame {kind}"
    stuck = [view(connect) for _ in range(5)]
    crowd = []
    for number in range(1500):
        try:
            peer = connect()
            if number % 2:
                peer.sock.sendall(t.frame(t.HELLO, peer.own)[:40])
            crowd.append(peer)
        except OSError as error:
            sys.exit(f"connection {number}: {error}")
    watcher = view(connect, "web")
    work()
    assert watcher.read_frame()[0] == t.PAGE, "a proper viewer beside the crowd"
    watcher.sock.close()
    finish_recording(recording, out, ["host", "web"])
    lines = open(out + ".err").read().splitlines()
    assert len(lines) < 100, f"{len(lines)} lines on stderr"
    for peer in crowd + stuck:
        peer.sock.close()
    assert agent.stop() == 0
    t.say(f"record --serve: the recording went on beside strangers; {len(lines)} lines of log")


def main():
    if os.getuid() != 0 or not os.path.isdir(INSTANCES):
        print("SKIP: needs root and tracefs")
        sys.exit(77)
    # Both crowds are ours.
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) +
                       resource.getrlimit(resource.RLIMIT_NOFILE)[1:])
    with tempfile.TemporaryDirectory(prefix="tandem-stream-") as directory:
        against_agent(directory)
        against_service(directory)


main()
