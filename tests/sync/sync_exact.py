#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What KVM tells of its guests' TSCs, in a debugfs made up in a mount namespace: taken where exactly one VM fits, else told.

Both ends are this machine, so the true offset is 0 and a VM of offset 0 is the guest.
"""
import ctypes
import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import tandem_wire as t

DEBUG = "/sys/kernel/debug"
IN_SPACE = "TANDEM_EXACT_SPACE"


def write(vm, vcpu, name, value):
    directory = os.path.join(DEBUG, "kvm", vm, vcpu)
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, name), "w") as f:
        f.write(f"{value}\n")


def make(vms):
    """{VM: [offset, or (offset, ratio, bits), of each vCPU]}"""
    subprocess.run(["rm", "-rf", os.path.join(DEBUG, "kvm")], check=True)
    os.makedirs(os.path.join(DEBUG, "kvm", "not-a-vm", "vcpu0"))
    for vm, vcpus in vms.items():
        for number, vcpu in enumerate(vcpus):
            offset, *scaling = vcpu if isinstance(vcpu, tuple) else (vcpu,)
            write(vm, f"vcpu{number}", "tsc-offset", offset)
            for name, value in zip(("tsc-scaling-ratio", "tsc-scaling-ratio-frac-bits"), scaling):
                write(vm, f"vcpu{number}", name, value)


def run(out, agent, name, want, *options, during=None):
    directory = os.path.join(out, name)
    process = subprocess.Popen([t.TANDEM, "sync", "-o", directory, "--guest", f"g=unix:{agent.path}", "-C", "x86-tsc", *options,
                                "--", "sleep", "2.2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if during:
        time.sleep(1)
        during()
    told, errors = process.communicate(timeout=60)
    assert process.returncode == want, f"{name}: status {process.returncode}\n{told}{errors}"
    lines = open(os.path.join(directory, "g.corrections")).read().splitlines()
    method = next(line.split()[1] for line in lines if line.startswith("method "))
    t.say(f"{name}: {method}; " + (errors.strip().splitlines() or [""])[-1])
    t.Corrections(os.path.join(directory, "g.corrections")).check_identity()
    return method, lines, errors


def make_rdtsc():
    """The TSC, which Python cannot read by itself."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("0f31" "48c1e220" "4809d0" "c3"))  # rdtsc; shl rdx, 32; or rax, rdx; ret
    function = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    function.code = code
    return function


class Guest:
    """An agent in a guest whose TSC is this machine's and an offset, which its hypervisor may change at any time."""

    def __init__(self, directory, unit_hz):
        self.path = os.path.join(directory, "guest")
        self.unit_hz, self.rdtsc = unit_hz, make_rdtsc()
        self.offset = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            sock, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        peer = t.Peer(sock, client=False)
        peer.greet()
        session = struct.unpack_from("<I", peer.read_frame()[1], 4)[0]
        peer.send(t.OPENED, struct.pack("<II", session, 0) +
                  f"boot guest\nclock x86-tsc\nraw x86-tsc\nunit-hz {self.unit_hz}\n".encode())
        while got := peer.read_frame():
            now = self.rdtsc() + self.offset
            kind, body, _ = got
            if kind == t.BURST:
                peer.send(t.READY, body[:4] + bytes(4))
            elif kind == t.EXCHANGE:
                sequence, h1 = struct.unpack_from("<QQ", body, 16)
                peer.send(t.EXCHANGE, t.message(2, session, sequence, h1=h1, g2=now, g3=now))
            elif kind == t.QUERY:
                peer.send(t.NOTES)
        sock.close()


def apply(corrections, guest):
    """(host, doubt) of a guest reading."""
    lines = [line.split() for line in corrections]
    segments = []
    for line in lines:
        if line[0] == "segment":
            segments.append((int(line[2]), line[1], []))
        elif line[0] == "k":
            segments[-1][2].append(tuple(map(int, line[1:])))
    start, kind, knots = [segment for segment in segments if segment[0] <= guest][-1]
    a, b = next(((a, b) for a, b in zip(knots, knots[1:]) if guest <= b[0]), knots[-2:])
    in_doubt = any(int(line[1]) <= guest <= int(line[2]) for line in lines if line[0] == "doubt")
    return a[1] + (guest - a[0]) * (b[1] - a[1]) // (b[0] - a[0]), in_doubt


