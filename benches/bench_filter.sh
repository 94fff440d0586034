#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What filter.tandem.clock adds to source.ctf.fs -> muxer -> dummy: CPU time an event, beside the debug-info filter.
# usage: bench_filter.sh CTF-TRACE [ROUNDS]      environment: TANDEM_BUILD
# The graphs run in turn; least and median user CPU time of the rounds, and the ratio to the bare graph of the same run.
set -euo pipefail

trace=${1:?usage: bench_filter.sh CTF-TRACE [ROUNDS]}
rounds=${2:-9}
build=${TANDEM_BUILD:?set TANDEM_BUILD to the build folder}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'tandem-corrections 1\nsegment start 0 2\nk 0 0 0 0\nk 4000000000 4000000000 0 0\nend\n' >"$work/id.corrections"
export BABELTRACE_PLUGIN_PATH=$build/plugin
/usr/bin/python3 - "$trace" "$rounds" "$work/id.corrections" <<'END'
import resource
import statistics
import subprocess
import sys

trace, rounds, corrections = sys.argv[1], int(sys.argv[2]), sys.argv[3]
base = ["babeltrace2", "run", "-c", "in:source.ctf.fs", "-p", f'inputs=["{trace}"]', "-c", "mux:filter.utils.muxer",
        "-x", "in:mux"]
behind = ["-x", "mux:f", "-x", "f:out"]
graphs = {
    "bare": base + ["-c", "out:sink.utils.dummy", "-x", "mux:out"],
    "filter.tandem.clock": base + ["-c", "out:sink.utils.dummy", "-c", "f:filter.tandem.clock", "-p",
                                   f'corrections="{corrections}",host-clock=0'] + behind,
    "debug-info": base + ["-c", "out:sink.utils.dummy", "-c", "f:filter.lttng-utils.debug-info"] + behind,
}
count = subprocess.run(base + ["-c", "out:sink.utils.counter", "-x", "mux:out"], stdout=subprocess.PIPE, text=True, check=True)
# The sink counts aloud: the last line is the whole.
events = int([l.split()[0] for l in count.stdout.splitlines() if "Event messages" in l][-1].replace(",", ""))
times = {name: [] for name in graphs}
for _ in range(rounds):
    for name, graph in graphs.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        good = subprocess.run(graph, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
        if good:
            times[name].append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
bare = times["bare"]
for name, of in times.items():
    if not of:
        print(f"{name:20} cannot copy this trace")
        continue
    print(f"{name:20} {min(of) / events * 1e9:6.0f} ns/event least, {statistics.median(of) / events * 1e9:6.0f} median, "
          f"x {min(of) / min(bare):.2f} and {statistics.median(of) / statistics.median(bare):.2f} of the bare graph")
END
