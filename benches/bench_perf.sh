#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# perf.data -> CTF beside "perf data convert --to-ctf" and "perf script", on the same file, one after the other.
# usage: bench_perf.sh BUILD-FOLDER [FILE] [ROUNDS]     without FILE a recording of many small system calls is made
# Each figure is a median of ROUNDS (5); perf's own run once, they take minutes.
set -euo pipefail
build=${1:?usage: bench_perf.sh BUILD-FOLDER [FILE] [ROUNDS]} file=${2:-} rounds=${3:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$file" ]; then
	file=$work/bench.data
	perf record -q -o "$file" -m 16M -k mono -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -e sched:sched_switch -- \
		sh -c 'dd if=/dev/zero of=/dev/null bs=1 count=500000 2>/dev/null & dd if=/dev/zero of=/dev/null bs=1 count=500000 2>/dev/null; wait'
fi
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# seconds CPU and wall of a command -> $work/NAME.cpu, $work/NAME.wall, one line a run
run() {
	local name=$1; shift
	local format='%U %S %e'
	/usr/bin/time -f "$format" -o "$work/time" "$@" >/dev/null 2>&1 || { echo "$name failed"; return 1; }
	awk '{ print $1 + $2 > cpu; print $3 > wall }' cpu="$work/cpu" wall="$work/wall" "$work/time"
	cat "$work/cpu" >>"$work/$name.cpu"; cat "$work/wall" >>"$work/$name.wall"
}
for _ in $(seq "$rounds"); do
	rm -rf "$work/out"
	run tandem "$build/cli/tandem" convert --quiet -o "$work/out" "$file"
	rm -rf "$work/out"
	run tandem1 "$build/cli/tandem" convert --quiet --threads 1 -o "$work/out" "$file"
	run read cat "$file"
done
run script timeout 600 perf script -i "$file" || true
has_ctf=yes
# A failure is one of three: built without CTF, a file that it cannot write, or the limit.
run ctf timeout 600 perf data convert --to-ctf="$work/perf-ctf" -i "$file" || has_ctf=no
events=$("$build/tests/support/record-dump" --counts "$file" | awk '/^count/ { n += $4 } END { print n }')
report() { # name, what
	local cpu wall
	cpu=$(median <"$work/$1.cpu"); wall=$(median <"$work/$1.wall")
	awk -v n="$events" -v c="$cpu" -v w="$wall" -v what="$2" \
		'BEGIN { printf "%-34s %8.2f M events/s CPU  %8.2f M events/s wall\n", what, n / c / 1e6, n / w / 1e6 }'
}
echo "$events events, $(stat -L -c %s "$file") bytes, $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
report tandem "tandem convert"
report tandem1 "tandem convert, one thread"
[ ! -f "$work/script.cpu" ] || report script "perf script (text)"
[ $has_ctf = no ] || report ctf "perf data convert --to-ctf"
[ $has_ctf = yes ] || echo "perf data convert --to-ctf failed: $(timeout 600 perf data convert --to-ctf="$work/again" -i "$file" 2>&1 | tail -n 1)"
for rival in script ctf; do
	[ -f "$work/$rival.cpu" ] || continue
	awk -v a="$(median <"$work/tandem.cpu")" -v b="$(median <"$work/$rival.cpu")" -v r="$rival" \
		'BEGIN { printf "tandem convert against perf %s: %.0f times by CPU\n", r == "ctf" ? "data convert" : r, b / a }'
done
awk -v c="$(median <"$work/read.cpu")" -v n="$events" 'BEGIN { printf "reading the file once takes %.0f ns an event\n", c / n * 1e9 }'
