#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Corrections that are of another clock, host, session or time are told of; where they fit they are used, in mixtures too."""
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "convert"))
from convert_case import SOURCE, TANDEM, main, run, view_lines

DATA = os.path.join(SOURCE, "tests", "data")


HEAD = "tandem-corrections 1\nhost %s clock %s unit-hz 1000000000\nguest %s clock %s unit-hz 1000000000\n%s"
KNOTS = "segment start 0 2\nk %d %d 70 70\nk %d %d 70 70\nend\n"


def write(path, head, first, offset, span=1000, bend=0):
    with open(path, "w", encoding="ascii") as file:
        file.write(HEAD % head + KNOTS % (first, first + offset, first + span, first + span + offset + bend))


def corrections_of_another_clock_session_or_time_are_told(directory):
    host, guest = (os.path.join(DATA, "kvm", name) for name in ("kvm-tsc.dat", "kvm-tsc-l2.dat"))
    machine = json.loads(run(TANDEM, "info", "--json", host, guest).out)["machines"][1]
    shift, clock = machine["sync_samples"][0]["least_offset"], machine["clock"]["name"]
    path = os.path.join(directory, "x.corrections")
    inputs = ["host=" + host, "web=" + guest, "--corrections", "web=" + path]
    other = "may not be for"
    for head, first, offset, said in (
            (("-", clock, "-", clock, ""), 662 * 10**9, shift, None),
            (("-", "mono", "-", clock, ""), 662 * 10**9, shift, other),
            (("-", clock, "-", "mono", ""), 662 * 10**9, shift, other),
            (("-", clock, "-", clock, ""), 662 * 10**9, shift + 10**10, "another session"),
            (("-", clock, "-", clock, ""), 10**10, shift, "before the first event"),
            (("-", clock, "-", clock, "method exact\n"), 10**10, shift, None),
            (("-", clock, "-", clock, ""), 3 * 10**13, shift, "after the first event")):
        write(path, head, first, offset)
        for arguments in (("view",), ("info",), ("convert", "-o", directory + "/out", "--force")):
            done = run(TANDEM, *arguments, *inputs)
            assert done.code == 0 and done.err.count("x.corrections") == (1 if said else 0), (arguments, head, done.err)
            assert not said or said in done.err, (arguments, head, done.err)
    # LTTng's clocks are known by the identity of a boot: one offset, and a bent line, which need not go the same way.
    pair = os.path.join(DATA, "lttng-kernel", "pair1")
    host, guest = (os.path.join(pair, name) for name in ("host", "guest"))
    inputs = ["host=" + host, "web=" + guest]
    own = ("d10e5fa2-7415-4bd3-8b87-b4daffbc4195", "mono", "AE231FB1-912F-454C-93BD-F347398FE7F3", "mono", "")
    wrong = "00000000-0000-4000-0000-000000000000"
    for head, told in ((own, 0), ((wrong,) + own[1:], 1), (own[:2] + (wrong,) + own[3:], 1), (own[:3] + ("mono_raw", ""), 1)):
        for bend in (0, 1) if head[2] != own[2] or told == 0 else (0,):
            write(path, head, 106 * 10**9, 727894648972, 3 * 10**9, bend)
            for arguments in (("view",), ("convert", "-o", directory + "/out", "--force")):
                done = run(TANDEM, *arguments, *inputs, "--corrections", "web=" + path)
                assert done.code == 0 and done.err.count("may not be for") == told, (arguments, head, bend, done.err)
    # Found beside the traces it is left alone, and used where it fits.
    folder = os.path.join(directory, "lttng")
    os.mkdir(folder)
    for name in ("host", "guest"):
        os.symlink(os.path.join(pair, name), os.path.join(folder, name))
    inputs = ["host=" + folder + "/host", "web=" + folder + "/guest"]
    for head, used in ((own, True), ((wrong,) + own[1:], False)):
        write(os.path.join(folder, "web.corrections"), head, 106 * 10**9, 727894648972, 3 * 10**9)
        for arguments in (("view",), ("convert", "-o", directory + "/out", "--force")):
            done = run(TANDEM, *arguments, *inputs)
            assert done.code == 0 and ("is not used" in done.err) != used and ("elates" in done.err) != used, (arguments, done.err)


