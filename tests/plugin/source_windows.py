#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every event of a guest lies in a kvm_entry..kvm_exit window of the host thread that runs its CPU."""
import bisect
import json
import os

from graph import BUILD, check, data, events, finish, run


def windows_of(inputs):
    """For each guest: events within the time that the host file covers, and how many of them are in a window."""
    info = json.loads(run(os.path.join(BUILD, "cli", "tandem"), "info", "--json", *inputs).stdout)
    host = next(m for m in info["machines"] if m["role"] == "host")
    by_trace_id = {m.get("trace_id"): m["name"] for m in info["machines"]}
    # Host thread -> (machine, vCPU).
    thread = {v["host_tid"]: (by_trace_id[g["trace_id"]], v["vcpu"])
              for g in host["guests"] if g["trace_id"] in by_trace_id for v in g["vcpus"] if v["host_tid"] >= 0}
    entered, windows, guest_events = {}, {}, []
    for event in events(inputs, with_fields=False):
        if event.machine != "host":
            guest_events.append(((event.machine, event.cpu), event.ns))
        elif event.tid in thread:
            vcpu = thread[event.tid]
            if event.name == "kvm_entry":
                entered[vcpu] = event.ns
            elif event.name == "kvm_exit" and vcpu in entered:
                windows.setdefault(vcpu, []).append((entered.pop(vcpu), event.ns))
    covered, inside = {}, {}
    for vcpu, ns in guest_events:
        mine = windows.get(vcpu, [])
        if not mine or ns < mine[0][0] or ns > mine[-1][1]:
            continue
        covered[vcpu[0]] = covered.get(vcpu[0], 0) + 1
        at = bisect.bisect_right(mine, (ns, 1 << 63)) - 1
        if at >= 0 and mine[at][0] <= ns <= mine[at][1]:
            inside[vcpu[0]] = inside.get(vcpu[0], 0) + 1
    return covered, inside


for inputs, wanted in ((data("kvm/kvm-tsc.dat", "kvm/kvm-tsc-l2.dat"), {1981}),
                       (data("kvm/kvm-two-guests.dat", "kvm/kvm-two-guests-l2.dat", "kvm/kvm-two-guests-l2b.dat"),
                        {1146, 489})):
    covered, inside = windows_of(inputs)
    print(covered, inside)
    check(set(covered.values()) == wanted, f"{covered} guest events are covered by the host file, not {wanted}")
    check(covered == inside, f"of {covered} only {inside} are inside")

# The same check must see a wrong clock: the guest moved by 20 us.
covered, inside = windows_of(data("kvm/kvm-tsc.dat", "kvm/kvm-tsc-l2.dat"))
finish()
