#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Signals at every instruction of the hooks: each call of handler and thread is recorded, or counted as missed.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
record "$work/home/trace" "$work/workload" storm 20000
[ "$status" = 0 ] || fail "status $status: $(cat "$work/err")"
read -r _ _ uids _ ppids < <(grep '^storm' "$work/err")
"$here/counts" "$work/home/trace" >"$work/counts"
missed=$(sed -n 's/.*overwritten, \([0-9]*\) calls not recorded.*/\1/p' "$work/said")
got_uids=$(sed -n 's/^getegid //p' "$work/counts")
got_ppids=$(sed -n 's/^getppid //p' "$work/counts")
[ "$((got_uids + got_ppids + missed))" = "$((uids + ppids))" ] ||
	fail "made $uids + $ppids calls, recorded $got_uids + $got_ppids, missed $missed"
[ "$missed" = 0 ] || fail "$missed calls were missed"
echo "storm: $ppids signals among $uids calls, all recorded"
