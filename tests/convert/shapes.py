#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Made-up inputs of every shape: what comes out is what went in, as babeltrace2's own CTF reader sees it."""
import glob
import os
import re
import struct

from convert_case import BUILD, check_ctf, convert, events, main, run
from tracedat_maker import SWITCH, Loss, Maker, switch_body


def only(found, name):
    return [event for event in found if event.name == name]


def made(directory, maker, *options, code=0):
    path, out = os.path.join(directory, "in.dat"), os.path.join(directory, "out")
    maker.write(path)
    done = convert(out, *options, path, code=code)
    return os.path.join(out, "host"), done


def names_that_are_keywords_clash_or_differ_by_underscores_only(directory):
    maker = Maker()
    fields = ["event", "_event", "__event", "string", "struct", "int", "void", "_Bool", "a-b", "a_b", "9lives", "stream"]
    maker.format("odd", "odd", 100, [("int " + name, 8 + 4 * i, 4, 1) for i, name in enumerate(fields)])
    maker.add_cpu(0, [(1000, maker.record(100, 7, struct.pack("<12i", *range(12))))])
    trace, _ = made(directory, maker)
    (event,) = only(events(trace), "odd")
    # C's own keywords get a suffix, what is no identifier becomes one; order and values stay.
    assert list(event.fields.values()) == list(range(12)), event.fields
    names = list(event.fields)
    assert len(set(names)) == 12, names
    assert names[:4] == ["event", "_event", "__event", "string"] and names[11] == "stream", names
    assert all(name.startswith(word) for name, word in zip(names[4:8], fields[4:8])), names
    check_ctf(trace)


def a_field_named_twice_is_there_twice(directory):
    maker = Maker()
    maker.format("odd", "odd", 100, [("int a", 8, 4, 1), ("int a", 12, 4, 1)])
    maker.add_cpu(0, [(1000, maker.record(100, 7, struct.pack("<2i", 5, 6)))])
    trace, _ = made(directory, maker)
    (event,) = only(events(trace), "odd")
    assert sorted(event.fields.values()) == [5, 6], event.fields


def every_kind_of_field(directory, big_endian=False, long_bytes=8, version=7):
    maker = Maker(version=version, big_endian=big_endian, long_bytes=long_bytes)
    long_kind = "Q" if long_bytes == 8 else "I"
    maker.format("kinds", "kinds", 200, [
        ("u8 u8", 8, 1, 0), ("s8 s8", 9, 1, 1), ("u16 u16", 10, 2, 0), ("s32 s32", 12, 4, 1), ("u64 u64", 16, 8, 0),
        ("bool yes", 24, 1, 0), ("char name[16]", 32, 16, 0), ("u32 list[3]", 48, 12, 0),
        ("__data_loc char[] text", 60, 4, 0), ("__data_loc u32[] numbers", 64, 4, 0),
        ("__rel_loc char[] near", 68, 4, 0), ("__rel_loc u16[] shorts", 72, 4, 0),
        ("__data_loc cpumask_t mask", 76, 4, 0), ("__int128 wide", 80, 16, 1), ("void * pointer", 96, long_bytes, 0)])
    tail = 96 + long_bytes
    text, near = "grüße".encode() + b"\0", b"beside\0"
    places, dynamic = {}, b""
    for name, data in (("text", text), ("numbers", maker.pack("3I", 1, 2, 0xffffffff)), ("near", near),
                       ("shorts", maker.pack("2H", 3, 4)), ("mask", maker.pack("2" + long_kind, 5, 0))):
        dynamic += bytes(-len(dynamic) % 4)
        places[name] = (tail + len(dynamic), len(data))
        dynamic += data
    wide = 0x0123456789abcdef_fedcba9876543210

    def loc(name, after=0):
        return maker.pack("I", places[name][1] << 16 | (places[name][0] - after))

    body = maker.pack("BbHiQB", 200, -5, 60000, -70000, 1 << 63, 1) + bytes(7)
    body += b"sixteen bytes!!!" + maker.pack("3I", 10, 20, 30)
    body += loc("text") + loc("numbers") + loc("near", 72) + loc("shorts", 76) + loc("mask")
    body += wide.to_bytes(16, "big" if big_endian else "little") + maker.pack(long_kind, 0x1234)
    maker.add_cpu(0, [(1000, maker.record(200, 7, body + dynamic))])
    trace, _ = made(directory, maker)
    (event,) = only(events(trace), "kinds")
    wanted = {"u8": 200, "s8": -5, "u16": 60000, "s32": -70000, "u64": 1 << 63, "yes": 1, "name": "sixteen bytes!!!",
              "list": [10, 20, 30], "text": "grüße", "numbers": [1, 2, 0xffffffff], "near": "beside", "shorts": [3, 4],
              "mask": [5, 0], "wide": [wide & (1 << 64) - 1, wide >> 64], "pointer": 0x1234}
    for name, value in wanted.items():
        assert event.fields.get(name) == value, "%s is %r, wanted %r" % (name, event.fields.get(name), value)
    check_ctf(trace)


