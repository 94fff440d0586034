#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem doctor --guest: a guest that is well, and each way in which one is not, with the remedy."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

import tandem_wire as t
from nagle_relay import relay


def doctor(*arguments, status):
    began = time.monotonic()
    done = subprocess.run([t.TANDEM, "doctor", "--json", *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    items = [item for item in json.loads(done.stdout)["checks"] if "guest" in item]
    assert all(item["level"] == "ok" or item["remedy"] for item in items), items
    assert time.monotonic() - began < 60, "a wait without a limit"
    return {item["check"]: item for item in items}


def silent_server():
    listener = socket.create_server(("127.0.0.1", 0))
    held = []
    threading.Thread(target=lambda: [held.append(listener.accept()) for _ in iter(int, 1)], daemon=True).start()
    return listener.getsockname()[1]


def main():
    # This machine's own checks may have something to say; what counts here are the guests.
    own = subprocess.run([t.TANDEM, "doctor"], capture_output=True, timeout=60).returncode
    agent = t.Agent()
    for name, address in (("web", f"web={agent.tcp()}"), (f"unix:{agent.path}", f"unix:{agent.path}")):
        found = doctor("--guest", address, status=own)
        assert all(item["guest"] == name and item["level"] in ("ok", "note") for item in found.values()), found
        assert "this very machine" in found["guest"]["text"], found
        assert "answered" in found["exchanges"]["text"] and found["nagle"]["level"] == "ok", found
        assert "mono_raw known within +-" in found["clock"]["text"], found
    found = doctor("--guest", f"web={agent.tcp()}", "-C", "mono", status=own)
    assert "through raw clocks" in found["clock"]["text"], found

    found = doctor("--guest", f"x=tcp:127.0.0.1:{relay(agent)}", status=3)
    assert found["nagle"]["level"] == "bad" and "TCP_NODELAY" in found["nagle"]["remedy"], found

    # A guest that stands still, one that never says a word, nobody at all, a name that does not exist.
    os.kill(agent.process.pid, signal.SIGSTOP)
    found = doctor("--guest", f"web={agent.tcp()}", status=3)
    assert found["guest"]["level"] == "bad", found
    os.kill(agent.process.pid, signal.SIGCONT)
    found = doctor("--guest", f"web=tcp:127.0.0.1:{silent_server()}", status=3)
    assert found["guest"]["level"] == "bad", found
    found = doctor("--guest", "web=tcp:127.0.0.1:1", "--guest", f"db={agent.tcp()}", status=3)
    assert found["guest"]["guest"] == "db" and found["guest"]["level"] == "ok", found
    for address in ("tcp:127.0.0.1:1", "unix:/no/such"):
        assert "start tandem-agent" in doctor("--guest", address, status=3)["guest"]["remedy"], address
    assert "no-such-guest" in doctor("--guest", "no-such-guest", status=3)["guest"]["text"]
    assert doctor("--guest", "tcp:no-such-name.invalid", status=3)["guest"]["level"] == "bad"
    agent.stop()

    with tempfile.TemporaryDirectory(prefix="tandem-doctor-") as folder:
        paths = []
        for name, secret in (("good", b"sesame"), ("bad", b"pumpkin")):
            paths.append(os.path.join(folder, name))
            with open(paths[-1], "wb") as file:
                file.write(secret)
            os.chmod(paths[-1], 0o600)
        agent = t.Agent(secret=b"sesame")
        found = doctor("--guest", agent.tcp(), "--secret-file", paths[0], status=own)
        assert found["clock"]["level"] in ("ok", "note"), found
        found = doctor("--guest", agent.tcp(), "--secret-file", paths[1], status=3)
        assert "secret" in found["guest"]["remedy"], found
        agent.stop()


main()
