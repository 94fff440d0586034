# SPDX-License-Identifier: MIT
"""Tandem's connection protocol, written once more from docs/sync-protocol.md, so that tests can break it at will."""
import hashlib
import atexit
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

HELLO, AUTH, OPEN, OPENED, ERROR, BURST, READY, EXCHANGE, QUERY, NOTES, LINES, CLOSE = range(1, 13)
TEXTS, START, STARTED, STOP, END, PAGE = range(32, 38)
TAGGED = 1
HAS_SECRET, WANTS_PROOF = 1, 2
BUILD = os.environ["TANDEM_BUILD"]
AGENT = os.path.join(BUILD, "agent", "tandem-agent")
TANDEM = os.path.join(BUILD, "cli", "tandem")


def keyed(key, data, size=32):
    return hashlib.blake2b(data, key=key, digest_size=size).digest()


def frame(kind, body=b"", flags=0, major=1, minor=0, magic=b"TNDM", length=None):
    return struct.pack("<4sBBHII", magic, major, minor, kind, flags,
                       len(body) if length is None else length) + body


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def message(kind, session, sequence, h1=0, g2=0, g3=0, epoch=0, flags=0):
    body = struct.pack("<4sBBHIIQQQQQQQQIHHi", b"TNDX", 1, kind, flags, session, epoch, sequence,
                       h1, g2, g3, g2, g3, 0, 0, 0, 0, 0x0101, 0)
    return body + struct.pack("<I", crc32c(body))


def open_body(purpose=1, session=7, lines=b"clock mono\n"):
    return struct.pack("<BxxxI", purpose, session) + lines


