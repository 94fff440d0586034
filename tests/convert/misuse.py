#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem convert and its neighbours under options that ask for nonsense, and with outputs that take nothing.

usage: misuse.py DATA-DIRECTORY
"""
import json
import os
import subprocess
import sys

from convert_case import SOURCE, TANDEM, check_ctf, convert, events, main, run

DATA = sys.argv[1]
HOST = os.path.join(DATA, "kvm", "kvm-tsc.dat")
GUEST = "guest=" + os.path.join(DATA, "kvm", "kvm-tsc-l2.dat")


def times_beyond_63_bits_leave_an_output_that_is_read(directory):
    for number, offset in enumerate((2**63 - 1, -9 * 10**18)):
        out = os.path.join(directory, str(number))
        done = convert(out, HOST, GUEST, "--offset", "guest=%d" % offset, code=3)
        assert "1981 times are out of what the output's clock can show" in done.err, done.err
        host = events(os.path.join(out, "host"))
        guest = events(os.path.join(out, "guest"))
        assert len([event for event in host if event.name == "sched_switch"]) > 1000, len(host)
        assert len(guest) >= 1981, len(guest)
        assert min(event.time for event in host) > 0, "the host's own times are moved"


def a_clock_frequency_that_overflows_leaves_an_output_that_is_read(directory):
    convert(directory + "/ctf", os.path.join(DATA, "single", "v7-raw-tsc.dat"), "--clock-hz", "1", code=3)
    assert len(events(directory + "/ctf/host")) >= 802
    convert(directory + "/js", os.path.join(DATA, "single", "v7-raw-tsc.dat"), "--clock-hz", "1", "--to", "json",
            code=3)
    with open(directory + "/js/trace.json", encoding="utf-8") as file:
        json.load(file)


def a_selection_of_nothing_leaves_an_output_that_is_read(directory):
    for name in ("kvm/kvm-tsc.dat", "perf/host-monoraw-callchain.data"):
        out = os.path.join(directory, name.replace("/", "-"))
        convert(out, os.path.join(DATA, name), "--events", "no_such_event")
        done = run("babeltrace2", out)
        assert (done.code, done.out, done.err) == (0, "", ""), done
        check_ctf(out)


def traces_that_were_written_stay_where_another_fails(directory):
    os.mkdir(directory + "/bad")
    with open(directory + "/bad/metadata", "w", encoding="utf-8") as file:
        file.write("no metadata\n")
    done = convert(directory + "/out", HOST, "guest=" + directory + "/bad", code=3)
    assert "bad/metadata" in done.err, done.err
    check_ctf(directory + "/out/host")


def metadata_that_declare_nothing_are_refused(directory):
    os.mkdir(directory + "/trace")
    with open(directory + "/trace/metadata", "wb"), open(directory + "/trace/c0_0", "wb") as stream:
        stream.write(bytes(4096))
    done = convert(directory + "/out", directory + "/trace", code=1)
    assert "trace/metadata: 0 bytes of metadata declare no stream" in done.err, done.err
    assert not os.path.exists(directory + "/out")


def an_interval_that_ends_before_it_begins_is_refused(directory):
    done = run(TANDEM, "convert", "-o", directory + "/out", "--begin", "3", "--end", "2", HOST)
    assert done.code == 2 and "--begin is later than --end" in done.err, done
    assert not os.path.exists(directory + "/out")


def what_the_user_gave_by_hand_is_called_so(directory):
    done = convert(directory + "/out", HOST, GUEST, "--offset", "guest=1000")
    assert "clock: put on the host's by offset given by hand" in done.out, done.out
    assert "corrections file" not in done.out, done.out


def a_folder_of_traces_is_checked_as_a_trace_is(directory):
    convert(directory + "/out", HOST, GUEST)
    said = check_ctf(directory + "/out")
    assert "out/host: " in said and "out/guest: " in said, said
    os.mkdir(directory + "/none")
    assert "/none: error: this is a directory without traces" in check_ctf(directory + "/none", code=1)


def each_view_is_told_to_work_or_what_it_lacks(directory):
    def views(*dirs, **more):
        found = {}
        for line in check_ctf(*dirs, **more).splitlines():
            if ": view: " in line:
                trace, rest = line.split(": view: ")
                found.setdefault(os.path.basename(trace), {}).__setitem__(*rest.rsplit(": ", 1))
        return found

    fused, exits = "Virtual CPU, fused virtual machine view", "KVM exits"
    convert(directory + "/out", HOST, GUEST)
    said = views(directory + "/out")
    assert said["host"]["Control Flow, Resources, CPU usage"] == said["guest"][fused] == said["host"][exits] == "works", said
    assert said["host"]["system call latency"] == "lacks syscall_entry_*, syscall_exit_*", said
    assert "irq_softirq_entry" in said["host"]["interrupts"] and said["guest"]["interrupts"] == "works", said
    assert fused not in said["host"] and exits not in said["guest"], said
    # The guest alone; a part of the host beside it; neither with what is made up.
    assert views(directory + "/out/guest")["guest"][fused].count("(host)") == 4
    assert fused not in views(directory + "/out/host")["host"]
    convert(directory + "/part", HOST, GUEST, "--events", "sched_*", "--no-synthetic")
    said = views(directory + "/part")
    assert "vmsync_gh_guest" in views(directory + "/part/guest", directory + "/out/host")["guest"][fused], said
    assert fused not in said["guest"] and said["host"][exits] == "lacks kvm_x86_entry, kvm_x86_exit", said
    assert "lacks irq_handler_entry" in said["guest"]["interrupts"], said
    assert not run(TANDEM, "check-ctf", "-q", directory + "/out").out
    # A documented table is the same.
    with open(os.path.join(SOURCE, "docs", "trace-compass.md"), encoding="utf-8") as page:
        table = page.read().split("## What each view needs")[1].split("## ")[0]
    for view, lacks in views(directory + "/part")["host"].items():
        row = [line for line in table.splitlines() if line.startswith("| %s |" % view)]
        assert len(row) == 1 and (lacks == "works" or all("`%s`" % event in row[0] for event in
                                                          lacks[6:].replace(" or ", ", ").split(", "))), (view, lacks, row)


def an_output_that_takes_nothing_is_no_success(directory):
    for command, code in ((["info", HOST], 1), (["info", "--json", HOST], 1), (["view", HOST], 1),
                          (["convert", "-o", directory + "/out", HOST], 3), (["check-ctf", directory + "/out"], 1)):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TANDEM, *command], stdout=full, stderr=subprocess.PIPE, timeout=120, check=False)
        assert b"cannot write to the standard output" in done.stderr, (command, done.stderr)
        assert done.returncode in (code, 3), (command, done.returncode)
    check_ctf(directory + "/out")


def closed_streams_get_no_file_of_ours(directory):
    def close():
        for number in range(3):
            os.close(number)

    subprocess.run([TANDEM, "convert", "-o", directory + "/out", HOST, GUEST, "--target-bound", "1"],
                   preexec_fn=close, timeout=120, check=False)
    check_ctf(directory + "/out/host", directory + "/out/guest")
    assert len(events(directory + "/out/guest")) >= 1981


main([each_view_is_told_to_work_or_what_it_lacks, times_beyond_63_bits_leave_an_output_that_is_read,
      a_clock_frequency_that_overflows_leaves_an_output_that_is_read,
      a_selection_of_nothing_leaves_an_output_that_is_read, traces_that_were_written_stay_where_another_fails,
      metadata_that_declare_nothing_are_refused,
      an_interval_that_ends_before_it_begins_is_refused, what_the_user_gave_by_hand_is_called_so,
      a_folder_of_traces_is_checked_as_a_trace_is, an_output_that_takes_nothing_is_no_success,
      closed_streams_get_no_file_of_ours])
