#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The corrections service: what readers get is what a corrections file may hold, to many at once, slow ones included."""
import os
import resource
import socket
import struct
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


def read_lines(peer):
    """All lines until the service ends."""
    text = b""
    while (got := peer.read_frame()) and got[0] != t.CLOSE:
        assert got[0] == t.LINES, got
        assert got[1].endswith(b"\n"), "a frame ends inside a line"
        text += got[1]
    return text.decode().splitlines()


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


def start(out, *arguments, seconds):
    process = subprocess.Popen([t.TANDEM, "sync", "-o", out, *arguments, "--", "sleep", str(seconds)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while line := process.stderr.readline():
        if "Serving corrections" in line:
            address = line.split('"')[1]
            return process, address
    raise AssertionError("it does not serve")


def main():
    agent = t.Agent()
    with tempfile.TemporaryDirectory(prefix="tandem-serve-") as out:
        process, address = start(os.path.join(out, "one"), "--guest", f"web={agent.tcp()}", "--guest",
                                 f"db=unix:{agent.path}", "--serve", "tcp:127.0.0.1:0", seconds=7)
        port = ("127.0.0.1", int(address.rsplit(":", 1)[1]))
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

        def follow(number):
            peer, opened = reader(port, "web" if number % 2 else "db")
            assert opened[0] == t.OPENED
            got[number] = read_lines(peer)

        threads = [threading.Thread(target=follow, args=(n,)) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(got) == 40
        for number, lines in got.items():
            knots = check_lines(lines)
        assert any("wait" in lines for lines in got.values()), "a second without news, and no wait"
        # All readers of one guest were told the same.
        same = {number % 2: [line for line in lines if line != "wait"] for number, lines in got.items()}
        for number, lines in got.items():
            assert [line for line in lines if line != "wait"] == same[number % 2]
        t.say(f"40 readers, {knots} knots each")
        told, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
        slow.sock.close()

        # A UNIX path needs no name where there is one guest; it is gone afterwards.
        path = os.path.join(out, "s.sock")
        process, address = start(os.path.join(out, "two"), "--guest", f"web={agent.tcp()}", "--serve",
                                 "unix:" + path, seconds=3)
        peer, opened = reader(path)
        assert opened[0] == t.OPENED and b"guest web\n" in opened[1]
        check_lines(read_lines(peer))
        process.communicate(timeout=30)
        assert not os.path.exists(path)

        # Other machines only with the secret.
        status, _, errors, _ = t.sync(os.path.join(out, "three"), "--guest", f"web={agent.tcp()}", "--serve",
                                      "tcp:0.0.0.0:0", "--", "true")
        assert status == 1 and "--secret-file is needed" in errors, errors
        guarded = t.Agent(secret=b"shared")
        key = os.path.join(guarded.dir.name, "secret")
        process, address = start(os.path.join(out, "four"), "--guest", f"web={guarded.tcp()}", "--serve",
                                 "tcp:127.0.0.1:0", "--secret-file", key, seconds=3)
        port = ("127.0.0.1", int(address.rsplit(":", 1)[1]))
        assert reader(port, "web", secret=b"wrong")[0] is None
        peer, opened = reader(port, "web", secret=b"shared")
        assert peer.proven and opened[0] == t.OPENED
        check_lines(read_lines(peer))
        process.communicate(timeout=30)
        guarded.stop()
    agent.stop()


main()