def changes(out, hz):
    """The hypervisor writes the guest's TSC while it is synchronised: each of its times is exact on its own."""
    guest = Guest(out, hz)
    for name, steps in (("ahead", [3 * hz]), ("twice", [3 * hz, 10 * hz]), ("by little", [300]), ("back", [-300])):
        guest.offset = 0
        make({"100-11": [0, 7]})
        directory = os.path.join(out, "change-" + name)
        process = subprocess.Popen([t.TANDEM, "sync", "-o", directory, "--guest", f"g=unix:{guest.path}", "-C", "x86-tsc",
                                    "--", "sleep", str(2.3 + 2 * len(steps))],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        asked = []  # (guest reading, host reading, sure)
        for offset in [0, *steps]:
            if offset:
                time.sleep(0.3)
                guest.offset = offset
                for number in (1, 0):
                    write("100-11", f"vcpu{number}", "tsc-offset", offset + 7 * number)
            for _ in range(17):
                time.sleep(0.1)
                host = guest.rdtsc()
                asked.append((host + guest.offset, host))
        told, errors = process.communicate(timeout=60)
        assert process.returncode == 0, f"{name}: status {process.returncode}\n{told}{errors}"
        lines = open(os.path.join(directory, "g.corrections")).read().splitlines()
        assert "method exact" in lines, f"{name}: {told}{errors}"
        kinds = [line.split()[1] for line in lines if line.startswith("segment ")]
        assert kinds == ["start"] + ["step"] * len(steps), f"{name}: {lines}"
        assert "cpu 1 -7 0" in lines, lines
        doubted = 0
        for reading, host in asked:
            got, in_doubt = apply(lines, reading)
            doubted += in_doubt
            assert in_doubt or abs(got - host) <= 1, f"{name}: {reading} is put to {got}, the truth is {host}\n{lines}"
            assert abs(got - host) <= 301, f"{name}: {reading} is put to {got}, the truth is {host}\n{lines}"
        assert doubted == 0 if steps[0] > hz else 0 < doubted < len(asked) / 2, (name, doubted, lines)
        t.say(f"changed {name}: exact, segments {', '.join(kinds)}; {doubted} of {len(asked)} readings in doubt")


def main():
    if os.uname().machine != "x86_64":
        print("SKIP: no TSC on this machine")
        sys.exit(77)
    if not os.environ.get(IN_SPACE):
        done = subprocess.run(["unshare", "-m", "sh", "-c",
                               f"mount -t tmpfs none {DEBUG} && exec {sys.executable} {os.path.abspath(__file__)}"],
                              env=os.environ | {IN_SPACE: "1"}, capture_output=True, text=True)
        print(done.stdout, end="")
        if "unshare" in done.stderr or "mount:" in done.stderr:
            print("SKIP: no mount namespace is allowed here")
            sys.exit(77)
        sys.stderr.write(done.stderr)
        sys.exit(done.returncode)

    agent = t.Agent()
    with tempfile.TemporaryDirectory(prefix="tandem-exact-") as out:
        make({"100-11": [0, 0]})
        method, lines, _ = run(out, agent, "one VM", 0)
        assert method == "exact" and not [line for line in lines if line.startswith("cpu ")], lines
        assert run(out, agent, "not asked", 0, "--no-kvm")[0] == "bounded"

        # Scaled by one, in fractions of AMD and of Intel; a negative offset is another machine's.
        for bits in (32, 48):
            make({"100-11": [(0, 1 << bits, bits)], "101-12": [-5_000_000_000]})
            assert run(out, agent, f"scaled by 2^{bits}, beside another VM", 0)[0] == "exact"

        # vCPUs that differ have lines of their own.
        make({"100-11": [0, 300]})
        method, lines, _ = run(out, agent, "two vCPUs", 0)
        assert method == "exact" and "cpu 1 -300 0" in lines, lines

        make({"100-11": [4_000_000_000]})
        method, _, errors = run(out, agent, "contradiction", 3)
        assert method == "bounded" and "contradicts the exchanges" in errors, errors

        make({"100-11": [0], "101-12": [2]})
        method, _, errors = run(out, agent, "two that fit", 3)
        assert method == "bounded" and "several VMs" in errors, errors

        make({"100-11": [0], "101-12": [0]})
        assert run(out, agent, "two that are the same", 0)[0] == "exact"

        # A change that the guest's clock did not make: this VM is none that may be meant.
        make({"100-11": [0]})
        method, _, errors = run(out, agent, "changed", 3,
                                during=lambda: write("100-11", "vcpu0", "tsc-offset", 77_000_000))
        assert method == "bounded" and "contradicts the exchanges" in errors, errors
        make({"100-11": [0]})
        method, _, errors = run(out, agent, "ended", 0, during=lambda: subprocess.run(["rm", "-r", os.path.join(DEBUG, "kvm", "100-11")]))
        assert method == "bounded" and "1 VM of this machine ended" in errors, errors
        # One of its vCPUs only: no line for all of them.
        make({"100-11": [0, 0]})
        method, _, errors = run(out, agent, "one vCPU changed", 0,
                                during=lambda: write("100-11", "vcpu1", "tsc-offset", 1000))
        assert method == "bounded", errors
        hz = int(next(line for line in lines if line.startswith("host ")).split()[-1])
        changes(out, hz)
        # Another VM that ends is no matter of this guest.
        make({"100-11": [0], "101-12": [-5_000_000_000]})
        method, _, errors = run(out, agent, "another one ends", 0, during=lambda: subprocess.run(["rm", "-r", os.path.join(DEBUG, "kvm", "101-12")]))
        assert method == "exact", errors

        # What is no number, or cut short, is no VM.
        make({"100-11": [""], "101-12": ["x"], "102-1": [(0, 0, 0)]})
        assert run(out, agent, "rubbish beside one", 0)[0] == "exact"
        make({"100-11": [""], "101-12": ["x"]})
        assert run(out, agent, "rubbish", 0)[0] == "bounded"
    agent.stop()


main()
