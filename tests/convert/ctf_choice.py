#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem convert: a part of CTF inputs, CTF to JSON, CTF beside trace.dat.

usage: ctf_choice.py DATA-DIRECTORY
"""
import collections
import json
import os
import sys

import bt2

from convert_case import TANDEM, check_ctf, convert, main, run

DATA = os.path.abspath(sys.argv[1])
PAIR = os.path.join(DATA, "lttng-kernel", "pair1")
UST = os.path.join(DATA, "lttng", "ust-basic")
HOST, GUEST = "host=" + PAIR + "/host", "guest=" + PAIR + "/guest"
TRUTH = ["--corrections", "guest=" + PAIR + "/truth.corrections"]
DAT = os.path.join(DATA, "kvm", "kvm-tsc.dat")
Seen = collections.namedtuple("Seen", "time name cpu")


def seen(path):
    return [Seen(message.default_clock_snapshot.ns_from_origin, message.event.name,
                 int(message.event.packet.context_field["cpu_id"]))
            for message in bt2.TraceCollectionMessageIterator(path) if type(message) is bt2._EventMessageConst]


def seconds(time_ns):
    return "%d.%09d" % divmod(time_ns, 10 ** 9)


def a_part_of_a_trace_is_what_was_chosen_and_nothing_else(directory):
    for name, extra in (("plain", []), ("shifted", ["--offset", "guest=727894648972"]), ("bent", TRUTH)):
        source = HOST if name == "plain" else GUEST
        machine = source.split("=")[0]
        convert("%s/%s-all" % (directory, name), source, *extra)
        whole = seen("%s/%s-all" % (directory, name))
        begin, end = whole[len(whole) // 3].time, whole[len(whole) // 2].time
        for number, (options, wanted) in enumerate((
                (["--begin", seconds(begin), "--end", seconds(end)], lambda event: begin <= event.time <= end),
                (["--events", "sched_*", "--events", "irq_handler_entry"],
                 lambda event: event.name.startswith("sched_") or event.name == "irq_handler_entry"),
                (["--cpus", "0"], lambda event: event.cpu == 0),
                (["--cpus", "0-5", "--events", "sched_switch", "--begin", seconds(begin)],
                 lambda event: event.name == "sched_switch" and event.time >= begin))):
            out = "%s/%s-%d" % (directory, name, number)
            done = convert(out, source, *extra, *options)
            chosen = [event for event in whole if wanted(event)]
            assert chosen and sorted(seen(out)) == sorted(chosen), (name, options, len(seen(out)), len(chosen))
            assert "%d of %d events" % (len(chosen), len(whole)) in done.out, done.out
            assert not os.path.exists(os.path.join(out, machine, "index"))
            check_ctf(out)
            text = run("babeltrace2", out)
            assert text.code == 0 and not text.err, text.err[:500]


def a_user_space_event_is_chosen_with_and_without_its_provider(directory):
    for number, glob in enumerate(("rig:step", "step", "rig:*")):
        out = "%s/%d" % (directory, number)
        convert(out, UST, "--events", glob)
        names = {event.name for event in seen(out)}
        assert "rig:step" in names and (len(names) == 1) == (glob != "rig:*"), names


def what_chooses_nothing_is_told_by_name(directory):
    for number, source in enumerate((HOST, "host=" + DAT, "host=" + os.path.join(DATA, "perf", "host-mono.data"))):
        if not os.path.exists(source.split("=")[1]):
            continue
        for to in ("ctf", "json"):
            done = convert("%s/%d%s" % (directory, number, to), source, "--events", "no_such*", "--events", "sched_switch",
                           "--cpus", "0,77-99", "--to", to)
            assert "--events \"no_such*\" chose no event" in done.err, done.err
            assert "--cpus 77-99 chose no event" in done.err, done.err
            assert "sched_switch" not in done.err and "--cpus 0 " not in done.err, done.err


def json_has_every_event_of_ctf_inputs(directory):
    convert(directory + "/ctf", HOST, GUEST, *TRUTH)
    convert(directory + "/json", HOST, GUEST, *TRUTH, "--to", "json")
    with open(directory + "/json/trace.json", encoding="utf-8") as file:
        told = json.load(file, parse_float=str)["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in told if event["name"] == "process_name"}
    for pid, name in names.items():
        events = seen(os.path.join(directory, "ctf", name))
        own = [event for event in told if event["pid"] == pid and event["ph"] in "iBE"]
        assert sorted(event.time for event in events) == sorted(int(event["ts"].replace(".", "")) for event in own)
        switches = [event for event in events if event.name == "sched_switch"]
        slices = [event for event in told if event["pid"] == pid and event["ph"] == "X"]
        assert switches and len(slices) > len(switches) / 4, (len(switches), len(slices))
        assert [event for event in own if event["ph"] == "B" and event["name"] == "read"], "no system call by its name"
    assert sorted(names.values()) == ["guest", "host"], names


def json_is_refused_where_it_is_there_already(directory):
    convert(directory + "/out", UST, "--to", "json")
    done = run(TANDEM, "convert", "-o", directory + "/out", UST, "--to", "json")
    assert done.code == 1 and "exists" in done.err, done
    assert os.listdir(directory + "/out") == ["trace.json"]


def ctf_stands_beside_other_traces_on_one_time(directory):
    # A trace.dat of the host, an LTTng guest with corrections: both on the host's readings.
    convert(directory + "/out", "host=" + DAT, GUEST, *TRUTH)
    assert sorted(os.listdir(directory + "/out")) == ["guest", "host"]
    with open(PAIR + "/truth.corrections", encoding="ascii") as source:
        (g0, h0), (g1, h1) = [tuple(int(word) for word in line.split()[1:3]) for line in source if line.startswith("k ")]
    raw = [message.default_clock_snapshot.value for message in bt2.TraceCollectionMessageIterator(PAIR + "/guest")
           if type(message) is bt2._EventMessageConst]
    guest = [event.time for event in seen(directory + "/out/guest")]
    shifts = {time - (h0 + (value - g0) * (h1 - h0) // (g1 - g0)) for time, value in zip(guest, raw)}
    assert len(shifts) == 1, shifts
    convert(directory + "/alone", "host=" + DAT)
    before, after = seen(directory + "/alone/host"), seen(directory + "/out/host")
    assert {one.time - other.time for one, other in zip(after, before)} == shifts, "host and guest have other epochs"
    check_ctf(directory + "/out/host", directory + "/out/guest")
    convert(directory + "/json", "host=" + DAT, GUEST, *TRUTH, "--to", "json")
    with open(directory + "/json/trace.json", encoding="utf-8") as file:
        told = json.load(file)["traceEvents"]
    assert {event["pid"] for event in told if event["ph"] == "i"} == {1, 2}


def a_trace_dat_guest_of_an_lttng_host_gets_its_epoch(directory):
    epoch = 1796039857284825211  # of the host's clock, as its metadata has it
    guest = os.path.join(DATA, "kvm", "kvm-tsc-l2.dat")
    convert(directory + "/alone", "guest=" + guest, "--offset", "guest=0")
    convert(directory + "/out", HOST, "guest=" + guest, "--offset", "guest=1000")
    before = [event.time for event in seen(directory + "/alone/guest") if not event.name.startswith("lttng_state")]
    after = [event.time for event in seen(directory + "/out/guest") if not event.name.startswith("lttng_state")]
    assert before and {other - one for one, other in zip(before, after)} == {epoch + 1000}, (before[0], after[0])


def names_that_clash_are_told(directory):
    done = convert(directory + "/out", "g=" + DAT, "g=" + PAIR + "/guest")
    assert "another input is called \"g\" too, so this one is \"g-2\"" in done.err, done.err
    assert sorted(os.listdir(directory + "/out")) == ["g", "g-2"]
    done = convert(directory + "/two", "g=" + DAT, "g=" + os.path.join(DATA, "kvm", "kvm-tsc-l2.dat"))
    assert "so this one is \"g-2\"" in done.err, done.err


def a_name_that_is_none_is_told_with_what_is_allowed(directory):
    for command in ("convert", "view", "info"):
        for name in ("b d", "-x", ".x", "a+b", "n" * 65):
            done = run(TANDEM, command, "--", name + "=" + DAT)
            assert done.code == 2 and "is no name for a machine: letters, digits" in done.err, (command, name, done)
    path = os.path.join(directory, "a b=c.dat")
    os.symlink(DAT, path)
    for argument in (path, "./a b=c.dat", "a b=c.dat"):
        done = run(TANDEM, "info", argument, cwd=directory)
        assert done.code == 0, (argument, done)


def one_input_that_cannot_be_read_does_not_stop_the_others(directory):
    with open(DAT, "rb") as file:
        head = file.read(3000)
    bad = {"cut.dat": head, "junk.dat": bytes(range(256)) * 10, "empty.dat": b""}
    for name, content in bad.items():
        with open(os.path.join(directory, name), "wb") as out:
            out.write(content)
    os.mkdir(directory + "/nothing")
    for number, name in enumerate([*bad, "missing.dat", "nothing"]):
        path = os.path.join(directory, name)
        for others in ([DAT], [DAT, UST], [UST]) if number == 0 else ([DAT, UST],):
            for order in ([*others, path], [path, *others])[:2 if number < 2 else 1]:
                out = "%s/%d%d%d" % (directory, number, len(others), order[0] == path) + others[0][-3:]
                done = convert(out, *order, code=3)
                assert name in done.err, done.err
                assert len(os.listdir(out)) == len(others), os.listdir(out)
                viewed = run(TANDEM, "view", *order)
                assert viewed.code == 3 and name in viewed.err, (order, viewed.code, viewed.err)
                assert viewed.out.count("\n") == (22285 if DAT in others else 0) + (840 if UST in others else 0), order
        done = run(TANDEM, "convert", "-o", directory + "/none", path)
        assert done.code == 1 and name in done.err and not os.path.exists(directory + "/none"), done


main([a_part_of_a_trace_is_what_was_chosen_and_nothing_else, a_user_space_event_is_chosen_with_and_without_its_provider,
      what_chooses_nothing_is_told_by_name, json_has_every_event_of_ctf_inputs,
      json_is_refused_where_it_is_there_already, ctf_stands_beside_other_traces_on_one_time,
      a_trace_dat_guest_of_an_lttng_host_gets_its_epoch, names_that_clash_are_told,
      a_name_that_is_none_is_told_with_what_is_allowed, one_input_that_cannot_be_read_does_not_stop_the_others])
