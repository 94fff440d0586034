#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Field values are those of "trace-cmd report -R", for a sample of each kind of event in every file."""
import collections
import glob
import os
import re
import sys

import bt2

from graph import DATA, check, event_of, finish, messages, has_trace_cmd, report, to_ns

if not has_trace_cmd():
    print("SKIP: trace-cmd is not installed")
    sys.exit(77)

line = re.compile(r"\s*(?:\S+:\s+)?.*?-(\d+)\s+\[(\d+)\]\s*(\d+(?:\.\d+)?): +(\S+): *(.*)$")
SAMPLES = 20
MASK = (1 << 64) - 1
KERNEL_ADDRESS = 0xffff800000000000


def number(text):
    """"12", "-1", "0x1f", "001" """
    match = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|\d+)", text)
    if not match:
        return None
    value = int(match.group(2), 16 if match.group(2)[:2] in ("0x", "0X") else 10)
    return (-value if match.group(1) else value) & MASK


def same_stack(got, text):
    """The report shows the 8 entries of the format, whatever the record holds; we show what it holds."""
    return same_array(got[:8], text) if len(got) >= 8 else same_array(got, text[:text.find("[") + 1 + 32 * len(got) - 2] + "]")


def same_array(got, text):
    """ARRAY[01, 02]: the bytes of our elements, least significant first on the machines of the data."""
    found = re.fullmatch(r"ARRAY\[(.*)\]", text.strip())
    if not found:
        return False
    shown = bytes(int(byte, 16) for byte in found.group(1).split(",") if byte.strip())
    if not got:
        return not shown
    size, left = divmod(len(shown), len(got))
    return left == 0 and shown == b"".join((value & MASK).to_bytes(8, "little")[:size] for value in got)


def same(name, got, text):
    """Whether a value is what the report shows: numbers by value, texts as they are, arrays element by element."""
    if isinstance(got, str):
        return got.rstrip("\n") == text.strip().rstrip("\n")
    if isinstance(got, list):
        return (same_stack if name == "caller" else same_array)(got, text)
    if isinstance(got, int):
        if KERNEL_ADDRESS <= got and number(text.split()[0]) is None:
            return True  # shown as the name of a function
        want = number(text.split()[0]) if text.split() else None
        return want is not None and (got & MASK == want or -2**31 <= got < 0 and got & 0xffffffff == want)
    return True


def pairs(fields, rest):
    """The report's "name=value" pairs, cut where the next of our names begins."""
    at = []
    for name in fields:
        match = re.search(r"(?:^|[ ,])" + re.escape(name) + r"=", rest)
        if match:
            at.append((match.start(), match.end(), name))
    at.sort()
    for index, (_, begin, name) in enumerate(at):
        end = at[index + 1][0] if index + 1 < len(at) else len(rest)
        yield name, rest[begin:end]


kinds, compared = set(), collections.Counter()
for path in sorted(glob.glob(DATA + "/*/*.dat")):
    if "zlib" in path:
        continue  # Debian's trace-cmd has no zlib
    want = collections.defaultdict(list)
    for text in report("-R", "-t", "-i", path):
        match = line.match(text)
        if match:
            tid, cpu, time, event, rest = match.groups()
            want[(to_ns(time), int(cpu), int(tid), event)].append(rest)
    taken = collections.Counter()
    for message in messages([path]):
        if type(message) is not bt2._EventMessageConst or taken[message.event.name] >= SAMPLES:
            continue
        event = event_of(message)
        lines = want.get((event.ns, event.cpu, event.tid, event.name))
        if not lines or len(lines) != 1:
            continue
        taken[event.name] += 1
        for name, text in pairs(event.fields, lines[0]):
            if event.name.startswith("funcgraph") and re.fullmatch(r"[0-9a-f]+", text.strip()):
                text = "0x" + text.strip()  # hexadecimal there, without saying so
            compared[event.name] += 1
            check(same(name, event.fields[name], text),
                  f"{os.path.basename(path)}: {event.name}.{name} at {event.ns} is {event.fields[name]!r}, not {text!r}")
    kinds |= set(taken)
print("kinds", len(kinds), "values", sum(compared.values()))
check(len(kinds) >= 40, f"only {len(kinds)} kinds of events")
finish()