class Peer:
    """One end of a connection. Reads have a time limit; a closed connection reads as None."""

    def __init__(self, sock, client=True, secret=None):
        self.sock, self.client = sock, client
        sock.settimeout(20)
        self.buffer = b""
        self.sent = self.received = 0
        self.proven = False
        self.secret = keyed(b"tandem1 secret\0\0", secret) if secret else None
        self.own = os.urandom(32) + struct.pack("<II", 15, HAS_SECRET if secret else 0) + bytes(24)

    def read_frame(self):
        """(type, body, whole frame) or None at the end of the connection."""
        while len(self.buffer) < 16 or len(self.buffer) < 16 + struct.unpack_from("<I", self.buffer, 12)[0]:
            try:
                more = self.sock.recv(65536)
            except ConnectionError:
                return None
            if not more:
                return None
            self.buffer += more
        size = struct.unpack_from("<I", self.buffer, 12)[0]
        whole, self.buffer = self.buffer[:16 + size], self.buffer[16 + size:]
        kind, flags = struct.unpack_from("<HI", whole, 6)
        body = whole[16:]
        if flags & TAGGED:
            tag, body = body[-16:], body[:-16]
            want = keyed(self.key(not self.client, b"frames"),
                         struct.pack("<Q", self.received) + whole[:16] + body, 16)
            assert tag == want, "the peer's tag is wrong"
            self.received += 1
        return kind, body, whole

    def key(self, client_sends, label):
        return keyed(self.base, label.ljust(16, b"\0") + (b"\0" if client_sends else b"\1"))

    def seal(self, kind, body=b""):
        if not self.proven:
            return frame(kind, body)
        header = struct.pack("<4sBBHII", b"TNDM", 1, 0, kind, TAGGED, len(body) + 16)
        tag = keyed(self.key(self.client, b"frames"), struct.pack("<Q", self.sent) + header + body, 16)
        self.sent += 1
        return header + body + tag

    def send(self, kind, body=b""):
        self.sock.sendall(self.seal(kind, body))

    def greet(self):
        """HELLO and AUTH. False where the other side refused."""
        self.sock.sendall(frame(HELLO, self.own))
        got = self.read_frame()
        if not got or got[0] != HELLO:
            return False
        other = got[1][:64]
        if not self.secret:
            return True
        self.base = keyed(self.secret, self.own + other if self.client else other + self.own)
        mine, theirs = self.key(self.client, b"proof"), self.key(not self.client, b"proof")
        if self.client:
            self.sock.sendall(frame(AUTH, mine))
        got = self.read_frame()
        if not got or got[0] != AUTH or got[1] != theirs:
            return False
        if not self.client:
            self.sock.sendall(frame(AUTH, mine))
        self.proven = True
        return True

    def open(self, *args, **kwargs):
        self.send(OPEN, open_body(*args, **kwargs))
        return self.read_frame()

    def ends(self, limit=15):
        """True where the other side closes within the limit."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            self.sock.settimeout(max(0.1, until - time.monotonic()))
            try:
                if self.read_frame() is None:
                    return True
            except (socket.timeout, AssertionError):
                return False
        return False


def stream_lines(*events, clock="mono", **keys):
    """The lines of an OPEN that asks an agent for a trace."""
    lines = "".join(f"event {event}\nfilter -\n" for event in events) + f"clock {clock}\n"
    return (lines + "".join(f"{key.replace('_', '-')} {value}\n" for key, value in keys.items())).encode()


def lines_of(body):
    """The lines of an OPENED or END as a map."""
    return dict(line.split(" ", 1) for line in body.decode().splitlines() if " " in line)


def read_texts(peer):
    """The packed texts; None where the connection ended."""
    texts = b""
    while (got := peer.read_frame()) and got[0] == TEXTS:
        if not got[1]:
            return texts
        texts += got[1]
    return None


class Agent:
    """A real agent on a free loopback port and a UNIX path."""

    def __init__(self, *options, secret=None, prefix=()):
        self.dir = tempfile.TemporaryDirectory(prefix="tandem-sync-")
        self.path = os.path.join(self.dir.name, "agent.sock")
        options = list(options)
        if not any(o.startswith("tcp:") for o in options):
            options += ["--listen", "tcp:127.0.0.1:0", "--listen", "unix:" + self.path]
        if secret:
            options += ["--secret-file", secret_file(self.dir.name, secret)]
        self.log_path = os.path.join(self.dir.name, "log")
        self.log_file = open(self.log_path, "wb")
        self.process = subprocess.Popen([*prefix, AGENT, *options], stderr=self.log_file)
        # Also where the test fails half-way: nothing of it may stay.
        atexit.register(lambda: self.is_alive() and self.process.kill())
        until = time.monotonic() + 20
        while "Ready" not in self.log():
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit("the agent did not start: " + self.log())
            time.sleep(0.02)
        self.port = next((int(line.split('"')[1].rsplit(":", 1)[1]) for line in self.log().splitlines()
                          if 'address="tcp:' in line), None)

    def log(self):
        with open(self.log_path, errors="replace") as f:
            return f.read()

    def connect(self, **kwargs):
        return Peer(socket.create_connection(("127.0.0.1", self.port), timeout=20), **kwargs)

    def tcp(self):
        return f"tcp:127.0.0.1:{self.port}"

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        self.process.terminate()
        status = self.process.wait(20)
        self.log_file.close()
        return status


def secret_file(directory, secret):
    path = os.path.join(directory, "secret")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
        f.write(secret + b"\n")
    return path


def sync(out, *arguments, timeout=120):
    """Runs tandem sync; (status, stdout, stderr, seconds)."""
    began = time.monotonic()
    done = subprocess.run([TANDEM, "sync", "-o", out, *arguments], capture_output=True, text=True,
                          timeout=timeout)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - began


class Corrections:
    """A corrections file, read as the design says, in exact integers."""

    def __init__(self, path):
        self.lines = open(path).read().splitlines()
        assert self.lines[0] == "tandem-corrections 1" and self.lines[-1] == "end", self.lines
        self.segments = []
        for line in self.lines:
            word = line.split(" ")
            if word[0] == "segment":
                self.segments.append((int(word[2]), []))
            elif word[0] == "k":
                self.segments[-1][1].append(tuple(map(int, word[1:])))

    def knots(self):
        return [knot for _, knots in self.segments for knot in knots]

    def check_identity(self):
        """Both clocks are one clock: the truth at every knot, and halfway between, is the guest's own reading."""
        for _, knots in self.segments:
            for guest, host, minus, plus in knots:
                assert host - minus <= guest <= host + plus, f"at {guest}: {host} -{minus} +{plus}"
            for a, b in zip(knots, knots[1:]):
                guest = (a[0] + b[0]) // 2
                host = a[1] + (guest - a[0]) * (b[1] - a[1]) // (b[0] - a[0])
                minus, plus = max(a[2], b[2]), max(a[3], b[3])
                assert host - minus - 1 <= guest <= host + plus + 1, f"between {a} and {b}"


def say(text):
    print(text, flush=True)
