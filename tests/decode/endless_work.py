#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""trace.dat files that are short and ask for hours of work: they are read in moments, and what is passed over is told."""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "support"))
from tracedat_maker import Maker  # noqa: E402

TANDEM = os.path.join(os.environ["TANDEM_BUILD"], "cli", "tandem")
ONE = struct.pack("<I", 1)


def run(*arguments):
    done = subprocess.run((TANDEM, *arguments), stdin=subprocess.DEVNULL, capture_output=True, timeout=250, text=True)
    return done.returncode, done.stdout + done.stderr


def maker(count=1, **how):
    made = Maker(**how)
    made.format("odd", "odd", 300, [("u32 a", 8, 4, 0)])
    made.add_cpu(0, [(1000 + i, made.record(300, 7, ONE)) for i in range(count)])
    return made


def save(path, data):
    with open(path, "wb") as file:
        file.write(data)
    return path


def instances_that_share_a_table(path, count=400, cpus=8000):
    """Version 6: each of them would have as many streams as the machine has CPUs."""
    made = maker(version=6)
    made.add_cpu(cpus - 1, [])
    names = [b"i%03d\0" % i for i in range(count)]
    made.options = [(3, struct.pack("<Q", 0) + name) for name in names]
    data = bytearray(made.version6())
    page = data.rindex(made.cpus[0])
    table = len(data)
    data += b"flyrecord\0" + struct.pack("<QQ", page, 4096) * cpus + struct.pack("<Q", 6) + b"[mono]"
    for name in names:
        at = data.index(struct.pack("<HIQ", 3, 8 + len(name), 0) + name)
        struct.pack_into("<Q", data, at + 6, table)
    code, out = run("info", save(path, data))
    assert code == 3 and "another buffer's table of data lies there" in out, (code, out[-500:])


def cpus_that_share_their_data(path, cpus=4001):
    made = maker(100000, version=6)
    made.add_cpu(cpus - 1, [])
    data = bytearray(made.version6())
    table = data.index(b"flyrecord\0") + 10
    first = data[table:table + 16]
    data[table:table + 16 * cpus] = first * cpus
    code, out = run("info", save(path, data))
    assert code == 3 and "is claimed by others too" in out and "100000 events" in out, (code, out[-500:])


def guests_of_hundreds_of_thousands_of_cpus(path):
    host, guest = maker(), maker()
    for number in range(40):
        cpus = b"".join(struct.pack("<Ii", vcpu, 2 + number * 8000 + vcpu) for vcpu in range(8000))
        host.options.append((13, b"g%d\0" % number + struct.pack("<QI", 5, 8000) + cpus))
    host.options.append((11, struct.pack("<Q", 4)))
    guest.options = [(11, struct.pack("<Q", 5)),
                     (12, struct.pack("<QIII", 4, 0, 1, 1) + struct.pack("<qqqq", 1, 5, 1, 0))]
    host.write(path)
    guest.write(path + ".guest")
    code, out = run("convert", "-o", path + ".out", path, path + ".guest")
    assert code == 0, (code, out[-500:])


with tempfile.TemporaryDirectory() as work:
    failed = 0
    for case in (instances_that_share_a_table, cpus_that_share_their_data, guests_of_hundreds_of_thousands_of_cpus):
        try:
            case(os.path.join(work, case.__name__))
            print("ok   ", case.__name__)
        except (AssertionError, subprocess.TimeoutExpired) as fault:
            failed += 1
            print("FAIL ", case.__name__, ":", str(fault)[:1000])
sys.exit(1 if failed else 0)
