#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem check-ctf finds each fault that it is for, and survives hostile traces. usage: check_ctf.py DATA-DIRECTORY"""
import os
import random
import re
import shutil
import struct
import sys

from convert_case import TANDEM, check_ctf, convert, main, run

DATA = os.path.join(sys.argv[1], "kvm")
HEAD = 4 + 16 + 4 + 8


def fresh(directory):
    out = os.path.join(directory, "out")
    convert(out, os.path.join(DATA, "kvm-tsc.dat"), "guest=" + os.path.join(DATA, "kvm-tsc-l2.dat"))
    return os.path.join(out, "host"), os.path.join(out, "guest")


def edit(path, change):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data = change(data)
    with open(path, "wb") as file:
        file.write(data)


def metadata(trace, old, new):
    def change(data):
        text, count = re.subn(old.encode(), new.encode(), bytes(data), flags=re.S)
        assert count, old
        return text
    edit(os.path.join(trace, "metadata"), change)


def packets(data):
    """Offsets of the packets of a stream file."""
    at = 0
    while at < len(data):
        yield at
        at += struct.unpack_from("<Q", data, at + HEAD + 24)[0] // 8


def faults_of_metadata(directory):
    for old, new, words, code in (
            (r'domain = "kernel";', "", "taken as generic", 0),
            (r"tracer_minor = 13", "tracer_minor = 5", "names of LTTng 2.0", 0),
            (r"\tuuid = \"[^\"]*\";\n\tdescription", "\tdescription", "no uuid", 1),
            (r"freq = 1000000000", "freq = 999999999", "rounded", 0),
            (r"clock \{", "clock { name = other; };\nclock {", "2 clocks", 1),
            (r"uint32_t cpu_id", "uint32_t _cpu_id", "KVM exit statistics", 0),
            (r"uint32_t cpu_id", "uint32_t other", "kernel analysis stays empty", 1),
            (r"/\* CTF 1.8 \*/", "", "released versions refuse", 1),
            (r"_next_tid", "_next_pid", "lacks the field \"next_tid\"", 0),
            (r'"kvm_x86_exit"', '"kvm_exit"', "kvm_x86_exit", 0),
            (r"_target_cpu", "_cpu", "target_cpu", 0),
            (r"id = 3;", "id = 3", "wanted", 1)):
        host, _ = fresh(directory)
        ids = re.findall(r"\tid = (\d+);\n\tstream_id", open(host + "/metadata", encoding="utf-8").read())
        metadata(host, old.replace("id = 3", "id = " + ids[0]), new.replace("id = 3", "id = " + ids[0]))
        said = check_ctf(host, code=code)
        assert words in said, "%s: %s" % (old, said)
        shutil.rmtree(os.path.dirname(host))


def files_that_are_no_ctf_yet(directory):
    del directory
    perf = os.path.join(sys.argv[1], "perf", "guest-mono-sys.data")
    for path, words in ((os.path.join(DATA, "kvm-tsc.dat"), "this is a trace.dat"), (perf, "this is a perf.data")):
        said = check_ctf(path, code=1)
        assert path + ": error: " + words + ": tandem convert makes CTF of it" in said, said


def two_events_with_one_id(directory):
    host, _ = fresh(directory)
    ids = re.findall(r"\tid = (\d+);\n\tstream_id", open(host + "/metadata", encoding="utf-8").read())
    metadata(host, r"\tid = %s;\n\tstream_id" % ids[1], "\tid = %s;\n\tstream_id" % ids[0])
    assert "the same id" in check_ctf(host, code=1)


