#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Host and guests under KVM: what Trace Compass needs to find the guests, in order, on the right threads.

usage: virtual_machines.py DATA-DIRECTORY
"""
import os
import re
import struct
import sys

from convert_case import check_ctf, convert, events, main
from tracedat_maker import SWITCH, Maker, switch_body

DATA = os.path.join(sys.argv[1], "kvm")


def converted(directory, *names, options=()):
    out = os.path.join(directory, "out")
    done = convert(out, *options, *(os.path.join(DATA, name) for name in names))
    return {name: os.path.join(out, name) for name in sorted(os.listdir(out))}, done


def check_sequence(host, guest, vcpu_tids):
    """The sequence that ties a guest to its host, event by event."""
    found, there = events(host), events(guest)
    (sent,) = [event for event in there if event.name == "vmsync_gh_guest"]
    uid = sent.fields["vm_uid"]
    (got,) = [event for event in found if event.name == "vmsync_gh_host" and event.fields["vm_uid"] == uid]
    at = found.index(got)
    assert sent.time < got.time, "%d, %d" % (sent.time, got.time)
    assert sent.fields["cnt"] == got.fields["cnt"] and sent.fields["tandem_synthetic"] == 1
    assert got.context["tid"] in vcpu_tids, got
    switches = [event for event in found[:at] if event.name == "sched_switch" and event.cpu == got.cpu]
    assert switches and switches[-1].fields["next_tid"] == got.context["tid"], "%s, %s" % (switches[-1:], got)
    before = [event for event in found[:at] if event.name in ("kvm_x86_entry", "kvm_x86_exit")]
    assert before and before[-1].context["tid"] == got.context["tid"], before[-1:]
    dump = {event.fields["tid"]: event.fields for event in found[:at] if event.name == "lttng_statedump_process_state"}
    assert set(vcpu_tids) <= set(dump), "%s not in the state dump" % vcpu_tids
    processes = {dump[tid]["pid"] for tid in vcpu_tids}
    assert len(processes) == 1 and processes <= set(dump), processes
    bound = {event.fields["vcpu_id"]: event.context["tid"] for event in found if event.name == "kvm_x86_entry" and
             event.context["tid"] in vcpu_tids}
    return bound, processes.pop()


def a_host_and_its_guest(directory):
    traces, _ = converted(directory, "kvm-tsc.dat", "kvm-tsc-l2.dat")
    guest = [path for name, path in traces.items() if name != "host"][0]
    bound, process = check_sequence(traces["host"], guest, [158, 159])
    assert bound == {0: 158, 1: 159}, bound
    assert process == 155, process  # qemu-system-x86, by the saved names
    assert "error" not in (said := check_ctf(*traces.values())).replace("0 errors", "") and "vmsync" not in said, said


def two_guests_have_identities_of_their_own(directory):
    traces, _ = converted(directory, "kvm-two-guests.dat", "kvm-two-guests-l2.dat", "kvm-two-guests-l2b.dat")
    assert len(traces) == 3, traces
    uuids = set()
    for path in traces.values():
        with open(os.path.join(path, "metadata"), encoding="utf-8") as file:
            uuids.add(re.search(r'clock \{.*?uuid = "(.*?)"', file.read(), re.S)[1])
    assert len(uuids) == 3, uuids
    threads = {}
    for event in events(traces["host"]):
        if event.name == "vmsync_gh_host":
            threads[event.fields["vm_uid"]] = event.context["tid"]
    assert len(threads) == 2 and len(set(threads.values())) == 2, threads
    check_ctf(*traces.values())


def nothing_is_made_up_when_not_wanted(directory):
    traces, done = converted(directory, "kvm-tsc.dat", "kvm-tsc-l2.dat", options=["--no-synthetic"])
    names = {event.name for path in traces.values() for event in events(path)}
    assert not names & {"vmsync_gh_guest", "vmsync_gh_host", "lttng_statedump_process_state"}, names
    assert "made up" not in done.out
    assert "virtual machine views stay empty" in check_ctf(*traces.values())


def made_pair(directory, host_records, guest_records, guest_name=True):
    host, guest = Maker(), Maker()
    host.hostname, guest.hostname = "h", "g"
    for maker in (host, guest):
        maker.format("sched", "sched_switch", 300, SWITCH)
        maker.format("kvm", "kvm_entry", 303, [("unsigned int vcpu_id", 8, 4, 0)])
    vcpus = struct.pack("<IiIi", 0, 501, 1, 502) if guest_name else struct.pack("<IiIi", 0, -1, 1, -1)
    host.options = [(11, struct.pack("<Q", 1111)), (13, b"web\0" + struct.pack("<QI", 2222, 2) + vcpus)]
    shift = b"".join(struct.pack("<I3Q", 1, 1, 10, 1) for _ in range(2)) + struct.pack("<2Q", 0, 0)
    guest.options = [(11, struct.pack("<Q", 2222)), (12, struct.pack("<QII", 1111, 1, 2) + shift)]
    for cpu, records in enumerate(host_records(host)):
        host.add_cpu(cpu, records)
    for cpu, records in enumerate(guest_records(guest)):
        guest.add_cpu(cpu, records)
    paths = os.path.join(directory, "h.dat"), os.path.join(directory, "g.dat")
    host.write(paths[0])
    guest.write(paths[1])
    out = os.path.join(directory, "out")
    done = convert(out, *paths)
    return os.path.join(out, "host"), os.path.join(out, "web"), done


def entry(maker, tid, vcpu):
    return maker.record(303, tid, struct.pack("<I", vcpu))


def switch(maker, prev, next_):
    return maker.record(300, prev, switch_body(maker, ("p", prev), ("CPU %d/KVM" % next_, next_)))


def guest_records(maker):
    return [[(100 + i, switch(maker, 1, 2)) for i in range(5)]]


def a_thread_whose_switch_was_not_seen_is_not_taken(directory):
    def host_records(maker):
        # CPU 0: its thread runs from the start, no switch; CPU 1: a switch, then an entry.
        return [[(200, entry(maker, 501, 0)), (210, entry(maker, 501, 0))],
                [(220, switch(maker, 9, 502)), (230, entry(maker, 502, 1)), (231, switch(maker, 502, 9))]]

    host, guest, _ = made_pair(directory, host_records, guest_records)
    check_sequence(host, guest, [501, 502])
    (got,) = [event for event in events(host) if event.name == "vmsync_gh_host"]
    assert (got.cpu, got.time) == (1, 230), got
    check_ctf(host, guest)


def threads_that_nobody_names_are_learned_from_kvm_events(directory):
    def host_records(maker):
        return [[(200, switch(maker, 9, 701)), (205, entry(maker, 701, 0))],
                [(220, switch(maker, 9, 702)), (230, entry(maker, 702, 1))]]

    host, guest, _ = made_pair(directory, host_records, guest_records, guest_name=False)
    bound, _ = check_sequence(host, guest, [701, 702])
    assert bound == {0: 701, 1: 702}, bound


def a_guest_that_begins_after_its_host_ended_still_has_its_pair_in_order(directory):
    def host_records(maker):
        return [[(20, switch(maker, 9, 501)), (25, entry(maker, 501, 0))]]

    host, guest, _ = made_pair(directory, host_records, guest_records)
    check_sequence(host, guest, [501, 502])
    check_ctf(host, guest)


def guest_times_lie_inside_the_windows_of_their_cpus(directory):
    """All guest events of kvm-tsc lie between an entry and the exit after it, of their own vCPU's thread."""
    traces, _ = converted(directory, "kvm-tsc.dat", "kvm-tsc-l2.dat", options=["--no-synthetic"])
    threads, windows = {158: 0, 159: 1}, {0: [], 1: []}
    for event in events(traces["host"]):
        vcpu = threads.get(event.context["tid"])
        if vcpu is not None and event.name == "kvm_x86_entry":
            windows[vcpu].append([event.time, None])
        elif vcpu is not None and event.name == "kvm_x86_exit" and windows[vcpu]:
            windows[vcpu][-1][1] = event.time
    guest = [path for name, path in traces.items() if name != "host"][0]
    inside = total = 0
    for event in events(guest):
        total += 1
        inside += any(first <= event.time and (last is None or event.time <= last) for first, last in windows[event.cpu])
    assert total == 1981 and inside == total, "%d of %d" % (inside, total)


main([a_host_and_its_guest, two_guests_have_identities_of_their_own, nothing_is_made_up_when_not_wanted,
      a_thread_whose_switch_was_not_seen_is_not_taken, threads_that_nobody_names_are_learned_from_kvm_events,
      a_guest_that_begins_after_its_host_ended_still_has_its_pair_in_order,
      guest_times_lie_inside_the_windows_of_their_cpus])
