#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem-agent --trace-cmd against a host of our own that speaks trace-cmd's protocol as trace-cmd does, and against hosts
that do not: who may, what is allowed, what it costs the others. The clock's truth is 0: both ends are one machine.
"""
import ctypes
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUILD = os.environ["TANDEM_BUILD"]
TRACING = "/sys/kernel/tracing"
PROBES = 339
libc = ctypes.CDLL(None, use_errno=True)


def mono():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def message(command, fixed=b"", payload=b""):
    return struct.pack(">III", 12 + len(fixed) + len(payload), command, len(fixed)) + fixed + payload


def request(arguments, sync=True, trace_id=77):
    text = struct.pack(">I", len(arguments)) + b"".join(a.encode() + b"\0" for a in arguments)
    payload = struct.pack(">II", 0, len(text)) + text
    if sync:
        payload += struct.pack(">II", 1, 5) + b"ptp\0\0"
    return message(6, struct.pack(">IIQ", 0, 0, trace_id), payload)


class Lost(Exception):
    pass


class Conn:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.rest = b""

    def take(self, count):
        while len(self.rest) < count:
            got = self.sock.recv(65536)
            if not got:
                raise Lost
            self.rest += got
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def receive(self):
        head = self.take(12)
        size, command, fixed = struct.unpack(">III", head)
        body = self.take(size - 12)
        return command, body[:fixed], body[fixed:], head + body


class Host:
    """A session in the order that trace-cmd has."""

    def __init__(self, port, arguments, sync=True):
        self.control = Conn(port)
        self.control.sock.sendall(request(arguments, sync))
        command, fixed, payload, _ = self.control.receive()
        assert command == 7, f"answered with {command}"
        _, self.cpus, self.page, self.trace_id, name, sync_port = struct.unpack(">IIIQ16sI", fixed)
        self.ports = [int(p) for p in payload.rstrip(b"\0").split(b"\0")]
        assert len(self.ports) == self.cpus and (name.rstrip(b"\0") == b"ptp") == sync
        self.sync = Conn(sync_port) if sync else None

    def texts(self):
        prefix = b""
        while True:
            command, _, payload, _ = self.control.receive()
            if command == 4:
                return prefix
            assert command == 3
            prefix += payload

    def connect_pages(self):
        self.pages = [b""] * self.cpus
        self.threads = []
        for cpu, port in enumerate(self.ports):
            conn = socket.create_connection(("127.0.0.1", port), timeout=60)
            self.threads.append(threading.Thread(target=self.read_pages, args=(cpu, conn)))
            self.threads[-1].start()

    def read_pages(self, cpu, conn):
        parts = []
        while True:
            got = conn.recv(1 << 20)
            if not got:
                break
            parts.append(got)
        self.pages[cpu] = b"".join(parts)

    def outer(self, which, payload=b""):
        self.sync.sock.sendall(message(9, b"none".ljust(16, b"\0") + struct.pack(">I", which), payload))

    def series(self, cpu):
        """One series as trace-cmd's host answers it: each message in two halves. Offset, its guest time, our readings."""
        self.outer(1, struct.pack("=H", cpu))
        stamps, series_id, waits, sent = [], None, [], mono()
        while True:
            command, fixed, payload, whole = self.sync.receive()
            now = mono()
            name, which = struct.unpack(">16sI", fixed)
            assert command == 9 and name.rstrip(b"\0") == b"ptp"
            if which == 1:
                series_id = struct.unpack(">II", payload)[0]
                self.sync.sock.sendall(whole)
            elif which == 2:
                assert struct.unpack(">I", payload)[0] == len(stamps) + 1
                waits.append(now - sent)
                stamps.append(now)
                self.sync.sock.sendall(whole[:32])
                self.sync.sock.sendall(whole[32:])
                sent = mono()
            elif which == 5:
                entries = b"".join(struct.pack(">QI", t, i + 1) for i, t in enumerate(stamps))
                results = struct.pack(">II", series_id, len(stamps)) + entries.ljust(678 * 12, b"\0")
                self.sync.sock.sendall(message(9, b"ptp".ljust(16, b"\0") + struct.pack(">I", 3), results))
            elif which == 4:
                when, offset = struct.unpack(">qq", payload)
                return when, offset, stamps, waits
            else:
                raise AssertionError(f"sync message {which}")

    def close(self):
        self.control.sock.sendall(message(0))

    def finish(self):
        if self.sync:
            self.outer(2)
        command = self.control.receive()[0]
        assert command == 8, f"farewell is {command}"
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "pages without an end"


