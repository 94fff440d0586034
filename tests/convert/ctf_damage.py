#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem convert with CTF inputs that are damaged: what is readable comes, what is not is told, and babeltrace2 reads the rest.

usage: ctf_damage.py DATA-DIRECTORY
"""
import glob
import os
import shutil
import struct
import sys

import bt2

from convert_case import TANDEM, check_ctf, main, run

DATA = sys.argv[1]
UST = os.path.join(DATA, "lttng", "ust-basic")
UST_BELOW = os.path.join("ust", "uid", "65534", "64-bit")
KERNEL = os.path.join(DATA, "lttng-kernel", "pair1", "guest")
CONTEXT = 32                 # a packet's context: behind magic, uuid, stream_id, stream_instance_id
BEGIN, END, CONTENT, SIZE, NUMBER, DISCARDED = (CONTEXT + 8 * i for i in range(6))


def copy_of(directory, source, below):
    path = os.path.join(directory, "in")
    shutil.copytree(source, path)
    for folder, _, names in os.walk(path):
        os.chmod(folder, 0o755)
        for name in names:
            os.chmod(os.path.join(folder, name), 0o644)
    return path, os.path.join(path, below)


def packets_of(data):
    """Where packets begin and end: each begins with the same magic number and uuid."""
    places, at = [], 0
    while at < len(data):
        after = data.find(data[:20], at + 1)
        places.append((at, after if after > 0 else len(data)))
        at = places[-1][1]
    return places


def seen(path):
    return [(message.default_clock_snapshot.ns_from_origin, message.event.name,
             int(message.event.packet.context_field["cpu_id"]))
            for message in bt2.TraceCollectionMessageIterator(path) if type(message) is bt2._EventMessageConst]


def damage(directory, change, least, source=UST, below=UST_BELOW, stream="c0_0", code=3, extra=(), subset=True):
    """Converts a trace with one stream changed; at least a part of its events must be there, and none that was not."""
    path, folder = copy_of(directory, source, below)
    before = seen(path)
    file = os.path.join(folder, stream)
    with open(file, "rb") as opened:
        data = bytearray(opened.read())
    data = change(data, packets_of(data))
    with open(file, "wb") as opened:
        opened.write(data)
    out = os.path.join(directory, "out")
    done = run(TANDEM, "convert", "-o", out, "guest=" + path, *extra)
    assert done.code == code, "exit %d, wanted %d: %s%s" % (done.code, code, done.out, done.err)
    if code == 3:
        assert stream in done.err, "the file is not named: " + done.err
        assert "damaged" in done.err, done.err
    after = seen(out)
    if not extra and subset:
        assert set(after) <= set(before), "events that were not there"
    assert least * len(before) <= len(after), "%d of %d events, wanted %.2f" % (len(after), len(before), least)
    text = run("babeltrace2", out)
    assert text.code == 0 and "rror" not in text.err, text.err[:600]
    assert text.out.count("\n") == len(after), "babeltrace2 prints another number of events"
    check_ctf(out)
    return done, before, after


def set_word(offset, value):
    def change(data, packets):
        struct.pack_into("<Q", data, packets[0][0] + offset, value)
        return data
    return change


def a_stream_that_is_cut_gives_the_events_before_the_cut(directory):
    for number, (part, least) in enumerate(((0.3, 0.2), (0.75, 0.5), (0.999, 0.9))):
        below = os.path.join(directory, str(number))
        os.mkdir(below)
        damage(below, lambda data, _, part=part: data[:int(len(data) * part)], least)


def a_cut_in_the_only_packet_of_a_file_gives_its_events_too(directory):
    damage(directory, lambda data, _: data[:len(data) // 2], 0.3, source=KERNEL, below="kernel")


def garbage_between_packets_costs_nothing_else(directory):
    def change(data, packets):
        at = packets[1][0] if len(packets) > 1 else len(data)
        return data[:at] + bytearray(range(1, 200)) * 7 + data[at:]

    _, before, after = damage(directory, change, 1)
    assert sorted(before) == sorted(after)


def a_packet_size_that_is_wrong_costs_nothing(directory):
    for number, value in enumerate((0, 1, 8, 4096, 1 << 40, (1 << 63) + 8)):
        below = os.path.join(directory, str(number))
        os.mkdir(below)
        _, before, after = damage(below, set_word(SIZE, value), 1)
        assert sorted(before) == sorted(after), value


def a_content_size_that_is_wrong_costs_one_packet_at_most(directory):
    for number, value in enumerate((0, 8, 1 << 40)):
        below = os.path.join(directory, str(number))
        os.mkdir(below)
        damage(below, set_word(CONTENT, value), 0.5)


def times_that_are_out_of_line_cost_one_packet_at_most(directory):
    for number, (offset, value, code) in enumerate(((BEGIN, 0, 3), (BEGIN, 1 << 62, 3), (BEGIN, (1 << 64) - 1, 3),
                                                    (END, 0, 0), (END, (1 << 64) - 1, 0))):
        below = os.path.join(directory, str(number))
        os.mkdir(below)
        # A first packet that begins too early cannot be told from one that is right.
        if (offset, value) != (BEGIN, 0):
            damage(below, set_word(offset, value), 0.5, code=code)


def a_counter_that_jumps_is_no_loss_of_events(directory):
    _, before, after = damage(directory, set_word(DISCARDED, 1 << 50), 1)
    assert sorted(before) == sorted(after)


def a_wrong_magic_number_or_uuid_is_set_right(directory):
    for number, offset in enumerate((0, 3, 4, 19)):
        below = os.path.join(directory, str(number))
        os.mkdir(below)

        def change(data, packets, offset=offset):
            data[packets[-1][0] + offset] ^= 0x40
            return data

        _, before, after = damage(below, change, 1)
        assert sorted(before) == sorted(after), offset


def an_event_of_an_unknown_id_ends_its_packet_only(directory):
    def change(data, packets):
        content = struct.unpack_from("<Q", data, packets[0][0] + CONTENT)[0] // 8
        at = packets[0][0] + content // 2
        data[at:at + 64] = b"\xfd" * 64
        return data

    _, before, after = damage(directory, change, 0.3, subset=False)
    assert len(after) < len(before)


def packets_in_the_wrong_order_are_not_read_as_they_lie(directory):
    def change(data, packets):
        assert len(packets) > 1
        first, second = packets[:2]
        return data[second[0]:second[1]] + data[first[0]:first[1]] + data[second[1]:]

    damage(directory, change, 0.3)


def the_graph_way_takes_what_is_readable(directory):
    bend = os.path.join(directory, "bend.corrections")
    with open(bend, "w", encoding="ascii") as out:
        out.write("tandem-corrections 1\nhost - clock mono unit-hz 1000000000\nguest - clock mono unit-hz 1000000000\n"
                  "made 2026-11-30T12:11:29Z samples 2 used 2 bogus 0 lost 0\nmethod bounded\nassume rate-ppb 100\n"
                  "stamps user\nsegment start 0 2\nk 0 1000 5 5\nk 10000000000000 10000001000000 5 5\nend\n")
    _, before, after = damage(directory, lambda data, _: data[:len(data) // 2], 0.5,
                              extra=["--corrections", "guest=" + bend])
    assert len(after) < len(before)


def empty_files_and_strangers_are_passed_over(directory):
    path, folder = copy_of(directory, UST, UST_BELOW)
    before = seen(path)
    with open(os.path.join(folder, "c0_7"), "wb"):
        pass
    done = run(TANDEM, "convert", "-o", directory + "/out", path)
    assert done.code == 0, done
    assert sorted(seen(directory + "/out")) == sorted(before)
    # No stream at all: nothing of it may come out, and it is said.
    with open(os.path.join(folder, "notes"), "wb") as out:
        out.write(b"remember the milk\n")
    done = run(TANDEM, "convert", "-o", directory + "/out2", path)
    assert done.code == 3 and "notes" in done.err, done
    assert sorted(seen(directory + "/out2")) == sorted(before)


def streams_without_metadata_are_told(directory):
    path, folder = copy_of(directory, UST, UST_BELOW)
    os.remove(os.path.join(folder, "metadata"))
    done = run(TANDEM, "convert", "-o", directory + "/out", path)
    assert done.code == 1 and "c0_0 is a stream of a CTF trace, but the \"metadata\" beside it is missing" in done.err, done
    shutil.copytree(KERNEL, os.path.join(path, "other"))
    done = run(TANDEM, "convert", "-o", directory + "/out", path)
    assert done.code == 3 and "\"metadata\" beside it is missing" in done.err, done
    assert len(seen(directory + "/out")) == 11257


def unreadable_metadata_do_not_stop_the_other_traces(directory):
    for number, content in enumerate((b"", b"/* CTF 1.8 */ nonsense {", bytes(4096))):
        path, folder = copy_of(os.path.join(directory, str(number)), UST, UST_BELOW)
        with open(os.path.join(folder, "metadata"), "wb") as out:
            out.write(content)
        shutil.copytree(KERNEL, os.path.join(path, "zother"))
        out = os.path.join(directory, "out%d" % number)
        done = run(TANDEM, "convert", "-o", out, path)
        assert done.code == 3 and "metadata" in done.err, done
        assert len(seen(out)) == 11257, len(seen(out))


def an_index_that_does_not_fit_is_left_behind(directory):
    path, folder = copy_of(directory, UST, UST_BELOW)
    before = seen(path)
    index = sorted(glob.glob(os.path.join(folder, "index", "*.idx")))[0]
    with open(index, "r+b") as file:
        file.seek(16 + 8)
        file.write(struct.pack(">Q", 12345))
    done = run(TANDEM, "convert", "-o", directory + "/out", path)
    assert done.code == 0 and "does not fit its stream" in done.err, done
    assert not glob.glob(directory + "/out/**/" + os.path.basename(index), recursive=True)
    assert sorted(seen(directory + "/out")) == sorted(before)
    check_ctf(directory + "/out")


main([a_stream_that_is_cut_gives_the_events_before_the_cut, a_cut_in_the_only_packet_of_a_file_gives_its_events_too,
      garbage_between_packets_costs_nothing_else, a_packet_size_that_is_wrong_costs_nothing,
      a_content_size_that_is_wrong_costs_one_packet_at_most, times_that_are_out_of_line_cost_one_packet_at_most,
      a_counter_that_jumps_is_no_loss_of_events, a_wrong_magic_number_or_uuid_is_set_right,
      an_event_of_an_unknown_id_ends_its_packet_only, packets_in_the_wrong_order_are_not_read_as_they_lie,
      the_graph_way_takes_what_is_readable, empty_files_and_strangers_are_passed_over,
      streams_without_metadata_are_told, unreadable_metadata_do_not_stop_the_other_traces,
      an_index_that_does_not_fit_is_left_behind])
