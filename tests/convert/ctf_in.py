#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem convert with CTF inputs: LTTng traces of a host and its guest, user space traces, empty packets.

usage: ctf_in.py BUILD-FOLDER
"""
import glob
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import bt2

BUILD = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data")
PAIR = os.path.join(DATA, "lttng-kernel", "pair1")
TANDEM = os.path.join(BUILD, "cli", "tandem")
WORK = tempfile.mkdtemp(prefix="tandem-ctf-in-")
BEND = """tandem-corrections 1
host - clock mono unit-hz 1000000000
guest - clock mono unit-hz 1000000000
made 2026-11-30T12:11:29Z samples 2 used 2 bogus 0 lost 0
method bounded
assume rate-ppb 100
stamps user
segment start 0 2
k 0 1000 5 5
k 10000000000000 10000001000000 5 5
end
"""


def convert(name, *arguments, status=0):
    out = os.path.join(WORK, name)
    done = subprocess.run([TANDEM, "convert", "-o", out, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return out, (done.stdout + done.stderr).decode()


def plain(value):
    if isinstance(value, (bt2._StringFieldConst, bt2._EnumerationFieldConst)):
        return str(value)
    if isinstance(value, bt2._VariantFieldConst):
        return plain(value.selected_option)
    if isinstance(value, bt2._ArrayFieldConst):
        return [plain(inner) for inner in value]
    if isinstance(value, bt2._StructureFieldConst):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, bt2._RealFieldConst):
        return float(value)
    return int(value)


def read(path):
    """Events of a trace, and what it says was lost: (raw value, ns, name, cpu, fields)."""
    events, lost = [], 0
    for message in bt2.TraceCollectionMessageIterator(path):
        if type(message) is bt2._EventMessageConst:
            event = message.event
            context = event.common_context_field
            events.append((message.default_clock_snapshot.value, message.default_clock_snapshot.ns_from_origin,
                           event.name, int(event.packet.context_field["cpu_id"]),
                           plain(event.payload_field) if event.payload_field is not None else None,
                           plain(context) if context is not None else None))
        elif type(message) is bt2._DiscardedEventsMessageConst:
            lost += message.count or 0
        assert type(message) is not bt2._DiscardedPacketsMessageConst, path
    return events, lost


def metadata_of(path):
    found = sorted(glob.glob(os.path.join(path, "**", "metadata"), recursive=True))
    with open(found[0], encoding="utf-8", errors="replace") as source:
        return source.read()


def lint(path):
    for found in glob.glob(os.path.join(path, "**", "metadata"), recursive=True):
        done = subprocess.run([TANDEM, "check-ctf", os.path.dirname(found)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        assert done.returncode == 0 and b" 0 errors" in done.stdout, done.stdout.decode()


def every_guest_stamp_is_the_truth_to_the_nanosecond():
    out, _ = convert("pair", "host=" + PAIR + "/host", "guest=" + PAIR + "/guest",
                     "--corrections", "guest=" + PAIR + "/truth.corrections")
    with open(PAIR + "/truth.corrections", encoding="ascii") as source:
        knots = [tuple(int(word) for word in line.split()[1:3]) for line in source if line.startswith("k ")]
    assert len(knots) == 2
    (g0, h0), (g1, h1) = knots
    epoch = 1796039857284825211  # the host clock's own offset, as its metadata has it
    before, _ = read(PAIR + "/guest")
    after, _ = read(out + "/guest")
    assert len(before) == len(after) == 11257
    for one, other in zip(before, after):
        truth = h0 + (one[0] - g0) * (h1 - h0) // (g1 - g0) + epoch
        assert other[1] == truth, (one[:3], other[:3], truth)
        assert one[2:] == other[2:], (one, other)
    host_before, _ = read(PAIR + "/host")
    host_after, _ = read(out + "/host")
    assert host_before == host_after and len(host_after) == 26943
    lint(out)
    text = metadata_of(out + "/guest")
    assert "uint32_t cpu_id" in text or " cpu_id;" in text, text[:3000]
    assert text.count("tandem_corrections") == 1 and "tandem_bound_ns = 86;" in text
    assert not os.path.exists(out + "/guest/index") and os.path.exists(out + "/host/index")


def host_and_guest_alone_in_order_without_names():
    out, said = convert("unnamed", PAIR + "/host", PAIR + "/guest", "--offset", "l2-0=727894648972")
    assert sorted(os.listdir(out)) == ["host", "l2-0"], os.listdir(out)
    before, _ = read(PAIR + "/guest")
    after, _ = read(out + "/l2-0")
    # One relation of slope 1: the streams are the same, to the byte, with their index.
    assert [one[0] for one in before] == [one[0] for one in after]
    assert after[0][1] == before[0][0] + 727894648972 + 1796039857284825211
    for name in ("c0_0", "index/c0_0.idx"):
        with open("%s/guest/kernel/%s" % (PAIR, name), "rb") as one, open("%s/l2-0/%s" % (out, name), "rb") as other:
            assert one.read() == other.read(), name
    lint(out)
    assert "streams copied" in said


def without_corrections_a_warning_names_the_remedy():
    _, said = convert("unrelated", "host=" + PAIR + "/host", "guest=" + PAIR + "/guest")
    assert "--corrections guest=FILE" in said, said


def user_space_traces_come_through_whole():
    bend = os.path.join(WORK, "bend.corrections")
    with open(bend, "w", encoding="ascii") as out:
        out.write(BEND)
    for name in ("ust-basic", "ust-twochan", "ust-perpid"):
        source = os.path.join(DATA, "lttng", name)
        before, lost_before = read(source)
        for how, arguments in (("plain", ["host=" + source]), ("shifted", ["guest=" + source, "--offset", "guest=777"]),
                               ("bent", ["guest=" + source, "--corrections", "guest=" + bend])):
            out, _ = convert("%s-%s" % (name, how), *arguments)
            after, lost_after = read(out)
            assert (len(before), lost_before) == (len(after), lost_after), (name, how, len(after), lost_after)
            for one, other in zip(before, after):
                shift = {"plain": 0, "shifted": 777, "bent": one[0] * 1000000 // 10 ** 13 + 0}[how]
                if how == "bent":
                    shift = 1000 + one[0] * (10000001000000 - 1000) // 10 ** 13 - one[0]
                assert other[1] - one[1] == shift, (name, how, other[1] - one[1], shift)
                assert sorted([one[2:]], key=str) == sorted([other[2:]], key=str), (name, how, one, other)
            lint(out)


def corrections_that_lie_beside_are_taken():
    place = os.path.join(WORK, "beside")
    os.makedirs(os.path.join(place, "far"))
    for where in (("lttng-web",), ("far", "lttng-web")):
        shutil.copytree(os.path.join(DATA, "lttng", "ust-basic"), os.path.join(place, *where))
    shutil.copytree(os.path.join(DATA, "lttng", "ust-basic"), os.path.join(place, "host"))
    with open(os.path.join(place, "web.corrections"), "w", encoding="ascii") as out:
        out.write(BEND)
    source = os.path.join(place, "lttng-web")
    wanted = [event[1] for event in read(convert("beside-named", "web=" + source, "--corrections",
                                                 "web=" + os.path.join(place, "web.corrections"))[0])[0]]
    assert wanted != [event[1] for event in read(source)[0]]
    for name, arguments in (("alone", []), ("with-host", ["host=" + os.path.join(place, "host")])):
        out, said = convert("beside-" + name, *arguments, "web=" + source)
        assert [event[1] for event in read(os.path.join(out, "web"))[0]] == wanted, name
        assert "clock: put on the host's by the corrections file " + os.path.join(place, "web.corrections") in said and "nothing relates" not in said, said
    # So are a trace.dat's.
    data = os.path.join(place, "db.dat")
    shutil.copy(os.path.join(DATA, "single", "v6.dat"), data)
    shutil.copy(os.path.join(place, "web.corrections"), os.path.join(place, "db.corrections"))
    pair = ["host=" + os.path.join(DATA, "pairs", "mono-nosync.dat"), "db=" + data]
    file = os.path.join(place, "db.corrections")
    out, said = convert("beside-dat", *pair)
    named, said_named = convert("beside-dat-named", *pair, "--corrections", "db=" + file)
    assert "by the corrections file " + file in said and said.replace(out, named) == said_named, (said, said_named)
    assert read(os.path.join(out, "db"))[0] == read(os.path.join(named, "db"))[0]
    pair[0] = "host=" + os.path.join(DATA, "kvm", "kvm-tsc.dat")
    assert file + " is not used" in convert("beside-dat-other", *pair)[1]
    os.remove(file)
    # Another machine's are not, and what the user says goes first; one that cannot be read is no reason to go on without.
    assert "web.corrections" not in convert("beside-other", "db=" + source)[1]
    assert "offset given by hand" in convert("beside-by-hand", "web=" + source, "--offset", "web=5")[1]
    with open(os.path.join(place, "far", "web.corrections"), "w", encoding="ascii") as out:
        out.write("nonsense\n")
    assert "web.corrections" in convert("beside-bad", "web=" + os.path.join(place, "far", "lttng-web"), status=1)[1]


def empty_packets_in_the_middle_go_and_leave_no_gap():
    source = os.path.join(WORK, "with-empty")
    shutil.copytree(os.path.join(DATA, "lttng", "ust-basic"), source)
    trace = os.path.join(source, "ust", "uid", "65534", "64-bit")
    os.chmod(trace, 0o755)
    path = os.path.join(trace, "c0_0")
    with open(path, "rb") as stream:
        data = stream.read()
    size = struct.unpack_from("<Q", data, 32 + 24)[0] // 8
    packets = [data[at:at + size] for at in range(0, len(data), size)][:2]
    with open(os.path.join(trace, "c0_1"), "rb") as stream:
        empty = bytearray(stream.read())
    end = struct.unpack_from("<Q", packets[0], 32 + 8)[0]
    struct.pack_into("<QQ", empty, 32, end, end)          # begins and ends where the first packet ends
    struct.pack_into("<Q", empty, 32 + 32, 1)             # the second packet of the file
    struct.pack_into("<I", empty, 32 + 48, struct.unpack_from("<I", packets[0], 32 + 48)[0])
    third = bytearray(packets[1])
    struct.pack_into("<Q", third, 32 + 32, 2)
    os.chmod(path, 0o644)
    with open(path, "wb") as stream:
        stream.write(packets[0] + bytes(empty) + bytes(third))
    shutil.rmtree(os.path.join(trace, "index"))
    before, _ = read(source)
    out, said = convert("no-empty", source)
    after, _ = read(out)
    assert before == after and len(after) > 100, (len(before), len(after))
    assert "empty packets left out" in said
    lint(out)


def a_cut_stream_gives_its_whole_packets_and_exit_3():
    source = os.path.join(WORK, "cut")
    shutil.copytree(os.path.join(DATA, "lttng", "ust-basic"), source)
    path = os.path.join(source, "ust", "uid", "65534", "64-bit", "c0_0")
    os.chmod(path, 0o644)
    with open(path, "r+b") as stream:
        stream.truncate(30000)
    out, said = convert("cut-out", source, status=3)
    after, _ = read(out)
    assert 0 < len(after) < 840 and "left out" in said, (len(after), said)


def two_machines_with_one_clock_uuid_are_kept_apart():
    out, _ = convert("clones", "a=" + PAIR + "/guest", "b=" + PAIR + "/guest")
    uuids = set()
    for name in ("a", "b"):
        text = metadata_of(os.path.join(out, name))
        uuids.add(text[text.index("clock {"):].split("uuid = ")[1].split(";")[0])
    assert len(uuids) == 2, uuids


def nothing_is_overwritten_and_nothing_half_stays():
    out, _ = convert("again", "host=" + PAIR + "/host")
    convert("again", "host=" + PAIR + "/host", status=1)
    convert("again", "host=" + PAIR + "/host", "--force")
    assert os.listdir(out) == ["host"]
    bad = os.path.join(WORK, "bad")
    os.makedirs(bad)
    with open(os.path.join(bad, "metadata"), "wb") as stream:
        stream.write(b"/* CTF 1.8 */ this is { no metadata")
    out, said = convert("bad-out", bad, status=1)
    assert not os.path.exists(out) and "metadata" in said, said


def system_calls_of_user_space_become_the_kernels():
    source = os.path.join(WORK, "syscalls")
    shutil.copytree(os.path.join(DATA, "lttng", "ust-basic"), source)
    path = os.path.join(source, "ust", "uid", "65534", "64-bit", "metadata")
    with open(path, "rb") as stream:
        packed = stream.read()
    text, at = b"", 0
    while at + 37 <= len(packed):
        content, whole = struct.unpack_from("<II", packed, at + 24)
        text += packed[at + 37:at + content // 8]
        at += whole // 8
    # The same trace, as if its events were system calls.
    text = text.replace(b'"rig:step"', b'"tandem:syscall_entry_read"').replace(b'"rig:block"', b'"tandem:process_start"')
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o644)
    with open(path, "wb") as stream:
        stream.write(b"/* CTF 1.8 */\n" + text)
    for out, said in (convert("as-it-is", "guest=" + source), convert("as-the-kernel", "--as-kernel", "guest=" + source)):
        checked = subprocess.run([TANDEM, "check-ctf", out], stdout=subprocess.PIPE, timeout=60).stdout.decode()
        is_user = out.endswith("as-it-is")
        assert ("--as-kernel makes it a kernel trace" in said) == is_user, said
        assert ("--as-kernel makes it a kernel trace" in checked) == is_user, checked
    for how in ([], ["--corrections", "guest=" + os.path.join(WORK, "bend.corrections")]):
        out, _ = convert("as-kernel-%d" % len(how), "--as-kernel", "guest=" + source, *how)
        after, _ = read(out)
        names = {event[2] for event in after}
        assert names == {"syscall_entry_read", "lttng_statedump_process_state"}, names
        # One for each thread that made calls, before all else; what the recorder says of itself is no system call.
        dumped = [event for event in after if event[2] == "lttng_statedump_process_state"]
        calls = [event for event in after if event[2] == "syscall_entry_read"]
        threads = {(event[5]["tid"], event[5]["pid"], event[5]["procname"]) for event in calls}
        assert threads <= {(event[4]["tid"], event[4]["pid"], event[4]["name"]) for event in dumped}, (threads, dumped)
        assert max(event[1] for event in dumped) < min(event[1] for event in calls)
        assert len(calls) == len([1 for event in read(source)[0] if event[2] == "tandem:syscall_entry_read"])
        plain, _ = convert("as-kernel-plain-%d" % len(how), "--as-kernel", "--no-synthetic", "guest=" + source, *how)
        assert {event[2] for event in read(plain)[0]} == {"syscall_entry_read"}
        after = calls
        assert set(after[0][5]) == {"tid", "pid", "procname"}, after[0][5]
        done = subprocess.run([TANDEM, "check-ctf", out], stdout=subprocess.PIPE, timeout=60)
        assert b"lttng_statedump_process_state" not in done.stdout, done.stdout
        text = metadata_of(out)
        for wanted in ('domain = "kernel"', 'tracer_name = "lttng-modules"', "tracer_major = 2", "tracer_minor = 13",
                       'tandem_source_tracer = "lttng-ust"'):
            assert wanted in text, wanted
        lint(out)


def main():
    failed = 0
    for case in (every_guest_stamp_is_the_truth_to_the_nanosecond, host_and_guest_alone_in_order_without_names,
                 without_corrections_a_warning_names_the_remedy, user_space_traces_come_through_whole,
                 corrections_that_lie_beside_are_taken,
                 empty_packets_in_the_middle_go_and_leave_no_gap, a_cut_stream_gives_its_whole_packets_and_exit_3,
                 two_machines_with_one_clock_uuid_are_kept_apart, nothing_is_overwritten_and_nothing_half_stays,
                 system_calls_of_user_space_become_the_kernels):
        try:
            case()
            print("ok - " + case.__name__.replace("_", " "))
        except AssertionError as fault:
            failed += 1
            print("NOT OK - %s: %s" % (case.__name__.replace("_", " "), str(fault)[:1500]))
    shutil.rmtree(WORK)
    sys.exit(1 if failed else 0)


main()
