#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The decoder beside trace-cmd report on the same file, in one run: CPU time, medians.
# usage: bench_decode.sh [FILE]    FILE: a trace.dat; default: 100 MB made from a bundled one
# BUILD names the build tree (default build/main beside this folder).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../build/main}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

file=${1:-}
if [ -z "$file" ]; then
	file=$work/big.dat
	"$here/make_big_trace" "$here/../tests/data/single/v6.dat" "$file" 100
fi

"$build/benches/bench_decode" "$file" 7 >"$work/ours"
# A compressed file has no walk of its own: its batches count.
grep -q '^walk' "$work/ours" || sed -i 's/^batches/walk/' "$work/ours"
ours=$(awk '/^walk/ { print $(NF - 2) }' "$work/ours") # million events a second
events=$(awk '/^walk/ { print $2 }' "$work/ours")

# The rival formats text as well; /dev/null takes it.
for _ in 1 2 3; do
	TIMEFORMAT='%U %S'
	{ time trace-cmd report "$file" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
done | sort -n | sed -n 2p >"$work/rival"

cat "$work/ours"
awk -v events="$events" -v ours="$ours" '{
	rival = events / $1 / 1e6
	printf "rival trace-cmd report: %.2f s CPU, %.3f M events/s\n", $1, rival
	printf "decode: %.1f M events/s walked and stamped, %.0f times trace-cmd report\n", ours, ours / rival
}' "$work/rival"