def faults_of_packets(directory):
    def back(data):
        """The first event packet begins after the second."""
        second = list(packets(data))[1]
        data[second + HEAD:second + HEAD + 8] = struct.pack("<Q", 0)
        return data

    def empty(data):
        first = next(packets(data))
        head = bytearray(data[first:first + HEAD + 44])
        struct.pack_into("<QQ", head, HEAD + 16, len(head) * 8, len(head) * 8)
        return head + data

    def uuid(data):
        data[4] ^= 1
        return data

    def magic(data):
        data[0] ^= 1
        return data

    def cut(data):
        return data[:-10]

    def unknown(data):
        last = list(packets(data))[-1]
        data[last + HEAD + 44:last + HEAD + 46] = b"\xfe\x7f"
        return data

    def order(data):
        """The last packet's first event gets the time at which the packet before began."""
        before, last = list(packets(data))[-2:]
        data[last + HEAD:last + HEAD + 8] = data[before + HEAD:before + HEAD + 8]
        data[last + HEAD + 46:last + HEAD + 50] = data[before + HEAD:before + HEAD + 4]
        return data

    for change, words in ((back, "begins before"), (empty, "follows an empty"), (uuid, "its uuid is not"),
                          (magic, "magic"), (cut, "are left in the file"), (unknown, "in no metadata"),
                          (order, "time goes back")):
        host, _ = fresh(directory)
        edit(host + "/cpu0", change)
        said = check_ctf(host, code=1)
        assert words in said, "%s: %s" % (change.__name__, said)
        shutil.rmtree(os.path.dirname(host))


def faults_between_machines(directory):
    host, guest = fresh(directory)
    check_ctf(host, guest)
    uuid = re.search(r'\tuuid = "([^"]*)";\n\tdescription', open(host + "/metadata", encoding="utf-8").read())[1]
    metadata(guest, r"\tuuid = \"[^\"]*\";\n\tdescription", '\tuuid = "%s";\n\tdescription' % uuid)
    assert "both count as one" in check_ctf(host, guest, code=1)
    metadata(guest, r'hostname = "[^"]*"', 'hostname = "l1"')
    metadata(guest, r"\toffset = 0", "\toffset = 5")
    assert "the offsets differ by 5 ns" in check_ctf(host, guest, code=1)


def a_guest_whose_host_end_comes_too_early(directory):
    host, guest = fresh(directory)
    metadata(guest, r"\toffset = 0", "\toffset = 1000000000")
    assert "is not later than" in check_ctf(host, guest, code=1)
    assert "no trace here has the host's end" in check_ctf(guest)


def an_index_that_is_stale(directory):
    host, _ = fresh(directory)
    os.mkdir(host + "/index")
    with open(host + "/cpu0", "rb") as file:
        data = file.read()
    entries = b"".join(struct.pack(">7Q", at, *(struct.unpack_from("<Q", data, at + HEAD + 24) * 1), 0, 0, 0, 0, 0)
                       for at in packets(data))
    with open(host + "/index/cpu0.idx", "wb") as file:
        file.write(struct.pack(">4I", 0xc1f1dcc1, 1, 0, 56) + entries)
    check_ctf(host)
    with open(host + "/index/cpu0.idx", "r+b") as file:
        file.seek(16 + 56)
        file.write(struct.pack(">Q", 12345))
    assert "stale" in check_ctf(host, code=1)


def hostile_traces_end_with_a_finding(directory):
    """Bytes flipped anywhere: always an answer, never a crash."""
    host, _ = fresh(directory)
    good = {name: open(os.path.join(host, name), "rb").read() for name in os.listdir(host)}
    random.seed(5)
    for name in ("metadata", "cpu0"):
        for _ in range(60):
            data = bytearray(good[name])
            for _ in range(random.choice((1, 3, 30))):
                data[random.randrange(min(len(data), 20000))] = random.choice((0, 255, 64, random.randrange(256)))
            with open(os.path.join(host, name), "wb") as file:
                file.write(data)
            done = run(TANDEM, "check-ctf", host)
            assert done.code in (0, 1), "exit %d: %s" % (done.code, done.err)
        with open(os.path.join(host, name), "wb") as file:
            file.write(good[name])


main([faults_of_metadata, files_that_are_no_ctf_yet, two_events_with_one_id, faults_of_packets, faults_between_machines,
      a_guest_whose_host_end_comes_too_early, an_index_that_is_stale, hostile_traces_end_with_a_finding])