def save(work, name, host, prefix):
    """What came, as a recorder leaves it that was killed; tandem makes a file of it."""
    spool = f"{work}/{name}.recording"
    os.mkdir(spool)
    files = {"session": f"tandem-session 1\ntrace-id {host.trace_id}\nhost-trace-id 77\ntsc2nsec 0 0 0\n".encode(),
             "prefix": prefix}
    files.update({f"cpu{cpu}": pages for cpu, pages in enumerate(host.pages)})
    for file, text in files.items():
        with open(f"{spool}/{file}", "wb") as out:
            out.write(text)
    subprocess.run([f"{BUILD}/cli/tandem", "record", "--finish", work], check=True, stdout=subprocess.DEVNULL)
    out = subprocess.run(["trace-cmd", "report", "-i", f"{work}/{name}.dat"], capture_output=True, text=True, check=True)
    return out.stdout.splitlines()


def getpids(count):
    for _ in range(count):
        libc.syscall(39)


def instances(pid):
    return [n for n in os.listdir(f"{TRACING}/instances") if n.startswith(f"tandem-{pid}-")]


def wait_for(what, seconds, text):
    for _ in range(seconds * 20):
        if what():
            return
        time.sleep(0.05)
    raise AssertionError(text)


def whole_session(work, port, name):
    host = Host(port, ["-C", "mono", "-b", "512", "-e", "raw_syscalls:sys_enter", "-f", "id == 39", "-f", "id != 40"])
    results = [host.series(cpu) for cpu in range(host.cpus)]
    prefix = host.texts()
    # From here on everything is recorded, connected or not.
    getpids(400)
    host.connect_pages()
    getpids(400)
    host.close()
    results += [host.series(cpu) for cpu in range(host.cpus)]
    host.finish()
    lines = save(work, name, host, prefix)
    mine = [line for line in lines if f"-{os.getpid()} " in line and "NR 39 " in line]
    assert len(mine) >= 800, f"{len(mine)} of 800 events came"
    assert not [line for line in lines if "sys_enter" in line and "NR 39 " not in line], "the filter lets others pass"
    for when, offset, stamps, waits in results:
        assert when + offset in stamps, "the offset is of no probe of ours"
        at = stamps.index(when + offset)
        # The first and the last have no neighbour on one side; their middle is no further off than a round trip.
        before = stamps[at - 1] if at else stamps[at] - max(waits)
        after = stamps[at + 1] if at + 1 < PROBES else stamps[at] + max(waits)
        assert before <= when <= after, f"the middle of probe {at}, {when}, is not between {before} and {after}"
        waits.sort()
        print(f"{name}: offset {offset} ns (truth 0), round trip median {waits[PROBES // 2]} ns")
        # Each held back by Nagle's algorithm and a late acknowledgement takes 40 ms.
        assert waits[PROBES // 2] < 35000000, "the probes are held back"


def is_refused(port, arguments, sync=False):
    conn = Conn(port)
    conn.sock.sendall(request(arguments, sync))
    try:
        command = conn.receive()[0]
    except (Lost, ConnectionError):
        return True
    print("answered with", command)
    return False


def is_dropped(port, raw):
    conn = socket.create_connection(("127.0.0.1", port), timeout=20)
    conn.sendall(raw)
    try:
        return conn.recv(100) == b""
    except ConnectionError:
        return True


def misbehave(work, port, pid):
    long_size = struct.pack(">III", 0xffffffff, 6, 16)
    bad = {
        "garbage": b"GET / HTTP/1.0\r\n\r\n" + b"x" * 64,
        "size": long_size,
        "small": struct.pack(">III", 4, 6, 0),
        "fixed": struct.pack(">III", 30, 6, 4000) + b"\0" * 18,
        "another": message(7, b"\0" * 40),
        "count": message(6, b"\0" * 16, struct.pack(">III", 0, 8, 0x7fffffff) + b"ab\0\0"),
        "end": message(6, b"\0" * 16, struct.pack(">III", 0, 8, 2) + b"ab\0c"),
        "length": message(6, b"\0" * 16, struct.pack(">II", 0, 0xfffffff0) + b"ab\0\0"),
        "twice": message(6, b"\0" * 16, 2 * (struct.pack(">III", 0, 6, 1) + b"a\0")),
    }
    for name, raw in bad.items():
        assert is_dropped(port, raw), f"{name}: not dropped"
    for arguments in (["-e", "irq"], ["-e", "raw_syscalls", "-R", "traceoff"], ["-e", "raw_syscalls", "-O", "../tracing_on"],
                      ["-e", "raw_syscalls", "-O", "trace_printk"], ["-e", "raw_syscalls", "-o", "/etc/passwd"],
                      ["-e", "raw_syscalls", "/bin/sh"], ["-F", "/bin/sh"], ["-e", "raw_syscalls", "-B", "other"],
                      ["-p", "wakeup"], ["-p", "function", "-l", "schedule:stacktrace"], ["-e"], ["-f", "id == 1"], [],
                      ["-e", "raw_syscalls", "-C", "../.."], ["-e", "raw_syscalls", "-M", "../x"],
                      ["-e", "raw_syscalls", "-b", "-1"], ["-e", "raw_syscalls:*", "-f", "nonsense =="]):
        assert is_refused(port, arguments), f"{arguments}: not refused"
    # Hosts that go in the middle: nothing of theirs stays.
    host = Host(port, ["-C", "mono", "-e", "raw_syscalls"])
    host.sync.sock.sendall(b"\xff" * 100)
    host.control.sock.close()
    host = Host(port, ["-C", "mono", "-e", "raw_syscalls"], sync=False)
    host.texts()
    host.connect_pages()
    host.control.sock.close()
    for thread in host.threads:
        thread.join(30)
    wait_for(lambda: not instances(pid), 60, "instances of hosts that have gone are left")
    # Who is not root gets nothing, though it is on this machine.
    code = f"import socket; s = socket.create_connection(('127.0.0.1', {port})); print(len(s.recv(1)))"
    out = subprocess.run(["/usr/bin/python3", "-c", code], user=65534, capture_output=True, text=True, timeout=30)
    assert out.stdout == "0\n" or "reset" in out.stderr, f"another user is served: {out}"


def main():
    if os.getuid() != 0:
        print("SKIP: recording needs root")
        return 77
    if not os.path.exists(f"{TRACING}/trace_clock"):
        print("SKIP: no tracefs")
        return 77
    work = tempfile.mkdtemp()
    # Below those that the kernel gives to whoever connects.
    port = 20000 + os.getpid() % 12000
    log = open(f"{work}/log", "w")
    agent = subprocess.Popen([f"{BUILD}/agent/tandem-agent", "--listen", f"unix:{work}/agent", f"--trace-cmd={port}",
                              "--allow", "raw_syscalls:*", "--max-buffer-kib", "1024"], stderr=log)
    try:
        wait_for(lambda: "Ready" in open(f"{work}/log").read(), 60, "the agent does not start")
        text = open(f"{work}/log").read()
        assert f"tcp:127.0.0.1:{port}\", protocol=trace-cmd" in text, text
        whole_session(work, port, "first")
        # One that runs is not harmed by those that do wrong, nor by those that say nothing.
        host = Host(port, ["-C", "mono", "-b", "512", "-e", "raw_syscalls:sys_enter", "-f", "id == 39"], sync=False)
        prefix = host.texts()
        host.connect_pages()
        # More than there are places: whoever says nothing makes room.
        silent = [Conn(port) for _ in range(60)]
        getpids(300)
        host_instances = instances(agent.pid)
        assert len(host_instances) == 1, host_instances
        with tempfile.TemporaryDirectory() as other:
            whole_session(other, port, "beside")
        host.close()
        host.finish()
        mine = [line for line in save(work, "second", host, prefix) if f"-{os.getpid()} " in line and "NR 39 " in line]
        assert len(mine) >= 1100, f"{len(mine)} of 1100 events came"
        for conn in silent:
            conn.sock.close()
        misbehave(work, port, agent.pid)
        whole_session(work, port, "after")
        wait_for(lambda: not instances(agent.pid), 60, f"instances are left: {instances(agent.pid)}")
        assert agent.poll() is None, "the agent has ended"
        # Killed in the middle of a session: the next start removes what it left.
        host = Host(port, ["-C", "mono", "-e", "raw_syscalls"], sync=False)
        host.texts()
        agent.kill()
        agent.wait()
        assert instances(agent.pid), "the killed agent left no instance, so nothing is tested"
        dead = agent.pid
        agent = subprocess.Popen([f"{BUILD}/agent/tandem-agent", "--listen", f"unix:{work}/agent"], stderr=log)
        wait_for(lambda: not instances(dead), 60, "the killed agent's instance is still there")
        agent.terminate()
        assert agent.wait(60) == 0
    finally:
        if agent.poll() is None:
            agent.kill()
        print(open(f"{work}/log").read(), file=sys.stderr)
        subprocess.run(["rm", "-rf", work], check=False)
    print("ok")
    return 0


sys.exit(main())
