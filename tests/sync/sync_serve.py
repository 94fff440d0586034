#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The corrections service: what readers get is what a corrections file may hold, to many at once, slow ones included."""
import os
import resource
import signal
import socket
import subprocess
import tempfile
import threading
import time

import tandem_wire as t


def reader(address, guest=None, secret=None):
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(20)
        sock.connect(address)
    else:
        sock = socket.create_connection(address, timeout=20)
    peer = t.Peer(sock, secret=secret)
    if not peer.greet():
        return None, None
    return peer, peer.open(purpose=3, lines=f"guest {guest}\n".encode() if guest else b"")


def frames(peer):
    """The lines of each frame until the service ends."""
    while (got := peer.read_frame()) and got[0] != t.CLOSE:
        assert got[0] == t.LINES, got
        assert got[1].endswith(b"\n"), "a frame ends inside a line"
        yield got[1].decode().splitlines()


def read_lines(peer, enough=None):
    """All lines until the service ends; the event is set once knots were told over a second, or no more comes."""
    lines, knots = [], []
    for more in frames(peer):
        lines += more
        knots += [int(line.split(" ")[1]) for line in more if line.startswith("k ")]
        # The first one lies before the first burst.
        if enough and len(knots) > 2 and knots[-1] - knots[1] > 1_000_000_000:
            enough.set()
    if enough:
        enough.set()
    return lines


def check_waits(peer, agent):
    """A guest that falls silent is no news: each second a line that says so."""
    began = time.monotonic()
    waits = news = 0
    agent.process.send_signal(signal.SIGSTOP)
    for lines in frames(peer):
        waits += lines.count("wait")
        news += sum(line != "wait" for line in lines)
        if waits >= 2:
            break
    agent.process.send_signal(signal.SIGCONT)
    assert waits >= 2, "the guest said nothing, and the service ended without a wait"
    seconds = time.monotonic() - began
    assert waits <= seconds + 1, f"{waits} waits within {seconds:.2f} s"
    t.say(f"{waits} waits and {news} other lines within {seconds:.2f} s of a silent guest")


def check_lines(lines):
    """The rules of the stream: header, segments open with FROM 0 knots, knots only grow, wait between, end last."""
    assert lines[0] == "tandem-corrections 1", lines[:2]
    assert lines[-1] == "end" and lines.count("end") == 1, lines[-3:]
    last, knots, segments = -1, 0, 0
    for line in lines:
        word = line.split(" ")
        if word[0] == "segment":
            assert word[3] == "0", line
            segments += 1
        elif word[0] == "k":
            assert segments and int(word[1]) > last, line
            last, knots = int(word[1]), knots + 1
            guest, host, minus, plus = map(int, word[1:])
            assert host - minus <= guest <= host + plus, line
    assert segments >= 1 and knots >= 2, lines
    return knots


