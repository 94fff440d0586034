#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tandem record into a directory that another one uses, or in which a killed one left its work; and under a limit of file sizes.
set -euo pipefail
. "$(dirname "$0")/record_lib.sh"
first=
cleanup() {
	[ -z "$first" ] || kill "$first" 2>/dev/null || true
	wait
	rm -rf "$work"
}

# begin DIR: a recording until it is told to end; records once its spool has pages.
begin() {
	"$tandem" record -o "$1" --no-kallsyms -e sched:sched_switch >"$work/first.out" 2>"$work/first.err" </dev/null &
	first=$!
	for _ in $(seq 300); do
		[ ! -s "$1/host.recording/cpu0" ] || return 0
		kill -0 $first 2>/dev/null || fail "it does not record: $(cat "$work/first.err")"
		sleep 0.1
	done
	fail "nothing is recorded"
}
# refused STATUS WORDS COMMAND...
refused() {
	local wanted=$1 words=$2 status=0
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	[ "$status" = "$wanted" ] && grep -q -- "$words" "$work/err" || fail "$*: status $status: $(cat "$work/err")"
}

# 1. While one records, no other may take its place or complete its work.
begin "$work/a"
refused 1 'another tandem record writes there' "$tandem" record -o "$work/a" --no-kallsyms -e sched:sched_switch --time 1
refused 1 'another tandem record writes there' "$tandem" record -o "$work/a" --force --no-kallsyms -e sched:sched_switch --time 1
refused 1 'another tandem record writes there' "$tandem" record --finish "$work/a"
kill -INT $first
wait $first || fail "the first recording was hurt: $(cat "$work/first.err")"
first=
[ "$(ls "$work/a")" = host.dat ] || fail "left: $(ls "$work/a")"
"$tandem" info "$work/a/host.dat" >/dev/null || fail "the first recording cannot be read"

# 2. What a killed one left is not thrown away unasked.
begin "$work/b"
kill -9 $first
wait $first 2>/dev/null || true
first=
pages=$(stat -c %s "$work/b/host.recording/cpu0")
refused 1 '--finish' "$tandem" record -o "$work/b" --no-kallsyms -e sched:sched_switch --time 1
[ "$(stat -c %s "$work/b/host.recording/cpu0")" = "$pages" ] || fail "the leftover was changed"
"$tandem" record -q --finish "$work/b" || fail "--finish: status $?"
[ "$(ls "$work/b")" = host.dat ] || fail "--finish left $(ls "$work/b")"
begin "$work/c"
kill -9 $first
wait $first 2>/dev/null || true
first=
"$tandem" record -q -o "$work/c" --force --no-kallsyms -e sched:sched_switch --time 1 </dev/null 2>"$work/err" || fail "--force: $(cat "$work/err")"
[ "$(ls "$work/c")" = host.dat ] || fail "--force left $(ls "$work/c")"

# 3. A limit of file sizes is told as a full disk is, and what was recorded stays; nothing is left in the kernel.
status=0
(ulimit -f 9000; exec "$tandem" record -o "$work/d" --no-kallsyms -e raw_syscalls -c -- \
	dd if=/dev/zero of=/dev/null bs=1 count=300000) >"$work/out" 2>"$work/err" </dev/null || status=$?
[ "$status" = 3 ] && grep -q 'File too large' "$work/err" || fail "a limit of file sizes: status $status: $(cat "$work/err")"
[ "$(ls "$work/d")" = host.dat ] || fail "a limit of file sizes left $(ls "$work/d")"
"$tandem" info "$work/d/host.dat" >/dev/null || fail "what was recorded up to the limit cannot be read"
for instance in "$tracing"/instances/tandem-*; do
	[ -e "$instance" ] || continue
	pid=${instance##*/tandem-}
	[ -e "/proc/${pid%%-*}" ] || fail "$instance was left"
done
echo "one at a time in a directory; a leftover stays until it is finished or replaced; a limit is told"
