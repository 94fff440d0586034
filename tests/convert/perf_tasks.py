#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The state dump of a converted perf.data has the processes, parents and names that perf's own records tell.

usage: perf_tasks.py DATA-DIRECTORY
"""
import os
import re
import shutil
import sys

from convert_case import check_ctf, convert, events, main, run

DATA = sys.argv[1]


def told_by_perf(path):
    """tid -> (pid, parent's pid, name) at the start of the recording, as perf script prints its records; who is renamed later."""
    done = run("perf", "script", "-i", path, "--show-task-events")
    threads, renamed = {}, set()
    for line in done.out.splitlines():
        later = re.search(r"PERF_RECORD_COMM.*/(-?\d+)$", line.rstrip())
        if later and " 0.000000: " not in line:
            renamed.add(int(later.group(1)))
        if not re.search(r"\s0\.000000: PERF_RECORD_(FORK|COMM)", line):
            continue
        fork = re.search(r"PERF_RECORD_FORK\((-?\d+):(-?\d+)\):\((-?\d+):(-?\d+)\)", line)
        comm = re.search(r"PERF_RECORD_COMM(?: exec)?: (.*):(-?\d+)/(-?\d+)", line)
        if fork:
            pid, tid, parent, _ = (int(word) for word in fork.groups())
            old = threads.get(tid, (pid, None, ""))
            threads[tid] = (old[0], parent if old[1] is None else old[1], old[2])
        elif comm:
            name, pid, tid = comm.group(1), int(comm.group(2)), int(comm.group(3))
            old = threads.get(tid, (pid, None, ""))
            threads[tid] = (old[0], old[1], name)
    return threads, renamed


def threads_have_the_processes_that_perf_tells(directory):
    if not shutil.which("perf"):
        print("SKIP: no perf here")
        return
    compared = 0
    for name in ("guest-mono-sched.data", "guest-mono-sys.data"):
        path = os.path.join(DATA, "perf", name)
        told, renamed = told_by_perf(path)
        out = os.path.join(directory, name)
        convert(out, path)
        dumped = {event.fields["tid"]: event.fields for event in events(out)
                  if event.name == "lttng_statedump_process_state"}
        for tid, (pid, parent, comm) in told.items():
            if tid <= 0 or not comm:
                continue
            assert tid in dumped, (name, tid, comm)
            fields = dumped[tid]
            wanted = (pid, parent or 0)
            assert (fields["pid"], fields["ppid"]) == wanted, (name, tid, fields, wanted)
            # perf has the names of workers from /proc, which adds what they work on; the events have them bare.
            assert tid in renamed or fields["name"][:15] == comm[:15] or \
                (comm.startswith("kworker/") and comm.startswith(fields["name"])), (name, tid, fields, comm)
            compared += 1
        check_ctf(out)
    assert compared > 50, compared


main([threads_have_the_processes_that_perf_tells])
