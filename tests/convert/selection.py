#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Options of tandem convert that choose a part, or relate clocks by hand. usage: selection.py DATA-DIRECTORY"""
import json
import os
import sys

from convert_case import TANDEM, check_ctf, convert, events, main, run

DATA = sys.argv[1]
HOST = os.path.join(DATA, "kvm", "kvm-tsc.dat")
GUEST = os.path.join(DATA, "kvm", "kvm-tsc-l2.dat")


def real(path):
    return [event for event in events(path) if not event.fields.get("tandem_synthetic")]


def a_range_of_time(directory):
    convert(directory + "/all", HOST)
    every = real(directory + "/all/host")
    begin, end = every[len(every) // 4].time, every[len(every) // 2].time
    done = convert(directory + "/part", "--begin", "%d.%09d" % divmod(begin, 10**9), "--end",
                   "%d.%09d" % divmod(end, 10**9), HOST)
    part = real(directory + "/part/host")
    wanted = [event for event in every if begin <= event.time <= end]
    assert [(e.time, e.name, e.fields) for e in part] == [(e.time, e.name, e.fields) for e in wanted]
    assert "%d not selected" % (len(every) - len(wanted)) in done.out, done.out
    check_ctf(directory + "/part/host")


def events_by_glob(directory):
    convert(directory + "/all", HOST)
    every = real(directory + "/all/host")
    for globs, fits in ((["sched_*"], lambda n: n.startswith("sched_")), (["kvm:*"], lambda n: n.startswith("kvm_")),
                        (["kvm_entry", "kvm_x86_exit"], lambda n: n in ("kvm_x86_entry", "kvm_x86_exit"))):
        out = directory + "/" + globs[0].replace("*", "").replace(":", "")
        convert(out, *[word for glob in globs for word in ("--events", glob)], HOST)
        assert [e.name for e in real(out + "/host")] == [e.name for e in every if fits(e.name)], globs


def cpus_by_list(directory):
    convert(directory + "/all", HOST)
    convert(directory + "/one", "--cpus", "1-5,9", HOST)
    assert {event.cpu for event in events(directory + "/one/host")} == {1}
    wanted = [e for e in real(directory + "/all/host") if e.cpu == 1]
    assert len(real(directory + "/one/host")) == len(wanted)
    assert run(TANDEM, "convert", "-o", directory + "/x", "--cpus", "1,", HOST).code == 2


def an_offset_by_hand_replaces_the_time_shift(directory):
    convert(directory + "/raw", "guest=" + GUEST)
    convert(directory + "/by", "--offset", "guest=123456789", HOST, "guest=" + GUEST)
    shifted = [event.time for event in real(directory + "/by/guest")]
    assert shifted, "nothing came"
    alone = convert(directory + "/zero", "--offset", "guest=0", HOST, "guest=" + GUEST)
    assert "given by hand" in alone.out, alone.out
    assert [t + 123456789 for t in (event.time for event in real(directory + "/zero/guest"))] == shifted


def a_tsc_offset_by_hand_is_the_one_of_kvm(directory):
    """The file's own shift is KVM's exact offset, negated: given by hand it comes to the same."""
    info = run(TANDEM, "info", "--json", HOST, GUEST).out
    convert(directory + "/file", HOST, "guest=" + GUEST)
    own = [event.time for event in real(directory + "/file/guest")]
    guest = [machine for machine in json.loads(info)["machines"] if machine["sync_samples"]]
    offset = guest[0]["sync_samples"][0]["least_offset"]
    convert(directory + "/hand", "--tsc-offset", "guest=%d" % -offset, HOST, "guest=" + GUEST)
    assert [event.time for event in real(directory + "/hand/guest")] == own
    convert(directory + "/unsigned", "--tsc-offset", "guest=%d" % (-offset % 2**64), HOST, "guest=" + GUEST)
    assert [event.time for event in real(directory + "/unsigned/guest")] == own


def a_target_that_nobody_vouches_for_is_missed(directory):
    done = convert(directory + "/out", "--target-bound", "1000", HOST, GUEST, code=3)
    assert "is not told" in done.err, done.err
    convert(directory + "/hand", "--target-bound", "1000", "--offset", "guest=0", HOST, "guest=" + GUEST)


main([a_range_of_time, events_by_glob, cpus_by_list, an_offset_by_hand_replaces_the_time_shift,
      a_tsc_offset_by_hand_is_the_one_of_kvm, a_target_that_nobody_vouches_for_is_missed])
