#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""CTF of other tracers than LTTng, through tandem convert and tandem view: clocks of any frequency or none, sessions of which
nothing is written yet, CTF 2."""
import os
import re
import struct

from convert_case import TANDEM, convert, main, run
import ctf_maker

ONE = struct.pack("<I", 1)
OFFSET_NS = 1000000001


def made(directory, name, times=(5, 32768), **how):
    return ctf_maker.write(os.path.join(directory, name), ctf_maker.metadata(**how),
                           [ctf_maker.packet([(time, 0, ONE) for time in times])])


def viewed(*arguments, code=0):
    done = run(TANDEM, "view", *arguments)
    assert done.code == code, done
    return [int(seconds) * 10**9 + int(ns) for seconds, ns in re.findall(r"^\[(\d+)\.(\d{9})\]", done.out, re.M)]


def printed(trace):
    """The times of a trace as babeltrace2 prints them."""
    done = run("babeltrace2", "--clock-seconds", "--no-delta", trace)
    assert done.code == 0, done.err
    return [int(seconds) * 10**9 + int(ns) for seconds, ns in re.findall(r"^\[(\d+)\.(\d{9})\]", done.out, re.M)]


def clocks_of_any_frequency_are_moved_by_an_offset(directory):
    for hz, offset_s, cycles in ((32768, 1000, 7), (3700000000, 10, 0), (10**9, 3, 9), (25000000, 0, 12345)):
        text = "freq = %d; offset_s = %d; offset = %d;" % (hz, offset_s, cycles)
        trace = made(directory, "at-%d" % hz, clock=text)
        own = [offset_s * 10**9 + (cycles + time) * 10**9 // hz for time in (5, 32768)]
        out = trace + "-out"
        convert(out, "guest=" + trace, "--offset", "guest=%d" % OFFSET_NS)
        for told in (printed(out), viewed("guest=" + trace, "host=" + trace, "--offset", "guest=%d" % OFFSET_NS)[2:]):
            # A stamp is rounded once when its cycles become nanoseconds, and once more when they are put in a frame.
            assert len(told) == 2 and all(abs(time - wanted - OFFSET_NS) <= 1 for time, wanted in zip(told, own)), \
                (hz, told, own)


def machines_whose_clocks_do_not_say_that_they_are_set_come_out_on_one_timeline(directory):
    host = made(directory, "host", clock="freq = 32768; offset_s = 1000; offset = 0;")
    guest = made(directory, "guest", clock="freq = 1000000000; offset = 0; absolute = FALSE;")
    out = os.path.join(directory, "out")
    convert(out, "host=" + host, "guest=" + guest, "--offset", "guest=500000000")
    times = printed(out)
    assert len(times) == 4 and times == sorted(times), times


def a_trace_without_a_clock_comes_through(directory):
    trace = made(directory, "no-clock", clock=None)
    convert(trace + "-out", "guest=" + trace, "--offset", "guest=1000")
    done = run("babeltrace2", trace + "-out")
    assert done.code == 0 and done.out.count("x = 1") == 2, done


def a_session_of_which_nothing_is_written_yet_is_no_fault(directory):
    for name, streams in (("none", ()), ("zero", ("c0_0", "c0_1"))):
        trace = os.path.join(directory, name, "ust", "uid", "1000", "64-bit")
        os.makedirs(trace)
        with open(os.path.join(trace, "metadata"), "w", encoding="utf-8") as file:
            file.write(ctf_maker.metadata())
        for stream in streams:
            with open(os.path.join(trace, stream), "wb"):
                pass
        session = os.path.join(directory, name)
        assert viewed(session) == []
        # Beside one that has events it takes nothing away.
        other = made(directory, name + "-other")
        assert len(viewed("host=" + session, "guest=" + other)) == 2
        convert(os.path.join(directory, name + "-out"), session)


def ctf_2_is_named_and_the_remedy(directory):
    trace = ctf_maker.write(os.path.join(directory, "two"), '\x1e{"type":"preamble","version":2}\n', [])
    done = convert(os.path.join(directory, "out"), trace, code=1)
    assert "CTF 2, wanted CTF 1.8" in done.err and "--trace-format=ctf-1.8" in done.err, done.err
    assert not os.path.exists(os.path.join(directory, "out"))
    done = run(TANDEM, "check-ctf", trace)
    assert done.code == 1 and "CTF 2" in done.out, done
    done = run(TANDEM, "view", trace)
    # babeltrace2 2.1 reads it, and then nothing is recorded here.
    assert "it is CTF 2" in done.err if done.code else not done.out, done


def a_negative_value_is_replaced_whole(directory):
    trace = made(directory, "negative", times=(20 * 10**9, 20 * 10**9 + 1), clock="freq = 1000000000; offset_s = -12; offset = 5;")
    with open(os.path.join(trace, "metadata"), "a", encoding="utf-8") as file:
        file.write('env { hostname = "g"; tandem_bound_ns = -1; tandem_version = "old"; };\n')
    for offset in (1000, -8 * 10**9, -(2 * 10**9 + 1)):
        out = os.path.join(directory, "out%d" % offset)
        convert(out, "guest=" + trace, "--offset", "guest=%d" % offset)
        assert printed(out) == [8 * 10**9 + 5 + offset, 8 * 10**9 + 6 + offset], printed(out)
    with open(os.path.join(out, "guest", "metadata"), encoding="utf-8") as file:
        text = file.read()
    assert re.search(r"tandem_bound_ns = 0;", text) and '"old"' not in text, text


def an_offset_below_zero_is_one_that_readers_take(directory):
    for clock in ("freq = 1000000000;", "freq = 1000000000; offset = 0;", "freq = 1000000000; offset_s = 0;"):
        trace = made(directory, "below%d" % len(clock), times=(5, 10**9), clock=clock)
        convert(trace + "-out", "guest=" + trace, "--offset", "guest=-3")
        done = run("babeltrace2", "--clock-seconds", "--no-delta", trace + "-out")
        assert done.code == 0 and re.findall(r"^\[(.*?)\]", done.out, re.M) == ["0.000000002", "0.999999997"], done


def metadata_and_streams_that_ask_for_endless_work_take_none(directory):
    endless = 'event { name = "e"; id = 0; stream_id = 0; fields := struct { struct { } a[16000000]; uint32_t x; }; };'
    trace = ctf_maker.write(os.path.join(directory, "endless"), ctf_maker.metadata(event=endless),
                            [ctf_maker.packet([(1000 + i, 0, ONE) for i in range(2000)])])
    assert "2000 events" in run(TANDEM, "check-ctf", trace).out
    convert(trace + "-out", trace)
    # A good packet, then nothing but the words that packets begin with.
    trace = ctf_maker.write(os.path.join(directory, "words"), ctf_maker.metadata(),
                            [ctf_maker.packet([(1000, 0, ONE)]), struct.pack("<I", 0xc1fc1fc1) * (1 << 18)])
    done = convert(trace + "-out", trace, code=3)
    assert "1048576 bytes" in done.err and printed(trace + "-out") == [1000], done.err


def links_that_lead_round_and_round_are_not_followed(directory):
    made(directory, "trace")
    for i in range(8):
        os.symlink(".", os.path.join(directory, "link%d" % i))
    assert viewed(directory) == [5, 32768]
    convert(os.path.join(directory, "trace-out"), directory)


def no_text_of_a_trace_speaks_to_the_terminal(directory):
    event = ('event { name = "e"; id = 0; stream_id = 0; fields := struct '
             '{ enum : uint32_t { "a\\033[31mb" = 1 } x; string s; }; };')
    trace = ctf_maker.write(os.path.join(directory, "escape"), ctf_maker.metadata(event=event),
                            [ctf_maker.packet([(1000, 0, ONE + "\x9b1m\"\\é\n".encode() + b"\xff\0")])])
    done = run(TANDEM, "view", trace)
    assert done.code == 0 and done.out.endswith('x=1(a\\x1b[31mb) s="\\xc2\\x9b1m\\"\\\\é\\n\\xff"\n'), done


main([clocks_of_any_frequency_are_moved_by_an_offset,
      machines_whose_clocks_do_not_say_that_they_are_set_come_out_on_one_timeline, a_trace_without_a_clock_comes_through,
      a_session_of_which_nothing_is_written_yet_is_no_fault, ctf_2_is_named_and_the_remedy,
      a_negative_value_is_replaced_whole, an_offset_below_zero_is_one_that_readers_take, metadata_and_streams_that_ask_for_endless_work_take_none,
      links_that_lead_round_and_round_are_not_followed, no_text_of_a_trace_speaks_to_the_terminal])
