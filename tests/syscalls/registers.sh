#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No register, flag or red zone is disturbed by a recorded call; vector registers as wide as the CPU has them.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
"$work/registers" >/dev/null || fail "the test itself: registers differ without us"
record "$work/home/trace" "$work/registers"
[ "$status" = 0 ] || fail "$(cat "$work/err")"
nothing_lost
"$here/counts" "$work/home/trace" | grep -q '^getuid 64' || fail "the calls were not recorded"
echo "64 flag patterns x 1000 recorded calls: registers, xmm, flags and red zone kept"
record "$work/home/trace" "$work/vectors"
[ "$status" = 0 ] || fail "$(cat "$work/err")"
nothing_lost
"$here/counts" "$work/home/trace" >"$work/counts"
for call in getuid access sched_get_priority_max; do
	[ "$(sed -n "s/^$call //p" "$work/counts")" -ge 200 ] || fail "$call was not recorded: $(cat "$work/counts")"
done
cat "$work/out"
