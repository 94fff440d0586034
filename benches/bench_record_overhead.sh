#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What recording sched and all system calls costs a machine under a load of system calls, beside trace-cmd with the same
# events, in one emulated guest of one CPU in turn: CPU time a call of the load and of the recorder while it records, medians
# and least. Of more CPUs the emulator runs one at a time, and the time of the others goes on meanwhile.
# Buffers of 1 MiB, many times filled: both recorders have to work meanwhile. What
# starting, ending and writing the files cost is shown by itself: CPU time of a recording of "true".
# usage: bench_record_overhead.sh [ROUNDS [CALLS]]      environment: TANDEM_BUILD (default: build/main)      as root
set -euo pipefail
cd "$(dirname "$0")/.."
export TANDEM_SOURCE=$PWD TANDEM_BUILD=${TANDEM_BUILD:-$PWD/build/main}
. tests/sync/rig_lib.sh
rounds=${1:-7} calls=${2:-100000}

make_guest bench-overhead.img --add "$TANDEM_BUILD/cli/tandem" --add "$TANDEM_BUILD/benches/syscall_load" \
	--add "$TANDEM_BUILD/benches/cpu_of"
start_guest bench-overhead.img --smp 1 --mem 1500

# "load NAME OWN OTHERS" and "start NAME SECONDS", in turn.
in_guest "cd /tmp
ours='tandem record --quiet -o /tmp/rec --no-kallsyms -b 1024 -C mono -e sched -e syscalls --'
theirs='trace-cmd record -o /tmp/rec.dat -b 1024 -C mono -e sched -e syscalls'
load() { # NAME COMMAND...
	local name=\$1
	shift
	rm -rf /tmp/rec*
	echo \"load \$name \$(\"\$@\" syscall_load $calls \$name 2>/tmp/err | sed -n 's/^ns //p')\"
	grep -i 'lost\\|overrun: [1-9]\\|entries' /tmp/err | sed \"s/^/lost \$name /\"
}
start() {
	local name=\$1
	shift
	rm -rf /tmp/rec*
	echo \"start \$name \$(cpu_of \"\$@\" true 2>&1 | sed -n 's/^cpu //p')\"
}
for i in \$(seq $rounds); do
	load bare env
	load tandem \$ours
	load trace-cmd \$theirs
	[ \$i -gt 3 ] || { start tandem \$ours; start trace-cmd \$theirs; }
done" >"$work/runs" 2>&1 || die "the guest: $(tail -n 5 "$work/runs")"
/usr/bin/python3 - "$work/runs" <<'END2'
import statistics
import sys

loads, starts, lost = {}, {}, []
for line in open(sys.argv[1]):
    word = line.split()
    if word[:1] == ["load"] and len(word) == 4:
        loads.setdefault(word[1], []).append((float(word[2]), float(word[3])))
    elif word[:1] == ["start"] and len(word) == 3:
        starts.setdefault(word[1], []).append(float(word[2]))
    elif word[:1] == ["lost"] and "lost" in line[5:].lower():
        lost.append(line.strip())
cost = {}
for name, runs in loads.items():
    own, recorder = (statistics.median(column) for column in zip(*runs))
    cost[name] = own + recorder, min(map(sum, runs))
    begins = f"; start, end and files {statistics.median(starts[name]):.2f} s CPU" if name in starts else ""
    print(f"{name:10} {own:7.0f} ns CPU a call in the load, {recorder:6.0f} ns in the recorder ({len(runs)} runs){begins}")
for what, which in (("least", 1), ("median", 0)):
    ours, theirs = (cost[name][which] - cost["bare"][which] for name in ("tandem", "trace-cmd"))
    print(f"overhead a call, {what}: tandem record {ours:.0f} ns, trace-cmd {theirs:.0f} ns, x {ours / theirs:.2f}; bar 1.00")
print("start, end and files: "
      f"x {statistics.median(starts['tandem']) / statistics.median(starts['trace-cmd']):.2f}")
for line in sorted(set(lost)):
    print(line)
END2