def a_mixture_has_one_epoch_and_the_names_that_were_given(directory):
    pair = os.path.join(DATA, "lttng-kernel", "pair1", "host")
    with open(os.path.join(pair, "kernel", "metadata"), "rb") as file:
        epoch = int(re.search(rb"offset = (\d+)", file.read())[1])
    guest = os.path.join(DATA, "pairs", "mono-1cpu-guest-guestrole.dat")
    perf = os.path.join(DATA, "perf", "guest-mono-sched.data")
    path = os.path.join(directory, "web.corrections")
    lines = view_lines("-q", "host=" + pair)
    assert lines and all(" host " in line for line in lines), lines[:2]
    for file in (guest, perf):
        shutil.copy(file, os.path.join(directory, "web.dat"))
        raw = view_lines("-q", file)[0]
        first = int(raw[1:raw.index("]")].replace(".", "")) % 10**15
        times = set()
        for said in ("", "epoch host 5000000000 10\n"):
            write(path, ("-", "mono", "-", "mono", said), first, 10**9, 10**12)
            given = view_lines("-q", "host=" + pair, "web=" + file, "--corrections", "web=" + path)
            found = view_lines("-q", "host=" + pair, "web=" + os.path.join(directory, "web.dat"))
            assert given == found, (file, given[:1], found[:1])
            moved = [line for line in given if " web " in line]
            times.add(int(moved[0][1:moved[0].index("]")].replace(".", "")))
        # What the host's trace adds to its clock is added once, whatever the corrections say of it.
        assert len(times) == 1 and 0 < times.pop() - epoch < 10**15, (file, times)
    # Where the guest's readings are known to the nanosecond, so is the result.
    write(path, ("-", "mono", "-", "mono", "epoch host 5000000000 10\n"), 0, 10**9, 10**15)
    moved = [line for line in view_lines("-q", "host=" + pair, "web=" + guest, "--corrections", "web=" + path) if " web " in line]
    plain = view_lines("-q", guest, "--offset", "host=0")
    assert len(moved) == len(plain) > 100
    for one, other in zip(moved, plain):
        one, other = (int(line[1:line.index("]")].replace(".", "")) for line in (one, other))
        assert one == other + 10**9 + epoch, (one, other, one - other)


def packets_bound_an_offset_where_nothing_else_relates(_directory):
    pair = os.path.join(DATA, "lttng-kernel", "pair1")
    inputs = ["host=" + os.path.join(pair, "host"), "web=" + os.path.join(pair, "guest")]
    truth = 727894648992  # TRUTH.txt
    done = run(TANDEM, "info", "--causality", *inputs)
    assert done.code == 0 and "tandem info --causality finds it" in done.err, done
    offset, bound = map(int, re.search(r"so --offset web=(-?\d+) puts it on the host's clock, to \+-(\d+) ns", done.out).groups())
    assert abs(offset - truth) <= bound < 10**6, (offset, bound)
    for given in (offset, truth + 5 * 10**6, truth - 5 * 10**6):
        said = json.loads(run(TANDEM, "info", "-q", "--causality", "--json", *inputs, "--offset", "web=%d" % given).out)["causality"][0]
        late, early = (said[way]["violations"] for way in ("tcp_host_to_guest", "tcp_guest_to_host"))
        assert (late > 0) == (given < truth - bound) and (early > 0) == (given > truth + bound), (given, said)
        # Whatever it is put on first, the same comes out.
        assert abs(said["offset_ns"] - offset) <= 1 and said["shift_least_ns"] <= truth - given <= said["shift_most_ns"], (given, said)
    # A corrections file cannot be replaced by an offset that is added to it.
    said = run(TANDEM, "info", "--causality", *inputs, "--corrections", "web=" + os.path.join(pair, "truth.corrections")).out
    assert "so --offset" not in said and re.search(r"added to its times: -\d+ to \d+ ns", said), said


main([packets_bound_an_offset_where_nothing_else_relates, corrections_of_another_clock_session_or_time_are_told, a_mixture_has_one_epoch_and_the_names_that_were_given])