def every_kind_of_field_of_a_big_endian_machine(directory):
    every_kind_of_field(directory, big_endian=True)


def every_kind_of_field_of_a_32_bit_machine(directory):
    every_kind_of_field(directory, long_bytes=4)


def every_kind_of_field_of_version_6(directory):
    every_kind_of_field(directory, version=6)


def text_that_is_no_utf8_is_shown_by_its_bytes(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    body = bytearray(switch_body(maker, ("a", 1), ("b", 2)))
    body[0:16] = b"\xff\xfebad" + bytes(11)
    body[32:48] = "日本語テキ".encode() + b"x"
    maker.add_cpu(0, [(1000, maker.record(300, 1, bytes(body)))])
    trace, _ = made(directory, maker)
    (event,) = only(events(trace), "sched_switch")
    assert event.fields["prev_comm"] == "\\xff\\xfebad", event.fields
    assert event.fields["next_comm"] == "日本語テキx", event.fields
    assert event.context["procname"] == "\\xff\\xfebad", event.context


def a_machine_of_130_cpus_some_of_them_idle(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    for cpu in range(130):
        if cpu % 10 != 3:
            maker.add_cpu(cpu, [(1000 + cpu, maker.record(300, 0, switch_body(maker, ("swapper/%d" % cpu, 0), ("t", cpu + 1))))])
    trace, _ = made(directory, maker)
    found = only(events(trace), "sched_switch")
    assert [event.cpu for event in found] == [cpu for cpu in range(130) if cpu % 10 != 3]
    assert len(glob.glob(trace + "/cpu*")) == 117, os.listdir(trace)
    check_ctf(trace)


def times_far_apart_and_below_zero(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    times = [5, 6, 6, (1 << 27) + 7, (1 << 32) + 9, (1 << 40), (1 << 40) + 1]
    maker.add_cpu(0, [(t, maker.record(300, 1, switch_body(maker, ("a", 1), ("b", 2)))) for t in times])
    maker.write(os.path.join(directory, "in.dat"))
    for offset in (0, -1000, 10**18):
        out = os.path.join(directory, "out%d" % offset)
        convert(out, "--offset", "host=%d" % offset, os.path.join(directory, "in.dat"))
        found = only(events(out + "/host"), "sched_switch")
        assert [event.time for event in found] == [t + offset for t in times], [event.time for event in found]
        check_ctf(out + "/host")
        # The source component has the same times, its query the same range.
        inputs = 'inputs=["%s"],clock-offset-ns=%d' % (os.path.join(directory, "in.dat"), offset)
        plugin = "--plugin-path=" + os.path.join(BUILD, "plugin")
        done = run("babeltrace2", plugin, "run", "--component=s:source.tandem.tracedat", "--params=" + inputs,
                   "--component=k:sink.text.details", "--connect=s:k")
        shown = re.findall(r"([-\d,]+) ns from origin\]\n.*\nEvent `", done.out)
        assert [int(time.replace(",", "")) for time in shown] == [t + offset for t in times], done
        done = run("babeltrace2", plugin, "query", "source.tandem.tracedat", "babeltrace.trace-infos", "--params=" + inputs)
        assert re.findall(r"(?:begin|end): (-?\d+)", done.out) == [str(times[0] + offset), str(times[-1] + offset)], done


def times_that_go_back_are_raised_and_counted(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    times = [100, 200, 150, 199, 201]
    maker.add_cpu(0, [(t, maker.record(300, 1, switch_body(maker, ("a", 1), ("b", 2)))) for t in times])
    trace, done = made(directory, maker)
    found = only(events(trace), "sched_switch")
    assert [event.time for event in found] == [100, 200, 200, 200, 201], [event.time for event in found]
    assert "2 times went back" in done.out, done.out
    check_ctf(trace)


def losses_are_counted_where_they_happened(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    body = maker.record(300, 1, switch_body(maker, ("a", 1), ("b", 2)))
    maker.add_cpu(0, [(100, body), Loss(42), (200, body), (300, body), Loss(8), (400, body)])
    trace, done = made(directory, maker)
    assert "50 lost by the tracer" in done.out, done.out
    told = run("babeltrace2", trace).err
    assert "discarded 42 events" in told and "discarded 8 events" in told, told
    check_ctf(trace)


def records_of_unknown_ids_and_short_ones_are_named_and_the_rest_comes(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    maker.format("odd", "broken", 301, [("what[ is this", 8, 4, 1)])
    maker.format("odd", "places", 302, [("__data_loc char[] text", 8, 4, 0), ("int after", 12, 4, 1)])
    good = maker.record(300, 1, switch_body(maker, ("a", 1), ("b", 2)))
    maker.add_cpu(0, [(1, good), (2, maker.record(999, 1, bytes(8))), (3, maker.record(300, 1, bytes(16))),
                      (4, maker.record(302, 1, struct.pack("<Ii", 500 << 16 | 400, 77))), (5, good)])
    trace, done = made(directory, maker, code=3)
    found = events(trace)
    assert len(only(found, "sched_switch")) == 2, found
    (places,) = only(found, "places")
    assert places.fields == {"text": "", "after": 77}, places
    for words in ("id 999", "sched_switch are shorter", "places lie outside"):
        assert done.err.count(words) == 1, "%s: %s" % (words, done.err)
    assert "2 not convertible" in done.out, done.out
    check_ctf(trace)


def records_of_a_page_of_text_that_grows_fit_their_packets(directory):
    maker = Maker(page_bytes=65536)
    maker.format("ftrace", "print", 5, [("unsigned long ip", 8, 8, 0), ("char buf[]", 16, 0, 0)])
    big = maker.record(5, 1, bytes(8) + b"\xff" * 60000 + b"\0")
    small = maker.record(5, 1, bytes(8) + b"small\n\0")
    maker.add_cpu(0, [(t, big if t % 3 else small) for t in range(1, 30)])
    trace, _ = made(directory, maker)
    found = only(events(trace), "tracing_mark_write")
    assert len(found) == 29, len(found)
    assert found[0].fields["buf"] == "\\xff" * 60000 and found[2].fields["buf"] == "small\n"
    check_ctf(trace)


def raw_markers_are_bytes_with_all_their_zeros(directory):
    maker = Maker()
    maker.format("ftrace", "raw_data", 16, [("unsigned int id", 8, 4, 0), ("char buf[]", 12, 0, 1)])
    maker.add_cpu(0, [(1, maker.record(16, 7, struct.pack("<I", 9) + b"\1\0\xff\0\0\2\0\3"))])
    trace, _ = made(directory, maker)
    (event,) = only(events(trace), "raw_data")
    assert event.fields["id"] == 9 and event.fields["buf"] == [1, 0, 255, 0, 0, 2, 0, 3], event.fields
    shown = run("babeltrace2", os.path.join(directory, "in.dat")).out
    assert "[2] = 255" in shown and "[7] = 3" in shown, shown
    check_ctf(trace)


def lttng_has_its_names_and_values(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    maker.format("irq", "softirq_entry", 301, [("unsigned int vec", 8, 4, 0)])
    maker.format("timer", "hrtimer_expire_entry", 302, [("void * hrtimer", 8, 8, 0), ("s64 now", 16, 8, 1)])
    maker.format("kvm", "kvm_entry", 303, [("unsigned int vcpu_id", 8, 4, 0), ("unsigned long rip", 16, 8, 0)])
    maker.format("kvm", "kvm_userspace_exit", 304, [("__u32 reason", 8, 4, 0)])
    maker.format("power", "cpu_frequency", 305, [("u32 state", 8, 4, 0), ("u32 cpu_id", 12, 4, 0)])
    maker.format("kmem", "mm_page_alloc", 306, [("unsigned long pfn", 8, 8, 0), ("unsigned int order", 16, 4, 0)])
    maker.format("net", "netif_receive_skb", 307, [("unsigned int len", 8, 4, 0)])
    maker.format("block", "block_rq_issue", 308, [("dev_t dev", 8, 4, 0), ("char rwbs[8]", 12, 8, 0)])
    maker.format("irq_vectors", "call_function_entry", 309, [("int vector", 8, 4, 1)])
    maker.format("raw_syscalls", "sys_enter", 310, [("long id", 8, 8, 1), ("unsigned long args[6]", 16, 48, 0)])
    maker.format("raw_syscalls", "sys_exit", 311, [("long id", 8, 8, 1), ("long ret", 16, 8, 1)])
    maker.format("syscalls", "sys_enter_openat", 312, [
        ("int __syscall_nr", 8, 4, 1), ("int dfd", 16, 8, 0), ("const char * filename", 24, 8, 0)])
    maker.format("sched", "sched_process_fork", 313, [
        ("char parent_comm[16]", 8, 16, 0), ("pid_t parent_pid", 24, 4, 1), ("char child_comm[16]", 28, 16, 0),
        ("pid_t child_pid", 44, 4, 1)])
    cut = (1 << 64) - 1
    records = [
        (300, switch_body(maker, ("rt", 5), ("norm", 6), prev_prio=10, state=256, next_prio=139)),
        (301, struct.pack("<I", 3)), (302, struct.pack("<Qq", 9, 1)), (303, struct.pack("<I4xQ", 1, 2)),
        (304, struct.pack("<I", 2)), (305, struct.pack("<II", 1000, 0)), (306, struct.pack("<QI", 1, 2)),
        (307, struct.pack("<I", 60)), (308, struct.pack("<I8s", 8, b"FWFSM")), (309, struct.pack("<i", 251)),
        (310, struct.pack("<q6Q", 257, -100 & cut, 0x1000, 0x80000, 0, 7, 7)), (311, struct.pack("<qq", 0, -11)),
        (310, struct.pack("<q6Q", 202, 0x2000, 128, 2, 0, 0, 0)), (310, struct.pack("<q6Q", 100000, 1, 2, 3, 4, 5, 6)),
        (310, struct.pack("<q6Q", 384, 1, 2, 3, 4, 5, 6)), (311, struct.pack("<qq", -1, 5)),
        (312, struct.pack("<i4xQQ", 257, -100 & 0xffffffff, 0x1000)),
        (313, b"parent".ljust(16, b"\0") + struct.pack("<i", 5) + b"child".ljust(16, b"\0") + struct.pack("<i", 8))]
    maker.add_cpu(0, [(10 + i, maker.record(event_id, 5, body)) for i, (event_id, body) in enumerate(records)])
    trace, _ = made(directory, maker, "--no-synthetic")
    found = [(event.name, event.fields) for event in events(trace)]
    wanted = [
        ("sched_switch", {"prev_tid": 5, "prev_prio": -90, "prev_state": 256, "next_tid": 6, "next_prio": 39}),
        ("irq_softirq_entry", {"vec": 3}), ("timer_hrtimer_expire_entry", {"hrtimer": 9, "now": 1}),
        ("kvm_x86_entry", {"vcpu_id": 1}), ("kvm_userspace_exit", {"reason": 2}),
        ("power_cpu_frequency", {"state": 1000, "cpu_id": 0}), ("kmem_mm_page_alloc", {"order": 2}),
        ("net_if_receive_skb", {"len": 60}),
        # preflush, write, FUA, sync, metadata
        ("block_rq_issue", {"rwbs": 1 << 10 | 1 | 1 << 9 | 1 << 5 | 1 << 6}),
        ("x86_irq_vectors_call_function_entry", {"vector": 251}),
        ("syscall_entry_openat", {"dfd": -100, "filename": 0x1000, "flags": 0x80000, "mode": 0}),
        ("syscall_exit_read", {"ret": -11}), ("syscall_entry_futex", {"uaddr": 0x2000, "op": 128, "val": 2}),
        ("syscall_entry_unknown", {"id": 100000, "args": [1, 2, 3, 4, 5, 6]}),
        # 384 is in no 64-bit table: a 32-bit program's arch_prctl
        ("compat_syscall_entry_arch_prctl", {"args": [1, 2, 3, 4, 5, 6]}), ("syscall_exit_unknown", {"id": -1, "ret": 5}),
        ("syscall_entry_openat", {"dfd": -100, "filename": 0x1000}),
        ("sched_process_fork", {"parent_tid": 5, "child_tid": 8})]
    for (name, fields), (wanted_name, wanted_fields) in zip(found, wanted):
        assert name == wanted_name, "%s, wanted %s" % (name, wanted_name)
        assert wanted_fields.items() <= fields.items(), "%s: %s, wanted %s" % (name, fields, wanted_fields)
    assert len(found) == len(wanted)


def system_calls_have_the_numbers_of_their_machine(directory):
    for machine, long_bytes, number, name in (("x86_64", 8, 0, "read"), ("aarch64", 8, 63, "read"), ("i686", 4, 3, "read"),
                                              ("aarch64", 8, 56, "openat"), ("i686", 4, 295, "openat")):
        maker = Maker(long_bytes=long_bytes)
        maker.machine = machine
        kind, width = ("q", 8) if long_bytes == 8 else ("i", 4)
        maker.format("raw_syscalls", "sys_exit", 311, [("long id", 8, width, 1), ("long ret", 8 + width, width, 1)])
        maker.add_cpu(0, [(1, maker.record(311, 1, struct.pack("<2" + kind, number, 4)))])
        case = os.path.join(directory, machine + str(number))
        os.mkdir(case)
        trace, _ = made(case, maker, "--no-synthetic")
        (event,) = events(trace)
        assert event.name == "syscall_exit_" + name, "%s %d: %s" % (machine, number, event.name)


def threads_without_saved_names_are_learned(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    maker.add_cpu(0, [(1, maker.record(300, 1, switch_body(maker, ("first", 1), ("second", 2)))),
                      (2, maker.record(300, 2, switch_body(maker, ("second", 2), ("third", 3))))])
    trace, _ = made(directory, maker)
    found = events(trace)
    assert [event.context["procname"] for event in only(found, "sched_switch")] == ["first", "second"]
    dump = {event.fields["tid"]: event.fields for event in only(found, "lttng_statedump_process_state")}
    assert {tid: fields["name"] for tid, fields in dump.items()} == {1: "first", 2: "second", 3: "third"}, dump
    assert dump[1]["status"] == 6 and dump[2]["status"] == 2, dump
    assert all(fields["tandem_synthetic"] == 1 for fields in dump.values())


def threads_that_are_born_later_or_only_named_are_not_in_the_state_dump(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    maker.format("sched", "sched_process_fork", 313, [
        ("char parent_comm[16]", 8, 16, 0), ("pid_t parent_pid", 24, 4, 1), ("char child_comm[16]", 28, 16, 0),
        ("pid_t child_pid", 44, 4, 1)])
    fork = b"parent".ljust(16, b"\0") + struct.pack("<i", 5) + b"child".ljust(16, b"\0") + struct.pack("<i", 8)
    maker.cmdlines = b"8 child\n9 sleeper\n"
    maker.add_cpu(0, [(1, maker.record(313, 5, fork)),
                      (2, maker.record(300, 5, switch_body(maker, ("parent", 5), ("child", 8))))])
    trace, _ = made(directory, maker)
    dump = only(events(trace), "lttng_statedump_process_state")
    # 9 has a saved name: so has every thread that ever ran, and most are dead.
    assert [event.fields["tid"] for event in dump] == [5], dump
    assert dump[0].time < 1 or dump[0].time == 0, dump[0]


main([value for name, value in list(globals().items())
      if callable(value) and getattr(value, "__module__", "") == "__main__" and
      name not in ("only", "made", "main")])
