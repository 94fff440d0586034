#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Events per second of CPU time through babeltrace2 graphs, our source beside its rivals in one run.
#
# usage: bench_graph.sh [-n ROUNDS] [-r DIR] [FILE.dat]
#   FILE.dat   a trace of a million events or more, with stamps in ns; without one, a load of system calls is recorded (root)
#   -n ROUNDS  alternating rounds (default 5); medians are printed
#   -r DIR     folder with another plugin that reads trace.dat, to be measured too
#
# Prints for each way: events, M events/s CPU, peak memory, and our figure as a ratio to it. Exit 1 where a bar is missed.
set -euo pipefail

rounds=5
rival=
while getopts n:r: option; do
	case $option in
	n) rounds=$OPTARG ;;
	r) rival=$OPTARG ;;
	*) sed -n '3,11p' "$0" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

here=$(cd "$(dirname "$0")" && pwd)
build=${TANDEM_BUILD:-$here/../build/main}
plugin=$build/plugin
[ -e "$plugin/babeltrace-plugin-tandem.so" ] || { echo "bench_graph: no plugin in $plugin" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# record FILE: some million events of a load of many small system calls
record() {
	trace-cmd record -q -o "$1" -C mono -b 300000 -e sched -e raw_syscalls -- \
		sh -c 'dd if=/dev/zero of=/dev/null bs=1 count=400000 2>/dev/null & dd if=/dev/zero of=/dev/null bs=1 count=400000 2>/dev/null; wait' \
		>/dev/null 2>&1
}

# count FILE [OPTION]...: events that our source delivers
count() {
	BABELTRACE_PLUGIN_PATH=$plugin babeltrace2 "$@" -c sink.utils.counter 2>/dev/null | awk '/Event message/ { n = $1 } END { print n }'
}

# run NAME COMMAND...: its CPU milliseconds and peak KiB onto NAME's lines
run() {
	local name=$1
	shift
	python3 - "$work/$name.times" "$@" <<'END'
import os, subprocess, sys
child = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
with open(sys.argv[1], "a") as out:
    out.write(f"{(usage.ru_utime + usage.ru_stime) * 1000:.1f} {usage.ru_maxrss} {os.waitstatus_to_exitcode(status)}\n")
END
}

median() { cut -d' ' -f"$2" "$work/$1.times" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

file=${1:-}
if [ -z "$file" ]; then
	file=$work/recorded.dat
	record "$file" || { echo "bench_graph: cannot record here; give a FILE.dat" >&2; exit 1; }
fi
trace-cmd convert --file-version 6 -i "$file" -o "$work/plain.dat" >/dev/null 2>&1
events=$(count "$work/plain.dat")
[ "${events:-0}" -gt 0 ] || { echo "bench_graph: no events in $file" >&2; exit 1; }
if [ "$(count "$file")" != "$events" ]; then
	echo "bench_graph: $file and its version 6 differ in events" >&2
	exit 1
fi
BABELTRACE_PLUGIN_PATH=$plugin babeltrace2 "$work/plain.dat" -p 'names=ftrace' -o ctf -w "$work/ctf" >/dev/null 2>&1

for ((round = 0; round < rounds; round++)); do
	run ours env BABELTRACE_PLUGIN_PATH="$plugin" babeltrace2 "$work/plain.dat" -o dummy
	run ours_ftrace env BABELTRACE_PLUGIN_PATH="$plugin" babeltrace2 "$work/plain.dat" -p 'names=ftrace' -o dummy
	run ours_packed env BABELTRACE_PLUGIN_PATH="$plugin" babeltrace2 "$file" -o dummy
	run ctf env -u BABELTRACE_PLUGIN_PATH babeltrace2 "$work/ctf" -o dummy
	[ -z "$rival" ] || run rival env BABELTRACE_PLUGIN_PATH="$rival" babeltrace2 "$work/plain.dat" -o dummy
	# trace-cmd is many times slower: three rounds tell enough.
	[ "$round" -ge 3 ] || run report trace-cmd report -i "$work/plain.dat"
done

missed=0
# line NAME TEXT [BAR]: BAR is the least ratio of ours to it
line() {
	local ms kib rate ratio
	ms=$(median "$1" 1)
	kib=$(median "$1" 2)
	rate=$(awk -v e="$events" -v m="$ms" 'BEGIN { printf "%.2f", e / m / 1000 }')
	ratio=$(awk -v a="$ms" -v b="$(median ours 1)" 'BEGIN { printf "%.2f", a / b }')
	printf '%-44s %10d events %8.2f M events/s CPU %7d KiB   ours is %sx%s\n' "$2" "$events" "$rate" "$kib" "$ratio" "${3:+ (bar $3)}"
	if [ -n "${3:-}" ] && awk -v r="$ratio" -v b="$3" 'BEGIN { exit !(r < b) }'; then
		missed=1
	fi
}
line ours "source.tandem.tracedat, version 6"
line ours_ftrace "source.tandem.tracedat, names=ftrace"
line ours_packed "source.tandem.tracedat, the file as it is"
line ctf "source.ctf.fs, the same events" 1.25
[ -z "$rival" ] || line rival "another trace.dat plugin" 1.9
line report "trace-cmd report" 6
if awk -v e="$events" -v m="$(median ours 1)" 'BEGIN { exit !(e / m / 1000 < 2.5) }'; then
	echo "bar missed: 2.5 M events/s CPU"
	missed=1
fi
for name in ours ours_packed; do
	if [ "$(median $name 2)" -ge 65536 ]; then
		echo "bar missed: 64 MiB of memory ($name)"
		missed=1
	fi
done
exit $missed