class Service:
    """tandem sync --serve that goes on until it is told to end."""

    def __init__(self, out, *arguments):
        fifo = out + ".end"
        os.mkfifo(fifo)
        self.fifo = os.open(fifo, os.O_RDWR)
        self.process = subprocess.Popen(
            [t.TANDEM, "sync", "-o", out, *arguments, "--", "timeout", "120", "head", "-c", "1", fifo],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while line := self.process.stderr.readline():
            if "Serving corrections" in line:
                self.address = line.split('"')[1]
                return
        raise AssertionError("it does not serve")

    def port(self):
        return ("127.0.0.1", int(self.address.rsplit(":", 1)[1]))

    def tell_end(self):
        os.write(self.fifo, b".")

    def wait(self):
        _, errors = self.process.communicate(timeout=60)
        os.close(self.fifo)
        assert self.process.returncode == 0, errors

    def follow_to_end(self, peer):
        """Ends it once the reader was told enough; all lines."""
        got = []
        enough = threading.Event()
        thread = threading.Thread(target=lambda: got.append(read_lines(peer, enough)))
        thread.start()
        assert enough.wait(60)
        self.tell_end()
        thread.join(60)
        self.wait()
        return got[0]


def main():
    agent = t.Agent()
    with tempfile.TemporaryDirectory(prefix="tandem-serve-") as out:
        mute = t.Agent()
        service = Service(os.path.join(out, "one"), "--guest", f"web={agent.tcp()}", "--guest", f"db=unix:{agent.path}",
                          "--guest", f"mute={mute.tcp()}", "--serve", "tcp:127.0.0.1:0")
        port = service.port()
        # Faults are refused in words, and cost the others nothing.
        assert reader(port, "nobody")[1][0] == t.ERROR
        assert reader(port)[1][0] == t.ERROR, "which guest?"
        peer, _ = reader(port, "web")
        peer.send(t.QUERY)
        assert peer.ends()
        stranger = t.Peer(socket.create_connection(port))
        stranger.sock.sendall(os.urandom(1000))
        assert stranger.ends()
        # A crowd that says nothing keeps nobody out.
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) +
                           resource.getrlimit(resource.RLIMIT_NOFILE)[1:])
        crowd = [socket.create_connection(port, timeout=20) for _ in range(1000)]
        began = time.monotonic()
        assert reader(port, "web")[1][0] == t.OPENED
        t.say(f"served beside {len(crowd)} idle connections in {time.monotonic() - began:.2f} s")
        for sock in crowd:
            sock.close()
        # One never reads, some come and go, many read to the end.
        slow, _ = reader(port, "web")
        for _ in range(50):
            reader(port, "db")[0].sock.close()
        got = {}
        enough = [threading.Event() for _ in range(40)]

        def follow(number):
            peer, opened = reader(port, "web" if number % 2 else "db")
            assert opened[0] == t.OPENED
            got[number] = read_lines(peer, enough[number])

        threads = [threading.Thread(target=follow, args=(n,)) for n in range(40)]
        for thread in threads:
            thread.start()
        check_waits(reader(port, "mute")[0], mute)
        for event in enough:
            assert event.wait(60), "a reader was told too little"
        service.tell_end()
        for thread in threads:
            thread.join(60)
        assert len(got) == 40
        for number, lines in got.items():
            knots = check_lines(lines)
        # All readers of one guest were told the same.
        same = {number % 2: [line for line in lines if line != "wait"] for number, lines in got.items()}
        for number, lines in got.items():
            assert [line for line in lines if line != "wait"] == same[number % 2]
        t.say(f"40 readers, {knots} knots each")
        service.wait()
        slow.sock.close()
        mute.stop()

        # A UNIX path needs no name where there is one guest; it is gone afterwards.
        path = os.path.join(out, "s.sock")
        service = Service(os.path.join(out, "two"), "--guest", f"web={agent.tcp()}", "--serve", "unix:" + path)
        peer, opened = reader(path)
        assert opened[0] == t.OPENED and b"guest web\n" in opened[1]
        check_lines(service.follow_to_end(peer))
        assert not os.path.exists(path)

        # Other machines only with the secret.
        status, _, errors, _ = t.sync(os.path.join(out, "three"), "--guest", f"web={agent.tcp()}", "--serve",
                                      "tcp:0.0.0.0:0", "--", "true")
        assert status == 1 and "--secret-file is needed" in errors, errors
        guarded = t.Agent(secret=b"shared")
        key = os.path.join(guarded.dir.name, "secret")
        service = Service(os.path.join(out, "four"), "--guest", f"web={guarded.tcp()}", "--serve", "tcp:127.0.0.1:0",
                          "--secret-file", key)
        port = service.port()
        assert reader(port, "web", secret=b"wrong")[0] is None
        peer, opened = reader(port, "web", secret=b"shared")
        assert peer.proven and opened[0] == t.OPENED
        check_lines(service.follow_to_end(peer))
        guarded.stop()
    agent.stop()


main()
