#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""perf.data of every shape, written here, read by the decoder: the records must be exactly those written.

usage: perf_shapes.py RECORD_DUMP
"""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import perf_writer as pw  # noqa: E402

DUMP = sys.argv[1]
USUAL = pw.IP | pw.TID | pw.TIME | pw.CPU | pw.PERIOD | pw.RAW | pw.IDENTIFIER
FIELDS = [("int value", 8, 4, 1), ("u64 word", 16, 8, 0)]
TEXTS = [("demo", [pw.format_text("one", 301, FIELDS), pw.format_text("two", 302, FIELDS)])]
WORK = tempfile.mkdtemp(prefix="tandem-perf-")


def payload(writer, event_id, pid, value):
    return writer.common(event_id, pid) + writer.pack("iIq", value, 0, value * 3)


def dump(path, *options, stdin=None, status=0):
    done = subprocess.run([DUMP, *options, path], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120)
    text = done.stdout.decode("utf-8", "surrogateescape")
    assert done.returncode == status, (path, done.returncode, done.stderr.decode(), text[-500:])
    lines = [line.split(" ") for line in text.splitlines()]
    return {
        "info": {line[1]: line[2] for line in lines if line[0] == "I"},
        "records": [line[1:] for line in lines if line[0] == "R"],
        "lost": [line[1:] for line in lines if line[0] == "L"],
        "items": [line for line in lines if line[0] in "RL"],
        "faults": [" ".join(line[1:]) for line in lines if line[0] == "F"],
        "stderr": done.stderr.decode(),
    }


class Case:
    """Two tracepoints on two CPUs, with what must come out of them."""

    def __init__(self, big=False, bits=USUAL, count=2000, **attr_options):
        chain = bits & pw.CALLCHAIN
        self.attrs = [pw.Attr(301, bits, ids=(11, 12), name="demo:one", **attr_options),
                      pw.Attr(302, bits, ids=(21, 22), name="demo:two", **attr_options)]
        self.writer = pw.Writer(self.attrs, big)
        self.samples, self.wanted = [], {0: [], 1: []}
        for i in range(count):
            cpu, which = (i // 50) % 2, i % 2
            attr, event_id = self.attrs[which], 301 + which
            time = 1000 + 10 * i
            addresses = [0xffffffffffffff80, 0xffff0000 + i, i] if chain else []
            body = payload(self.writer, event_id, 100 + i % 3, i - 7)
            self.samples.append(self.writer.sample(
                attr, cpu=cpu, time=time, pid=90, tid=100 + i % 3, payload=body, event=attr.ids[cpu],
                chain=addresses))
            padded = (len(body) + 4 + 7) // 8 * 8 - 4
            self.wanted[cpu].append([
                str(cpu), str(time), "demo:" + ("one", "two")[which], "90", str(100 + i % 3),
                ",".join("%x" % word for word in addresses) or "-", body.ljust(padded, b"\0").hex()])

    def features(self, **options):
        return self.writer.features(TEXTS, **options)

    def check(self, got, records=None):
        wanted = self.wanted[0] + self.wanted[1] if records is None else records
        shown = [[r[0], r[1], r[3], r[4], r[5], r[8], r[9]] for r in got["records"]]
        assert shown == wanted, next((pair for pair in zip(shown, wanted) if pair[0] != pair[1]),
                                     (len(shown), len(wanted), got["faults"]))


def path_of(name):
    return os.path.join(WORK, name)


def save(name, data):
    pw.write(path_of(name), data)
    return path_of(name)


def both_byte_orders_and_all_modes_give_the_same_records():
    for big in (False, True):
        case = Case(big, bits=USUAL | pw.CALLCHAIN)
        data = b"".join(case.samples)
        for name, content in (("file", case.writer.file(data, case.features())),
                              ("pipe", case.writer.pipe(data, case.features()))):
            path = save("%s-%d" % (name, big), content)
            got = dump(path)
            case.check(got)
            assert not got["faults"], got["faults"]
            assert got["info"]["hostname"] == "maker" and got["info"]["big_endian"] == str(int(big))
            case.check(dump(path, "--next"))
            case.check(dump(path, "--rewind"))
            with open(path, "rb") as source:
                case.check(dump("-", stdin=source))
            with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
                case.check(dump("-", stdin=cat.stdout))


def every_layout_of_a_sample_is_read():
    for bits in (pw.TIME | pw.TID | pw.CPU | pw.RAW | pw.ID, USUAL | pw.ADDR | pw.STREAM_ID | pw.ID,
                 USUAL | pw.READ, USUAL | pw.READ | pw.CALLCHAIN):
        for read_format in (0, 0x17, 8, 0x1f):
            for size in (64, 72, 96, 112, 136):
                case = Case(bits=bits, count=120, read_format=read_format, size=size)
                path = save("layout", case.writer.file(b"".join(case.samples), case.features()))
                got = dump(path)
                case.check(got)
                assert not got["faults"], got["faults"]


def a_single_event_needs_no_id():
    attr = pw.Attr(301, pw.IP | pw.TID | pw.TIME | pw.CPU | pw.RAW, name="demo:one")
    writer = pw.Writer([attr])
    data = b"".join(writer.sample(attr, cpu=1, time=5 + i, payload=payload(writer, 301, 1, i)) for i in range(5))
    got = dump(save("single", writer.file(data, writer.features(TEXTS))))
    assert [r[1] for r in got["records"]] == ["5", "6", "7", "8", "9"] and not got["faults"], got


def without_cpu_and_time_the_order_of_the_file_stays():
    attr = pw.Attr(301, pw.TID | pw.RAW | pw.ID, ids=(11, 12), name="demo:one")
    writer = pw.Writer([attr])
    data = writer.id_index([(11, 0, 0, 2 ** 64 - 1), (12, 0, 3, 2 ** 64 - 1)])
    data += b"".join(writer.sample(attr, payload=payload(writer, 301, i, i), event=11 + i % 2, tid=i)
                     for i in range(10))
    got = dump(save("bare", writer.file(data, writer.features(TEXTS))))
    assert [(r[0], r[5]) for r in got["records"]] == \
        [("0", str(i)) for i in range(0, 10, 2)] + [("3", str(i)) for i in range(1, 10, 2)], got["records"]


def compressed_records_are_one_stream():
    for kind in (81, 83):
        case = Case(count=3000)
        packer = pw.Packer(case.writer, kind)
        plain, data = b"".join(case.samples), b""
        for at in range(0, len(plain), 20001):  # records straddle the pieces
            data += packer.pack(plain[at:at + 20001]) + case.writer.finished_round()
        got = dump(save("zstd", case.writer.file(data, case.features())))
        case.check(got)
        assert got["info"]["compression"] == "zstd" and not got["faults"], got["faults"]
        got = dump(save("zstd-pipe", case.writer.pipe(data, case.features())))
        case.check(got)


def a_length_that_is_too_short_is_repaired():
    case = Case(count=3000)
    packer = pw.Packer(case.writer, 83)
    plain = b"".join(case.samples)
    data = b"".join(packer.pack(plain[at:at + 20000], short_by=5) for at in range(0, len(plain), 20000))
    got = dump(save("short-83", case.writer.file(data, case.features())))
    case.check(got)
    assert any("too short" in fault for fault in got["faults"]), got["faults"]


def a_bomb_and_damage_in_compressed_data_end_it_with_a_message():
    case = Case(count=3000)
    packer = pw.Packer(case.writer)
    plain = b"".join(case.samples)
    pieces = [packer.pack(plain[at:at + 20000]) for at in range(0, len(plain), 20000)]
    broken = bytearray(pieces[3])
    broken[8:40] = b"\xff" * 32
    pieces[3] = bytes(broken)
    got = dump(save("zstd-broken", case.writer.file(b"".join(pieces), case.features())))
    assert 0 < len(got["records"]) < 3000 and got["faults"], got["faults"]
    bomb = pw.Packer(case.writer).pack(b"\0" * (300 << 20))
    got = dump(save("zstd-bomb", case.writer.file(bomb + b"".join(case.samples), case.features())))
    assert got["faults"], "a bomb went unnoticed"


def records_before_damage_in_decoded_bytes_are_there():
    case = Case(count=100)
    plain = b"".join(case.samples)
    data = pw.Packer(case.writer).pack(plain + struct.pack("<IHH", 9, 0, 3) + plain)
    got = dump(save("zstd-size", case.writer.file(data, case.features())))
    case.check(got)
    assert any("says it has 3 bytes" in fault for fault in got["faults"]), got["faults"]


def events_of_any_name_have_their_samples():
    names = ["my event", "caf\u00e9", "a\tb", "cpu/event=0x3c,name=x y/", ""]
    attrs = [pw.Attr(i, USUAL & ~pw.RAW, kind=0, ids=(21 + i,), name=name) for i, name in enumerate(names)]
    writer = pw.Writer(attrs)
    data = b"".join(writer.sample(attr, time=10 + i) for i, attr in enumerate(attrs))
    got = dump(save("names", writer.file(data, writer.features(TEXTS))))
    assert [r[3] for r in got["records"]] == ["perf:my_event", "perf:caf__", "perf:a_b", "perf:cpu/event=0x3c,name=x_y/",
                                              "perf:event_0_4"] and not got["faults"], got


def tasks_of_a_guest_name_none_of_the_host():
    attr, dummy = pw.Attr(301, USUAL, ids=(11,), name="demo:one"), pw.Attr(9, USUAL, kind=1, ids=(21, 22), name="dummy")
    writer = pw.Writer([attr, dummy])
    data = writer.id_index([(11, 0, 0, 0), (21, 0, 0, 0), (22, 0, 0, 0)], [(0, 0), (0, 0), (999, 0)])
    for event, name in ((21, b"ours\0\0\0\0"), (22, b"theirs\0\0")):
        data += writer.record(3, writer.pack("ii", 50, 50) + name + writer.trailer(dummy, 0, event, 50, 50, event=event))
    data += writer.record(7, writer.pack("iiiiQ", 50, 1, 50, 1, 23) + writer.trailer(dummy, 0, 23, event=22))
    data += writer.sample(attr, time=1000, pid=50, tid=50, payload=payload(writer, 301, 50, 1))
    path = save("guest-tasks", writer.file(data, writer.features(TEXTS)))
    shown = subprocess.run([os.path.join(os.environ["TANDEM_BUILD"], "cli", "tandem"), "view", path], timeout=120,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert "ours-50" in shown.stdout, shown.stdout


def directory_mode_reads_every_thread():
    case = Case(count=1000)
    path = path_of("dir.data")
    pw.write(os.path.join(path, "data"), case.writer.file(case.writer.finished_round(), case.features()))
    for cpu in range(2):
        mine = [sample for i, sample in enumerate(case.samples) if (i // 50) % 2 == cpu]
        if cpu:
            packer = pw.Packer(case.writer)
            mine = [packer.pack(b"".join(mine))]
        pw.write(os.path.join(path, "data.%d" % cpu), b"".join(mine))
    os.makedirs(os.path.join(path, "kcore_dir"))
    case.check(dump(path))


def what_a_killed_recorder_leaves_is_read():
    case = Case()
    path = save("killed", case.writer.file(b"".join(case.samples)[:-11], {}, killed=True))
    got = dump(path)
    assert len(got["records"]) == 1999, len(got["records"])
    assert got["records"][0][3] == "?:tracepoint_301" or got["records"][0][3].endswith(":tracepoint_301"), \
        got["records"][0]
    assert any("did not finish" in fault for fault in got["faults"]), got["faults"]
    assert any("are left" in fault for fault in got["faults"]), got["faults"]


def a_file_that_was_cut_short_gives_what_is_whole():
    case = Case()
    whole = case.writer.pipe(b"".join(case.samples), case.features())
    got = dump(save("cut", whole[:-len(case.samples[-1]) * 100 - 5]))
    assert len(got["records"]) == 1899 and got["faults"], (len(got["records"]), got["faults"])


def one_bad_format_loses_only_its_event():
    case = Case(count=100)
    texts = [("demo", [b"name: one-bad\nID: 301\nformat:\n\tfield:int x;\toffset:banana;\n",
                       pw.format_text("two", 302, FIELDS)])]
    got = dump(save("bad-format", case.writer.file(b"".join(case.samples), case.writer.features(texts))))
    two = [r for r in got["records"] if r[3] == "demo:two"]
    assert len(two) == 50, got
    texts = [("demo", [b"\xff\xfe garbage", pw.format_text("two", 302, FIELDS)])]
    got = dump(save("bad-text", case.writer.file(b"".join(case.samples), case.writer.features(texts))))
    assert len([r for r in got["records"] if r[3] == "demo:two"]) == 50 and got["faults"], got["faults"]


def weird_names_of_events_are_read():
    attrs = [pw.Attr(301, USUAL, ids=(11,), name="my-sys:a-b c"), pw.Attr(302, USUAL, ids=(12,), name="x:y")]
    writer = pw.Writer(attrs)
    texts = [("my-sys", [pw.format_text("a-b c", 301, FIELDS)]), ("x", [pw.format_text("1.2:3", 302, FIELDS)])]
    data = b"".join(writer.sample(attrs[i % 2], time=i, payload=payload(writer, 301 + i % 2, 1, i)) for i in range(4))
    got = dump(save("weird", writer.file(data, writer.features(texts))))
    assert len(got["records"]) == 4, got


def names_of_tasks_follow_time():
    case = Case(count=0)
    attr, writer = case.attrs[0], case.writer

    def at(time, tid, cpu=0):
        return writer.sample(attr, cpu=cpu, time=time, tid=tid, payload=payload(writer, 301, tid, 0))

    data = writer.comm(attr, 5, b"first", 0) + at(10, 5) + at(30, 5) + at(50, 6) + at(70, 6)
    # Out of order in the file, as the buffers of the CPUs are written one after the other.
    data += writer.comm(attr, 6, b"child\xff\xfe \xc3\xa4", 60) + writer.comm(attr, 5, b"second", 20)
    data += writer.fork(attr, 5, 6, 40) + at(80, 0) + at(90, 77)
    got = dump(save("names", writer.file(data, case.features(comms=b"77 saved name\n"))))
    assert [r[7] for r in got["records"]] == \
        ["first", "second", "second", "child\\xff\\xfe\\x20\\xc3\\xa4", "swapper", "saved\\x20name"], got["records"]


def order_is_made_whatever_the_file_has():
    for name, order in (("backward", lambda n: range(n - 1, -1, -1)),
                        ("rounds", lambda n: [i ^ 3 for i in range(n)]),
                        ("halves", lambda n: [i // 2 + (n // 2) * (i % 2) for i in range(n)]),
                        ("scattered", lambda n: sorted(range(n), key=lambda i: (i * 7919) % 4096))):
        case = Case(count=40000, flags=pw.SAMPLE_ID_ALL | pw.WRITE_BACKWARD)
        data = b"".join(case.samples[i] for i in order(len(case.samples)))
        got = dump(save(name, case.writer.file(data, case.features())))
        case.check(got)
        assert not got["faults"], got["faults"]


def equal_times_keep_the_order_of_the_file():
    case = Case(count=0)
    attr, writer = case.attrs[0], case.writer
    data = b"".join(writer.sample(attr, time=100 + (i % 977 == 0), payload=payload(writer, 301, 1, i)) for i in range(9000))
    got = dump(save("equal", writer.file(data, case.features())))
    values = [int.from_bytes(bytes.fromhex(r[9])[8:12], "little") for r in got["records"]]
    assert values == [i for i in range(9000) if i % 977] + [i for i in range(9000) if i % 977 == 0]


def losses_stand_where_they_happened():
    case = Case(count=0)
    attr, writer = case.attrs[0], case.writer
    data = writer.id_index([(11, 0, 0, 2 ** 64 - 1), (12, 0, 1, 2 ** 64 - 1)])

    def at(time, cpu=0):
        return writer.sample(attr, cpu=cpu, time=time, payload=payload(writer, 301, 1, time))

    data += at(10) + at(20) + writer.lost(attr, 5, 0, 31) + at(30) + at(40) + at(15, 1)
    data += writer.lost(attr, 2, 1, 22) + writer.lost(attr, 1, 1, 22) + at(25, 1)
    data += writer.lost_samples(attr, 9, 11) + writer.lost_samples(attr, 3, 12) + writer.lost_samples(attr, 99, 12, 1 << 15)
    got = dump(save("lost", writer.file(data, case.features())))
    assert [(i[0], i[1], i[2], i[4] if i[0] == "L" else "") for i in got["items"]] == [
        ("R", "0", "10", ""), ("R", "0", "20", ""), ("L", "0", "30", "5"), ("R", "0", "30", ""), ("R", "0", "40", ""),
        ("L", "0", "40", "4"), ("R", "1", "15", ""), ("L", "1", "22", "3"), ("R", "1", "25", "")], got["items"]


def samples_in_guest_mode_are_marked():
    case = Case(count=0)
    attr, writer = case.attrs[0], case.writer
    data = b"".join(writer.sample(attr, time=i, payload=payload(writer, 301, 1, i), misc=i) for i in range(1, 6))
    got = dump(save("guest", writer.file(data, case.features())))
    assert [r[6] for r in got["records"]] == ["0", "0", "0", "1", "1"], got["records"]
    data = writer.id_index([(11, 0, 0, 2 ** 64 - 1), (12, 0, 0, 2 ** 64 - 1)], [(0, 0), (4242, 0)])
    data += b"".join(writer.sample(attr, time=i, payload=payload(writer, 301, 1, i), event=11 + i % 2) for i in range(4))
    got = dump(save("machines", writer.file(data, case.features())))
    assert [r[6] for r in got["records"]] == ["0", "1", "0", "1"], got["records"]


def the_wall_clock_is_used_where_the_file_tells_it():
    case = Case(count=2, clockid=1)
    got = dump(save("wall", case.writer.file(b"".join(case.samples), case.features(clock_data=(1, 10 ** 18, 400)))))
    assert got["info"]["clock"] == "mono" and got["info"]["unix"] == "1", got["info"]
    assert [r[2] for r in got["records"]] == [str(10 ** 18 - 400 + t) for t in (1000, 1010)], got["records"]
    got = dump(save("wall-other", case.writer.file(b"".join(case.samples), case.features(clock_data=(4, 10 ** 18, 400)))))
    assert got["info"]["unix"] == "0" and got["faults"], got
    case = Case(count=2, clockid=0)
    got = dump(save("realtime", case.writer.file(b"".join(case.samples), case.features())))
    assert got["info"]["unix"] == "1" and got["records"][0][2] == "1000", got


def samples_of_counters_are_events_of_their_own():
    attrs = [pw.Attr(0, USUAL & ~pw.RAW | pw.ADDR, kind=0, ids=(11,), name="cycles:u"),
             pw.Attr(301, USUAL, ids=(12,), name="demo:one"),
             pw.Attr(9, USUAL & ~pw.RAW, kind=1, ids=(13,), name="dummy:HG")]
    for big in (False, True):
        writer = pw.Writer(attrs, big)
        data = writer.sample(attrs[0], time=1, tid=8, ip=0xabc, addr=0xdef, period=77)
        data += writer.sample(attrs[1], time=2, payload=payload(writer, 301, 1, 5))
        got = dump(save("counter", writer.file(data, writer.features(TEXTS))))
        assert [r[3] for r in got["records"]] == ["perf:cycles:u", "demo:one"], got
        words = bytes.fromhex(got["records"][0][9])
        assert words[4:] == writer.pack("iQQQ", 8, 0xabc, 0xdef, 77), words


def unknown_things_are_counted_and_passed_over():
    case = Case(count=100)
    writer, attr = case.writer, case.attrs[0]
    data = b"".join(case.samples[:50])
    data += writer.sample(attr, time=1, payload=payload(writer, 301, 1, 1), event=999)
    data += writer.record(200, b"12345678") + writer.auxtrace(b"\x09" * 333) + writer.record(19, b"1234")
    data += writer.sample(attr, time=2, raw=writer.pack("I", 5000) + b"1234")
    data += b"".join(case.samples[50:])
    got = dump(save("unknown", writer.file(data, case.features())))
    case.check(got)
    assert len(got["faults"]) == 3, got["faults"]


def what_is_no_perf_file_is_refused_with_a_reason():
    case = Case(count=10)
    whole = case.writer.file(b"".join(case.samples), case.features())
    for name, data, reason in (("v1", b"PERFFILE" + whole[8:], "version 1"), ("tiny", whole[:9], "too short"),
                               ("head", whole[:8] + b"\7" + whole[9:], "header"), ("no-attrs", whole[:104], "end")):
        with open(save(name, data), "rb") as source:
            got = dump("-", stdin=source, status=1)
        assert reason in got["stderr"], (name, got["stderr"])


def many_cpus_in_many_rounds():
    attr = pw.Attr(301, USUAL, ids=(11,), name="demo:one")
    writer = pw.Writer([attr])
    data = b"".join(writer.sample(attr, cpu=(i * 37) % 130, time=i // 2, payload=payload(writer, 301, 1, i))
                    for i in range(13000))
    data += writer.sample(attr, cpu=0xffffffff, time=9 ** 9, payload=payload(writer, 301, 1, 1))
    got = dump(save("cpus", writer.file(data, writer.features(TEXTS))))
    assert got["info"]["streams"] == "130" and len(got["records"]) == 13001, got["info"]
    for cpu in range(130):
        times = [int(r[1]) for r in got["records"] if r[0] == str(cpu)]
        assert times == sorted(times)


def main():
    cases = [(name, case) for name, case in globals().items()
             if callable(case) and getattr(case, "__module__", "") == "__main__" and "_" in name and
             name not in ("path_of",)]
    failed = 0
    for name, case in cases:
        try:
            case()
            print("ok - " + name.replace("_", " "))
        except AssertionError as fault:
            failed += 1
            print("NOT OK - %s: %s" % (name.replace("_", " "), str(fault)[:1500]))
    subprocess.run(["rm", "-rf", WORK], check=True)
    sys.exit(1 if failed else 0)


main()
