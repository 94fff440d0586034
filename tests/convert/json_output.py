#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem convert --to json: a file that every JSON reader takes, with the same events. usage: json_output.py DATA"""
import collections
import json
import os
import sys
from decimal import Decimal

from convert_case import convert, events, main
from tracedat_maker import SWITCH, Maker, switch_body

DATA = sys.argv[1]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_float=Decimal)["traceEvents"]


def host_and_guest_are_processes_with_all_events(directory):
    inputs = [os.path.join(DATA, "kvm", "kvm-tsc.dat"), "guest=" + os.path.join(DATA, "kvm", "kvm-tsc-l2.dat")]
    convert(directory + "/j", "--to", "json", *inputs)
    convert(directory + "/c", "--no-synthetic", *inputs)
    found = load(directory + "/j/trace.json")
    machines = {event["args"]["name"]: event["pid"] for event in found if event["name"] == "process_name"}
    assert set(machines) == {"host", "guest"}, machines
    for name, pid in machines.items():
        ours = collections.Counter((int(event["ts"] * 1000), event["name"]) for event in found
                                   if event["pid"] == pid and event["ph"] == "i")
        theirs = collections.Counter((event.time, event.name) for event in events(directory + "/c/" + name))
        assert ours == theirs, "%s: %s" % (name, ours - theirs or theirs - ours)
        cpus = {event["args"]["name"] for event in found if event["pid"] == pid and event["name"] == "thread_name"}
        assert cpus == {"CPU 0", "CPU 1"}, cpus


def slices_are_the_times_between_switches(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    maker.add_cpu(0, [(1000, maker.record(300, 0, switch_body(maker, ("swapper/0", 0), ('we"ird\\', 5)))),
                      (3500, maker.record(300, 5, switch_body(maker, ('we"ird\\', 5), ("swapper/0", 0)))),
                      (4000, maker.record(300, 0, switch_body(maker, ("swapper/0", 0), ("last", 6))))])
    maker.write(directory + "/in.dat")
    convert(directory + "/out", "--to", "json", directory + "/in.dat")
    slices = [event for event in load(directory + "/out/trace.json") if event["ph"] == "X"]
    assert [(s["name"], s["ts"], s["dur"], s["args"]["tid"]) for s in slices] == [
        ('we"ird\\', 1, Decimal("2.5"), 5), ("last", 4, 0, 6)], slices


def system_calls_begin_and_end_on_their_thread(directory):
    convert(directory + "/out", "--to", "json", os.path.join(DATA, "single", "host618.dat"))
    found = load(directory + "/out/trace.json")
    calls = collections.Counter(event["ph"] for event in found if event["ph"] in "BE")
    assert calls == {"B": 987, "E": 986}, calls
    assert all(event["tid"] == 1000000 + event["args"]["tid"] for event in found if event["ph"] in "BE")
    assert {"read", "write", "openat"} <= {event["name"] for event in found if event["ph"] == "B"}


main([host_and_guest_are_processes_with_all_events, slices_are_the_times_between_switches,
      system_calls_begin_and_end_on_their_thread])
