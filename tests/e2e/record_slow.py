#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A slow host: what a guest traces meanwhile is in its file or is counted as lost, and its programs never wait for the network.

The guests' tracers are this kernel's. The program that is traced makes a known number of a system call that nobody else
makes, and runs to its end while the recorder stands still.
usage: record_slow.py [partition]     partition: the network goes away for good (two minutes)
"""
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "sync"))
import tandem_wire as t

SECRET = b"the right one"
CALLS = 400_000
CALL = 156  # _sysctl, which is no longer there: traced all the same
EVENT = ["-e", "raw_syscalls:sys_enter", "-f", f"id == {CALL}"]
INSTANCES = "/sys/kernel/tracing/instances"
DUMP = os.path.join(t.BUILD, "tests", "support", "record-dump")


def call(count=CALLS):
    libc = ctypes.CDLL(None)
    for _ in range(count):
        libc.syscall(CALL)


def calls_in_child(count=CALLS):
    pid = os.fork()
    if pid == 0:
        call(count)
        os._exit(0)
    os.waitpid(pid, 0)


def events(path):
    out = subprocess.run([DUMP, path], capture_output=True, text=True, errors="replace", timeout=100)
    return sum(line.startswith("R ") and "raw_syscalls:sys_enter" in line for line in out.stdout.splitlines())


def wait_for(what, condition, limit=60):
    until = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < until, f"{what}: not within {limit} s"
        time.sleep(0.05)


class Recording:
    def __init__(self, out, secret, *options):
        self.out = out
        self.process = subprocess.Popen([t.TANDEM, "record", "-o", out, "--no-kallsyms", "-b", "64", *EVENT,
                                         "--secret-file", secret, *options, "--time", "400"],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_ready(self, agent):
        """Until tracing is on in the agent's instance, or instances."""
        def on():
            mine = [name for name in os.listdir(INSTANCES) if name.startswith(f"tandem-{agent.process.pid}-")]
            return mine and all(open(f"{INSTANCES}/{name}/tracing_on").read().strip() == "1" for name in mine)
        wait_for("the recording", on)
        time.sleep(0.3)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        self.signal(signal.SIGINT)
        self.printed, self.errors = self.process.communicate(timeout=120)
        return self.process.returncode

    def lost(self, guest):
        where = f'guest "{guest}": ' if guest != "host" else "host: "
        found = re.search(re.escape(where) + r"(\d+) events lost", self.errors)
        return int(found[1]) if found else 0

    def adds_up(self, names, made):
        """In the file or counted, to the event."""
        for name in names:
            there, lost = events(f"{self.out}/{name}.dat"), self.lost(name)
            print(f"  {name}: {made} made, {there} in the file, {lost} said to be lost")
            assert there + lost == made, f"{name}: {made - there - lost} events are unaccounted for: {self.errors}"
            yield lost


def stalled(directory, secret):
    """The recorder stands still while the guest's program runs from its beginning to its end."""
    agent = t.Agent("--allow", "raw_syscalls:*", secret=SECRET)
    recording = Recording(os.path.join(directory, "stalled"), secret, "--guest", f"sealed={agent.tcp()}",
                          "--guest", f"bare=unix:{agent.path}")
    recording.wait_ready(agent)
    call(1000)
    recording.signal(signal.SIGSTOP)
    calls_in_child()  # comes back although nobody takes a page
    recording.signal(signal.SIGCONT)
    time.sleep(1)
    call(1000)
    print("stalled recorder:")
    status = recording.end()
    lost = list(recording.adds_up(["host", "sealed", "bare"], CALLS + 2000))
    assert all(lost) and status == 3, f"nothing was lost, so nothing is tested: {lost}, status {status}"
    assert agent.stop() == 0


class Throttle(threading.Thread):
    """Between recorder and agent; takes from the agent no more than so many bytes a second, all connections together."""

    def __init__(self, port, bytes_a_second):
        super().__init__(daemon=True)
        self.port, self.rate = port, bytes_a_second
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.lock = threading.Lock()
        self.start()

    def run(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.create_connection(("127.0.0.1", self.port))
            # What is on its way counts as taken: little of it.
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            threading.Thread(target=self.pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, True), daemon=True).start()

    def pump(self, source, target, slow):
        try:
            while data := source.recv(16384):
                target.sendall(data)
                if slow and len(data) > 2000:
                    with self.lock:
                        time.sleep(len(data) / self.rate)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            target.close()


def throttled(directory, secret):
    """A link of 2 MB/s, and a program that traces some 20 MB at once."""
    agent = t.Agent("--allow", "raw_syscalls:*", secret=SECRET)
    throttle = Throttle(agent.port, 2_000_000)
    recording = Recording(os.path.join(directory, "throttled"), secret, "--guest",
                          f"slow=tcp:127.0.0.1:{throttle.listener.getsockname()[1]}")
    recording.wait_ready(agent)
    calls_in_child()
    print("throttled link:")
    status = recording.end()
    lost = list(recording.adds_up(["slow"], CALLS))
    assert all(lost) and status == 3, f"nothing was lost, so nothing is tested: {lost}, status {status}: {recording.errors}"
    assert agent.stop() == 0


def partition(directory, secret):
    """The network goes and does not come back: the agent gives the session up, the recorder keeps what came."""
    run = lambda *words: subprocess.run(words, check=True, capture_output=True, text=True)
    name = f"tandem{os.getpid()}"
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", "tdmslow0", "type", "veth", "peer", "name", "tdmslow1", "netns", name)
        run("ip", "address", "add", "10.231.7.1/24", "dev", "tdmslow0")
        run("ip", "link", "set", "tdmslow0", "up")
        run("ip", "netns", "exec", name, "ip", "address", "add", "10.231.7.2/24", "dev", "tdmslow1")
        run("ip", "netns", "exec", name, "ip", "link", "set", "tdmslow1", "up")
        agent = t.Agent("--allow", "raw_syscalls:*", "--listen", "tcp:10.231.7.2:8990", secret=SECRET,
                        prefix=("nsenter", f"--net=/run/netns/{name}"))
        mine = lambda: [i for i in os.listdir(INSTANCES) if i.startswith(f"tandem-{agent.process.pid}-")]
        recording = Recording(os.path.join(directory, "partition"), secret, "--guest", "gone=tcp:10.231.7.2:8990")
        recording.wait_ready(agent)
        calls_in_child(50_000)
        wait_for("pages", lambda: os.path.getsize(f"{recording.out}/gone.recording/cpu0") +
                 os.path.getsize(f"{recording.out}/gone.recording/cpu1"))
        run("ip", "link", "set", "tdmslow0", "down")
        began = time.monotonic()
        wait_for("the agent gives up", lambda: not mine(), limit=240)
        print(f"partition: the agent gave up after {time.monotonic() - began:.0f} s")
        status = recording.end()
        assert status == 3 and '"gone"' in recording.errors, f"status {status}: {recording.errors}"
        assert events(f"{recording.out}/gone.dat") > 1000 and events(f"{recording.out}/host.dat") > 1000
        assert agent.stop() == 0
    finally:
        subprocess.run(["ip", "link", "del", "tdmslow0"], capture_output=True)
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def main():
    if os.getuid() != 0 or not os.path.isdir(INSTANCES):
        print("SKIP: needs root and tracefs")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="tandem-slow-") as directory:
        secret = t.secret_file(directory, SECRET)
        if sys.argv[1:] == ["partition"]:
            partition(directory, secret)
        else:
            stalled(directory, secret)
            throttled(directory, secret)


main()
