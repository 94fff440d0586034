#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What recording sched and all system calls costs a machine under a load of system calls, beside trace-cmd with the same
# events, in one emulated guest in turn: CPU time of recorder and load together, a call, medians. What starting and ending
# alone cost (a load of no calls) is taken off and shown by itself; compressing and writing the files belongs to it only as far
# as they grow with the events.
# usage: bench_record_overhead.sh [ROUNDS [CALLS]]      environment: TANDEM_BUILD (default: build/main)      as root
set -euo pipefail
cd "$(dirname "$0")/.."
export TANDEM_SOURCE=$PWD TANDEM_BUILD=${TANDEM_BUILD:-$PWD/build/main}
. tests/sync/rig_lib.sh
rounds=${1:-5} calls=${2:-150000}

make_guest bench-overhead.img --add "$TANDEM_BUILD/cli/tandem" --add "$TANDEM_BUILD/benches/syscall_load" \
	--add "$TANDEM_BUILD/benches/cpu_of"
start_guest bench-overhead.img --smp 2 --mem 1500

# A round of each, in turn: "NAME LOAD CPU-SECONDS OWN-NS-A-CALL".
in_guest "cd /tmp
one() { # NAME CALLS COMMAND...
	local name=\$1 calls=\$2
	shift 2
	rm -rf /tmp/rec*
	own=\$(cpu_of \"\$@\" syscall_load \$calls 2>/tmp/err | grep -o '^ns [0-9.]*' | cut -d' ' -f2)
	echo \"run \$name \$calls \$(sed -n 's/^cpu //p' /tmp/err) \${own:-0}\"
}
for i in \$(seq $rounds); do
	for calls in 0 $calls; do
		one bare \$calls env
		one tandem \$calls tandem record --quiet -o /tmp/rec --no-kallsyms -b 4096 -C mono -e sched -e syscalls --
		ls -l /tmp/rec/host.dat >>/tmp/sizes
		one trace-cmd \$calls trace-cmd record -o /tmp/rec.dat -b 4096 -C mono -e sched -e syscalls
		grep -i lost /tmp/err >>/tmp/sizes
	done
done
tail -n 2 /tmp/sizes" >"$work/runs" 2>&1 || die "the guest: $(tail -n 5 "$work/runs")"
/usr/bin/python3 - "$work/runs" "$calls" <<'END2'
import statistics
import sys

calls, runs = int(sys.argv[2]), {}
for line in open(sys.argv[1]):
    word = line.split()
    if word[:1] == ["run"]:
        runs.setdefault((word[1], int(word[2])), []).append((float(word[3]), float(word[4])))
cost = {}
for name in ("bare", "tandem", "trace-cmd"):
    start, loaded = (statistics.median(r[0] for r in runs[name, n]) for n in (0, calls))
    own = statistics.median(r[1] for r in runs[name, calls])
    cost[name] = (loaded - start) * 1e9 / calls, own, start
bare = cost["bare"]
for name, (each, own, start) in cost.items():
    print(f"{name:10} {each:7.0f} ns CPU a call in all, {own:7.0f} ns in the load itself; start and end {start:5.2f} s CPU")
ours, theirs = (cost[name] for name in ("tandem", "trace-cmd"))
print(f"overhead of tandem record: {ours[0] - bare[0]:.0f} ns a call, x {(ours[0] - bare[0]) / (theirs[0] - bare[0]):.2f} of trace-cmd's; "
      f"in the load itself x {(ours[1] - bare[1]) / (theirs[1] - bare[1]):.2f}; start and end x {ours[2] / theirs[2]:.2f}")
END2
