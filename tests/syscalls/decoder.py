#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The length decoder against a disassembler, for every instruction of libc, the loader and other objects: a length that it
gives is right, it sees each jump and each reference by distance, and it knows nearly all that compilers put into code."""
import os
import re
import subprocess
import sys

decode = os.path.join(os.environ["TANDEM_BUILD"], "tests/syscalls/decode_insns")
# Of the instructions of the object, how many must be known, in percent: the C library's vector functions are not.
objects = [("/lib/x86_64-linux-gnu/libc.so.6", 80), ("/lib64/ld-linux-x86-64.so.2", 90), ("/lib/x86_64-linux-gnu/libz.so.1", 90)]
CONTROL = re.compile(r"^(?:bnd |notrack |rep |repz |data16 |cs |ds |lock |rex\S* )*"
                     r"(j\w+|call\w*|ret\w*|loop\w*|syscall|sysenter|int3?|iret\w*|hlt|ud[012]|xbegin)\b")
ENDS = re.compile(r"^(?:bnd |notrack |rep |repz |data16 |cs |ds )*(jmp\w*|ret\w*|hlt|ud2|iret\w*)\b")
faults = 0


def fault(path, address, text, what):
    global faults
    faults += 1
    if faults <= 20:
        print(f"{path}: {address:x}: {text}: {what}")


for path, least in objects:
    if not os.path.exists(path):
        continue
    listing = subprocess.run(["objdump", "-d", "-w", path], capture_output=True, text=True, check=True).stdout
    insns = []
    for line in listing.splitlines():
        match = re.match(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(.*)$", line)
        if match and "(bad)" not in match.group(3):
            insns.append((int(match.group(1), 16), bytes.fromhex(match.group(2)), match.group(3).strip()))
    answers = subprocess.run([decode, path], input="".join("%x\n" % a for a, _, _ in insns), capture_output=True, text=True,
                             check=True).stdout.splitlines()
    if len(answers) != len(insns) or not insns:
        sys.exit(f"{path}: {len(answers)} answers for {len(insns)} instructions")
    known = 0
    for (address, code, text), answer in zip(insns, answers):
        length, rip_at, control, ends = map(int, answer.split())
        # A prefix that objdump shows as an instruction of its own belongs to what follows.
        if not length or re.fullmatch(r"(data16|cs|ds|es|ss|fs|gs|rex\S*|repz?|repnz|lock|bnd|addr32|notrack)", text):
            continue
        known += 1
        if length != len(code):
            fault(path, address, text, f"{length} bytes, {len(code)} by objdump")
            continue
        if bool(CONTROL.match(text)) != bool(control):
            fault(path, address, text, "is " + ("" if control else "not ") + "taken for a jump, call or end")
        if bool(ENDS.match(text)) != bool(ends):
            fault(path, address, text, "is " + ("" if ends else "not ") + "taken for an end")
        if ("(%rip)" in text) != bool(rip_at):
            fault(path, address, text, "a reference by distance at %d" % rip_at)
        elif rip_at:
            target = re.search(r"# ([0-9a-f]+)", text)
            distance = int.from_bytes(code[rip_at:rip_at + 4], "little", signed=True)
            if target and (address + len(code) + distance) % 2**64 != int(target.group(1), 16):
                fault(path, address, text, "the distance does not stand at %d" % rip_at)
    share = 100 * known / len(insns)
    print(f"{path}: {len(insns)} instructions, {share:.1f} % known, all as objdump has them" if not faults else
          f"{path}: {len(insns)} instructions, {faults} faults so far")
    if share < least:
        fault(path, 0, "all", f"only {share:.1f} % known, {least} wanted")
sys.exit(1 if faults else 0)
