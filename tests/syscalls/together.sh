#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs at once in one session daemon record their own programs only, and the daemon of the first outlives it as long as others run.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
runs=5

# own_only DIR HUNDREDS: the trace is whole, and has the calls of one program; the shell makes a few of its own.
own_only() {
	grep -q '^check: ' "$1.err" && ! grep -q 'DOES NOT ADD UP\|INCOMPLETE' "$1.err" || fail "$1: $(cat "$1.err")"
	grep -q '^lost: 0 events discarded by LTTng, 0 packets overwritten, 0 calls' "$1.err" || fail "$1: $(cat "$1.err")"
	"$here/counts" "$1" >"$work/counts" || fail "$1 cannot be read"
	[ $(($(sed -n 's/^getuid //p' "$work/counts") / 100)) = "$2" ] ||
		fail "$1 has other programs' calls: $(grep getuid "$work/counts"), wanted $2 hundred and some"
}

pids=
# After a failure too: what was begun goes on to its end.
end_runs() {
	local i
	echo >"$work/home/go-on"
	chmod a+r "$work/home/go-on"
	for i in $pids; do
		wait "$i"
	done
}
# All begin before the first ends: each waits for a file that is made when the last is there.
all_at_once() {
	local as=$1 i
	pids=
	rm -rf "$work"/home/run* "$work"/home/there* "$work/home/go-on"
	for i in $(seq $runs); do
		(cd "$work/home" && $as "$tandem" syscalls -o "$work/home/run$i" -- bash -c \
			"echo >$work/home/there$i; while [ ! -e $work/home/go-on ]; do sleep 0.05; done; sleep 0.$i; $work/workload count $((100 * i))") \
			>"$work/home/run$i.out" 2>"$work/home/run$i.err" </dev/null &
		pids="$pids $!"
	done
	for _ in $(seq 600); do
		[ "$(find "$work/home" -name 'there*' | wc -l)" = $runs ] && break
		sleep 0.1
	done
	[ "$(find "$work/home" -name 'there*' | wc -l)" = $runs ] || fail "not all runs began: $(cat "$work"/home/run*.err)"
	echo >"$work/home/go-on"
	chmod a+r "$work/home/go-on"
	for i in $pids; do
		wait "$i" || fail "a run failed: $(cat "$work"/home/run*.err)"
	done
	pids=
	for i in $(seq $runs); do
		own_only "$work/home/run$i" "$i"
	done
}

# In a daemon that was there, and stays.
(export LTTNG_HOME=$work/home; exec_as_user lttng-sessiond --no-kernel) >"$work/sessiond" 2>&1 </dev/null &
daemon=$!
end_daemon="kill $daemon 2>/dev/null; wait $daemon"
cleanup="end_runs; $end_daemon"
export LTTNG_HOME=$work/home
for _ in $(seq 200); do
	as_user lttng list >/dev/null 2>&1 && break
	sleep 0.1
done
as_user lttng list >/dev/null 2>&1 || fail "the daemon does not answer: $(cat "$work/sessiond")"
all_at_once as_user
kill -0 $daemon || fail "the user's own daemon was ended"
as_user lttng list 2>&1 | grep -q 'tandem-syscalls' && fail "a session was left: $(as_user lttng list)"
eval "$end_daemon"
cleanup=end_runs
unset LTTNG_HOME
echo "$runs runs in a user's daemon: each has its own programs"

# As root, whose daemon is one for all: the first run starts it, and may be the first to end.
if [ "$(id -u)" = 0 ] && ! lttng list >/dev/null 2>&1; then
	all_at_once ""
	gone=
	for _ in $(seq 200); do
		lttng list >/dev/null 2>&1 || { gone=yes; break; }
		sleep 0.1
	done
	[ "$gone" ] || fail "the daemon that the runs started is still there: $(lttng list)"
	echo "$runs runs in root's daemon: each has its own programs, the daemon ended with the last"
fi
