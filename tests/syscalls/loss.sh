#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Loss is exact: with rings far too small, events in the trace + discarded = sent, in total and for each process.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
sed 's|<subbuffer_size>.*|<subbuffer_size>16384</subbuffer_size>|; s|<subbuffer_count>.*|<subbuffer_count>2</subbuffer_count>|' \
	"$stage/sessions/tandem-syscalls.lttng" >"$work/tiny.lttng"
chmod a+r "$work/tiny.lttng"
options="--each-process --profile $work/tiny.lttng"
record "$work/home/trace" bash -c "for i in 1 2 3; do $work/workload count 50000 & done; wait"
[ "$status" = 0 ] || fail "status $status: $(cat "$work/err")"
discarded=$(sed -n 's/^lost: \([0-9]*\) events.*/\1/p' "$work/said")
[ "${discarded:-0}" -gt 100000 ] || fail "rings of 32 KiB lost only ${discarded:-nothing}: $(cat "$work/err")"
grep -q '^check: .* own$' "$work/said" || fail "it does not add up: $(cat "$work/said")"
# For each process: what it has and what it lacks are 2 x 50000 calls and its few others.
grep -c 'workload .* events, .* discarded' "$work/err" | grep -qx 3 || fail "not each process: $(cat "$work/err")"
while read -r events lost calls nature own; do
	[ $((events + lost)) = $((2 * calls - nature + own)) ] || fail "$events + $lost is not 2 x $calls - $nature + $own"
	[ "$calls" -gt 50000 ] || fail "a process has $calls calls"
done < <(sed -n "s/^ .* workload .* \([0-9]*\) events, \([0-9]*\) discarded, \([0-9]*\) calls, \([0-9]*\) without.*, \([0-9]*\) of the.*/\1 \2 \3 \4 \5/p" "$work/err")
options="--profile tandem-syscalls"
record "$work/home/trace" "$work/workload" count 300000
nothing_lost
echo "loss: $discarded events discarded with small rings, all accounted for; none in the default profile at full rate"
