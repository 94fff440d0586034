#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tandem convert of trace.dat to CTF, beside trace-cmd report and babeltrace2's own CTF sink behind our source, in one run.
#
# usage: bench_convert.sh [-n ROUNDS] [-g MEGABYTES] [-p FOLDER] [FILE.dat]
#   FILE.dat      a trace of a million events or more; without one, a load of system calls is recorded (root)
#   -n ROUNDS     rounds, in turns (default 5); medians are printed
#   -p FOLDER     also a rival: the babeltrace2 plugin that was built there and reads trace.dat (siemens/bt2-ftrace-to-ctf)
#   -g MEGABYTES  also the growth: files of a hundredth, a tenth and all of that size (3000 is about 100 M events)
#
# Prints M events/s of CPU and of wall time, peak memory, size of the output, and ratios. Exit 1 where a bar is missed.
set -euo pipefail

rounds=5
growth=0
rival=
while getopts n:g:p: option; do
	case $option in
	n) rounds=$OPTARG ;;
	g) growth=$OPTARG ;;
	p) rival=$OPTARG ;;
	*) sed -n '3,11p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

here=$(cd "$(dirname "$0")" && pwd)
build=${TANDEM_BUILD:-$here/../build/main}
tandem=$build/cli/tandem
[ -x "$tandem" ] || { echo "bench_convert: no tandem in $build" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BABELTRACE_PLUGIN_PATH=$build/plugin

# run NAME COMMAND...: a line "CPU-ms WALL-ms PEAK-KiB" onto NAME's; the output goes to nowhere, as a file would.
run() {
	local name=$1
	shift
	rm -rf "$work/out"
	python3 - "$work/$name.times" "$@" <<'END'
import os, subprocess, sys, time
start = time.monotonic()
child = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
wall = time.monotonic() - start
with open(sys.argv[1], "a") as out:
    out.write(f"{(usage.ru_utime + usage.ru_stime) * 1000:.1f} {wall * 1000:.1f} {usage.ru_maxrss}\n")
sys.exit(os.waitstatus_to_exitcode(status))
END
}

median() { cut -d' ' -f"$2" "$work/$1.times" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
missed=0
# bar WHAT VALUE OPERATOR BAR
bar() {
	awk -v v="$2" -v b="$4" -v op="$3" 'BEGIN { exit !(op == ">=" ? v >= b : v <= b) }' ||
		{ echo "    missed: $1 is $2, wanted $3 $4"; missed=1; }
}

file=${1:-}
if [ -z "$file" ]; then
	file=$work/recorded.dat
	trace-cmd record -q -o "$file" -C mono -b 300000 -e sched -e raw_syscalls -- \
		sh -c 'dd if=/dev/zero of=/dev/null bs=1 count=400000 2>/dev/null & dd if=/dev/zero of=/dev/null bs=1 count=400000 2>/dev/null; wait' \
		>/dev/null 2>&1 || { echo "bench_convert: cannot record here; give a FILE.dat" >&2; exit 1; }
fi
trace-cmd convert --file-version 6 -i "$file" -o "$work/plain.dat" >/dev/null 2>&1
events=$("$tandem" convert -o "$work/count" "$work/plain.dat" | awk '/^host:/ { print $2; exit }')
bytes=$("$tandem" info --json "$work/plain.dat" | awk -F'[:,]' '/"file_bytes"/ { print $2 + 0; exit }')
out_bytes=$(du -sb "$work/count/host" | cut -f1)
rm -rf "$work/count"

for _ in $(seq "$rounds"); do
	run one taskset -c 0 "$tandem" convert -q --threads 1 -o "$work/out" "$work/plain.dat"
	run two "$tandem" convert -q -o "$work/out" "$file"
done
for _ in $(seq $(((rounds + 4) / 5))); do
	run report trace-cmd report "$work/plain.dat"
	run sink babeltrace2 "$work/plain.dat" -o ctf -w "$work/out"
	if [ -n "$rival" ]; then
		BABELTRACE_PLUGIN_PATH=$rival run rival timeout 500 babeltrace2 "$work/plain.dat" -o ctf -w "$work/out"
	fi
done

rate() { awk -v n="$events" -v ms="$1" 'BEGIN { printf "%.2f", n / ms / 1000 }'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / b }'; }
one=$(median one 1)
two=$(median two 2)
echo "$events events, $bytes bytes of version 6"
echo "version 6, one core:              $(rate "$one") M events/s CPU, $(rate "$(median one 2)") M/s wall, peak $(median one 3) KiB"
bar "CPU rate on one core" "$(rate "$one")" ">=" 15
echo "as recorded, all cores:           $(rate "$two") M events/s wall, $(rate "$(median two 1)") M/s CPU, peak $(median two 3) KiB"
bar "wall rate on all cores" "$(rate "$two")" ">=" 8
echo "trace-cmd report:                 $(rate "$(median report 1)") M events/s CPU: tandem convert is $(ratio "$(median report 1)" "$one") times as fast"
bar "ratio to trace-cmd report" "$(ratio "$(median report 1)" "$one")" ">=" 40
echo "babeltrace2 -o ctf, our source:   $(rate "$(median sink 1)") M events/s CPU: tandem convert is $(ratio "$(median sink 1)" "$one") times as fast"
bar "ratio to babeltrace2 -o ctf" "$(ratio "$(median sink 1)" "$one")" ">=" 15
if [ -n "$rival" ]; then
	echo "babeltrace2 -o ctf, rival source: $(rate "$(median rival 1)") M events/s CPU: tandem convert is $(ratio "$(median rival 1)" "$one") times as fast"
	bar "ratio to the rival" "$(ratio "$(median rival 1)" "$one")" ">=" 15
fi
echo "output:                           $out_bytes bytes, $(ratio "$((out_bytes * 100))" "$bytes") % of the input"
bar "output size in percent" "$(ratio "$((out_bytes * 100))" "$bytes")" "<=" 120
bar "peak memory in KiB" "$(median two 3)" "<=" 65536

if [ "$growth" -gt 0 ]; then
	echo "growth:"
	for part in 100 10 1; do
		"$here/make_big_trace" "$here/../tests/data/single/v6.dat" "$work/grown.dat" $((growth / part))
		"$tandem" convert -o "$work/out" "$work/grown.dat" >"$work/said" 2>&1 || true
		events=$(awk '/^host:/ { print $2; exit }' "$work/said")
		rm -f "$work/grown$part.times"
		run "grown$part" "$tandem" convert -q -o "$work/out" "$work/grown.dat"
		echo "    $events events: $(rate "$(median grown$part 1)") M events/s CPU, $(median grown$part 2) ms wall, peak $(median grown$part 3) KiB"
		bar "peak memory in KiB" "$(median grown$part 3)" "<=" 65536
		rm -rf "$work/grown.dat" "$work/out"
	done
fi
exit $missed
