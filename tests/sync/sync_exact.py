#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What KVM tells of its guests' TSCs, in a debugfs made up in a mount namespace: taken where exactly one VM fits, else told.

Both ends are this machine, so the true offset is 0 and a VM of offset 0 is the guest.
"""
import os
import subprocess
import sys
import tempfile
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

        # A migration, or a write to the TSC, in the middle: what was read at the start holds no more.
        make({"100-11": [0]})
        method, _, errors = run(out, agent, "changed", 0,
                                during=lambda: write("100-11", "vcpu0", "tsc-offset", 77_000_000))
        assert method == "bounded" and "1 VM changed" in errors, errors
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
