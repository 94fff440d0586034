#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The sites that would be patched, against a disassembler: nothing begins or ends inside an instruction, no jump of the
object leads into the changed bytes, and of libc and the loader only the signal restorers are left out."""
import os
import re
import subprocess
import sys

dump = os.path.join(os.environ["TANDEM_BUILD"], "tests/syscalls/dump_sites")
objects = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]
others = ["/lib/x86_64-linux-gnu/libasan.so.8", "/lib/x86_64-linux-gnu/liburing.so.2", "/bin/busybox"]
faults = 0
for path in objects + [other for other in others if os.path.exists(other)]:
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    starts, calls, targets = set(), set(), set()
    for line in text.splitlines():
        match = re.match(r"^\s*([0-9a-f]+):\t(\S+)\s*([0-9a-f]+)?\b", line)
        if match:
            address = int(match.group(1), 16)
            starts.add(address)
            if match.group(2) == "syscall":
                calls.add(address)
            if (match.group(2).startswith("j") or match.group(2).startswith("call")) and match.group(3):
                targets.add(int(match.group(3), 16))
    patched = set()
    for line in subprocess.run([dump, path], capture_output=True, text=True, check=True).stdout.splitlines():
        address, way, start, end = line.split()
        address, start, end = int(address, 16), int(start, 16), int(end, 16)
        if way == "0" or way == "1":
            continue
        if way != "hop":
            patched.add(address)
            if address not in calls or end not in starts:
                print(f"{path}: {address:x} way {way}: not an instruction of the disassembler")
                faults += 1
        if start not in starts:
            print(f"{path}: {address:x} way {way}: begins inside an instruction")
            faults += 1
        inside = [t for t in targets if start < t < end and not (way == "5" and t == address)]
        # In place: the syscall itself stays, so a jump to it is right.
        inside = [t for t in inside if not (t == address and way in ("2", "5"))]
        if inside:
            print(f"{path}: {address:x} way {way}: a jump leads into it, to {inside[0]:x}")
            faults += 1
    left = calls - patched
    print(f"{path}: {len(patched)} of {len(calls)} sites")
    if path in objects and len(left) > 1:
        print(f"{path}: left alone: {', '.join('%x' % a for a in sorted(left))}")
        faults += 1
sys.exit(1 if faults else 0)
