#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Print formats that libtraceevent does not survive: the event keeps its fields, the others their texts, and nothing beyond a
record is ever shown. The kernel's own formats all keep their texts."""
import glob
import os
import random
import re
import struct
import sys
import tempfile

from graph import BUILD, check, finish, run

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "support"))
from tracedat_maker import SWITCH, Maker, switch_body

TANDEM = os.path.join(BUILD, "cli", "tandem")
FIELDS = [("__data_loc char[] text", 8, 4, 0), ("int n", 12, 4, 1), ("unsigned char hex[4]", 16, 4, 0)]
BODY = struct.pack("<II4s", 4 << 16 | 20, 7, b"\x01\x02\x03\x04") + b"abc\0"
SHOWN = 'text="abc" n=7 hex=[1, 2, 3, 4]'
WILD = struct.pack("<II4s", 0xffffffff, 0x7fffffff, b"\x01\x02\x03\x04")

# What is behind "print fmt: ", and the text; None: it may be had, but what it is is the library's matter.
FORMATS = [
    ('"%s %d", __get_str(text), REC->n', "abc 7"),
    ('"%d", ' + "(" * 20000 + "REC->n" + ")" * 20000, SHOWN),
    ('"%d", ' + "(" * 50 + "REC->n" + ")" * 50, "7"),
    ('"%d", ' + "!" * 40000 + "REC->n", SHOWN),
    ('"%d", ' + "REC->n ? " * 5000 + "1" + " : 0" * 5000, SHOWN),
    ('"%d", ' + "1 + " * 20000 + "1", SHOWN),
    ('"%999999999d", REC->n', SHOWN),
    ('"%" "999999999d", REC->n', SHOWN),
    ('"%*d", 2000000000, REC->n', SHOWN),
    ('"%.999999999d", REC->n', SHOWN),
    ('"%.*s", 2, __get_str(text)', None),
    ('"%d", 1 / 0', SHOWN),
    ('"%d", REC->n % (2 - 2)', SHOWN),
    ('"%d", 5 / (REC->n - 7)', None),
    ('"%d", REC->n / 2', "3"),
    ('"%d", 700 / REC->n', "100"),
    ('"%s", __print_symbolic(REC->n, { 1 / 0, "x" })', SHOWN),
    ('"%s", __print_symbolic(REC->n, { 7, "seven" })', "seven"),
    ('"%s", __print_hex(__get_dynamic_array(text), 100000)', SHOWN),
    ('"%s", __print_hex(REC->hex, REC->n)', None),
    ('"%s", __print_hex(REC->hex, 4)', "01 02 03 04"),
    ('"%s", __print_array(__get_dynamic_array(text), 1000000, 8)', SHOWN),
    ('"%s", __print_array(__get_dynamic_array(text), __get_dynamic_array_len(text) / 1, 1)', None),
    ('"%d", ((u32 *)__get_dynamic_array(text))[500000000]', SHOWN),
    ('"%d", scsi_trace_parse_cdb(p, 12345, 6)', SHOWN),
    ('"%d", __le16_to_cpup(REC->n)', SHOWN),
    ('"%s", __print_flags(REC->n, "|", {', SHOWN),
    ('"%d %d", ENUM_X, sizeof(struct foo)', None),
    ('"%s', None), ("", None), ('"%d", REC->', None), ('"%d", REC->nosuch', None),
]


def view(maker, directory):
    path = os.path.join(directory, "made.dat")
    maker.write(path)
    result = run(TANDEM, "view", path, timeout=120)
    check(result.returncode == 0, f"view ends with {result.returncode}: {result.stderr[-300:]}")
    return [line.split(": ", 1) for line in result.stdout.splitlines()]


def with_format(maker, system, text, print_format):
    maker.systems.setdefault(system, []).append(text.replace(b'print fmt: ""', b"print fmt: " + print_format))


with tempfile.TemporaryDirectory() as work:
    # One file with all of them: none may take the text of another with it.
    maker, records = Maker(), []
    for number, (text, _) in enumerate(FORMATS):
        other = Maker()
        other.format("odd", "odd%d" % number, 400 + number, FIELDS)
        with_format(maker, "odd", other.systems["odd"][0], text.encode())
        records += [(1000 + 2 * number, maker.record(400 + number, 7, BODY)),
                    (1001 + 2 * number, maker.record(400 + number, 7, WILD))]
    maker.add_cpu(0, records)
    shown = view(maker, work)
    check(len(shown) == 2 * len(FORMATS), f"{len(shown)} of {2 * len(FORMATS)} events")
    for (text, wanted), (head, got) in zip(FORMATS, shown[::2]):
        check(wanted is None or got.strip() == wanted, f"{text[:60]}: {got[:100]!r}, wanted {wanted!r}")

    # Nothing that is behind a record is shown: the next one holds what must not be seen.
    maker = Maker()
    other = Maker()
    other.format("odd", "odd", 400, FIELDS)
    with_format(maker, "odd", other.systems["odd"][0], b'"%s %s", __get_str(text), __print_hex(REC->hex, REC->n)')
    maker.format("sched", "sched_switch", 300, SWITCH)
    secret = maker.record(300, 1, switch_body(maker, ("SECRETSECRET", 1), ("b", 2)))
    near = struct.pack("<II4s", 60 << 16 | 30, 200, b"\x01\x02\x03\x04")
    maker.add_cpu(0, [(1, secret), (2, maker.record(400, 7, near)), (3, secret)])
    odd = [got for head, got in view(maker, work) if head.endswith("odd")]
    check(len(odd) == 1 and "SECRET" not in odd[0] and "53 45 43" not in odd[0], f"shown from beyond a record: {odd}")

    # The formats of this kernel: each with a record of zeros, of ones, of noise; and all of them damaged.
    formats = sorted(glob.glob("/sys/kernel/tracing/events/*/*/format"))
    if not formats:
        print("SKIP: this machine's event formats cannot be read")
    chance = random.Random(11)
    pieces = [b"(", b")", b"[", b"]", b"{", b"}", b'"', b",", b"*", b"/", b"%", b"?", b":", b"REC->", b"__print_symbolic(",
              b"__get_str(", b"__get_dynamic_array(", b"__print_hex(", b"__get_bitmask(", b"%s", b"%d", b"sizeof(", b"'"]
    for damaged in (False, True):
        maker, records = Maker(), []
        for name in formats:
            with open(name, "rb") as file:
                text = file.read()
            at = text.find(b"print fmt:")
            if name.split("/")[-3] == "ftrace" or at < 0:
                continue
            if damaged:
                tail = bytearray(text[at + 10:])
                for _ in range(chance.randrange(1, 5)):
                    place = chance.randrange(len(tail) + 1)
                    if chance.random() < 0.5:
                        tail[place:place] = chance.choice(pieces)
                    else:
                        del tail[place:place + chance.randrange(1, 12)]
                text = text[:at + 10] + bytes(tail)
            maker.systems.setdefault(name.split("/")[-3], []).append(text)
            number = int(re.search(rb"ID: (\d+)", text)[1])
            size = max(int(a) + int(b) for a, b in re.findall(rb"offset:(\d+);\s*size:(\d+)", text))
            for fill in (b"\0", b"\1", b"\xff"):
                records.append((1000 + len(records), maker.record(number, 7, fill * (size - 8) + b"abc\0" * 10)))
        maker.add_cpu(0, records)
        if formats:
            shown = view(maker, work)
            check(len(shown) >= len(records), f"{len(shown)} lines for {len(records)} records of this kernel's formats")
finish()
