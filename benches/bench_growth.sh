#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tandem convert over the size of its input: time and memory from a million events on, memory over the number of CPUs.
#
# usage: bench_growth.sh [-m MILLIONS] [-c CPUS]
#   -m MILLIONS  the largest file, in millions of events (default 100: 4.4 GB, and 3 GB of output while it runs)
#   -c CPUS      the most CPUs (default 130)
#
# Prints ns of CPU an event (in all, and in user space: what the kernel takes depends on how much of both files its cache
# holds) and the peak memory of each size, and KiB for each further CPU. Exit 1 where a bar is missed: an event of a larger
# file costs 1.5 times one of the smallest in user space, 64 MiB, 1 MiB a CPU.
set -euo pipefail

millions=100 most_cpus=130
while getopts m:c: option; do
	case $option in
	m) millions=$OPTARG ;;
	c) most_cpus=$OPTARG ;;
	*) sed -n '3,12p' "$0" >&2; exit 2 ;;
	esac
done
here=$(cd "$(dirname "$0")" && pwd)
build=${TANDEM_BUILD:-$here/../build/main}
tandem=$build/cli/tandem
[ -x "$tandem" ] || { echo "bench_growth: no tandem in $build" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
free_mb=$(df -Pm "$work" | awk 'NR == 2 { print $4 }')
# Per million events 44 MB of input and 30 MB of output; both go before the next size comes.
while [ $((millions * 80)) -gt "$free_mb" ] && [ "$millions" -gt 1 ]; do
	millions=$((millions / 10))
	echo "only $free_mb MB are free here: $millions million events at most"
done
missed=0

# measure EVENTS CPUS OPTION...: "EVENTS CPU-ms USER-ms PEAK-KiB"
measure() {
	local events=$1 cpus=$2
	shift 2
	"$here/make_grown_trace" "$work/grown.dat" "$events" "$cpus"
	cat "$work/grown.dat" >/dev/null # into the page cache, as far as it fits
	python3 - "$tandem" convert -o "$work/out" "$@" "$work/grown.dat" <<'END'
import os, re, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
said = child.stdout.read().decode()
_, status, usage = os.wait4(child.pid, 0)
assert os.waitstatus_to_exitcode(status) == 0, said
count = int(re.search(r", (\d+) events of ", said).group(1))
print(count, round((usage.ru_utime + usage.ru_stime) * 1000), round(usage.ru_utime * 1000), usage.ru_maxrss)
END
	rm -rf "$work/grown.dat" "$work/out"
}

echo "size, 8 CPUs:"
first=
for size in 1 10 "$millions"; do
	[ "$size" -le "$millions" ] || continue
	read -r events ms user peak <<<"$(measure $((size * 1000000)) 8)"
	[ -n "$events" ] || { echo "bench_growth: not converted" >&2; exit 1; }
	cost=$(awk -v n="$events" -v ms="$ms" 'BEGIN { printf "%.1f", ms * 1e6 / n }')
	own=$(awk -v n="$events" -v ms="$user" 'BEGIN { printf "%.1f", ms * 1e6 / n }')
	first=${first:-$own}
	printf '    %11d events: %6.1f ns CPU an event (%.1f in user space), %6.2f M events/s, peak %d KiB\n' "$events" "$cost" \
		"$own" "$(awk -v c="$cost" 'BEGIN { print 1000 / c }')" "$peak"
	awk -v a="$first" -v b="$own" 'BEGIN { exit !(b > 1.5 * a) }' && { echo "    missed: not linear"; missed=1; }
	[ "$peak" -le 65536 ] || { echo "    missed: wanted 65536 KiB at most"; missed=1; }
	[ "$size" -lt "$millions" ] || break
done
echo "CPUs, 2 million events, as many threads as CPUs (the worst case), and as many as cores:"
base= base_own=
for cpus in 1 8 64 "$most_cpus"; do
	[ "$cpus" -le "$most_cpus" ] || continue
	read -r _ _ _ peak <<<"$(measure 2000000 "$cpus" --threads "$cpus")"
	read -r _ _ _ own <<<"$(measure 2000000 "$cpus")"
	base=${base:-$peak} base_own=${base_own:-$own}
	per=$(awk -v a="$base" -v b="$peak" -v n="$cpus" 'BEGIN { printf "%.0f", (n > 1 ? (b - a) / (n - 1) : 0) }')
	per_own=$(awk -v a="$base_own" -v b="$own" -v n="$cpus" 'BEGIN { printf "%.0f", (n > 1 ? (b - a) / (n - 1) : 0) }')
	printf '    %4d CPUs: peak %6d KiB, %4d KiB for each further CPU; with a thread a core %6d KiB, %4d KiB\n' \
		"$cpus" "$peak" "$per" "$own" "$per_own"
	[ "$per" -le 1024 ] || { echo "    missed: wanted 1024 KiB a CPU at most"; missed=1; }
	[ "$own" -le 65536 ] || { echo "    missed: wanted 65536 KiB at most"; missed=1; }
done
exit $missed
