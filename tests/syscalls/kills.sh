#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Killing the daemon, the consumer or the program at any point hurts nobody else.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
child_of() { ps -o pid= --ppid "$1" | head -n 1 | tr -d ' '; }
find_process() { ps -u "$uid" -o pid=,comm= | awk -v name="$1" '$2 ~ name { print $1; exit }'; }

# The command must end with its own status whatever is killed, and nothing may hang.
for victim in lttng-sessiond lttng-consumer; do
	for after in 0.3 1.0; do
		(
			for _ in $(seq 100); do
				pid=$(find_process "^$victim")
				[ -n "$pid" ] && break
				sleep 0.05
			done
			sleep "$after"
			pid=$(find_process "^$victim")
			[ -n "$pid" ] && kill -9 "$pid" && echo killed >"$work/killed"
		) &
		killer=$!
		rm -f "$work/killed"
		limit=60
		record "$work/home/trace" bash -c "for i in \$(seq 40); do $work/workload count 2000 || exit 1; sleep 0.05; done; exit 9"
		wait $killer
		[ -e "$work/killed" ] || fail "$victim was not there to be killed"
		[ "$status" = 9 ] || fail "$victim killed after $after s: the command's status became $status: $(cat "$work/err")"
		# A consumer that we killed leaves its daemon, and the other way round: end what is left.
		for name in lttng-sessiond lttng-consumer; do
			pid=$(find_process "^$name")
			[ -n "$pid" ] && kill -9 "$pid" 2>/dev/null
		done
		rm -rf /tmp/tandem-syscalls-* 2>/dev/null
	done
	echo "$victim killed: the command went on"
done

# A program killed while it records: the others go on, the trace can be read.
limit=60
record "$work/home/trace" bash -c "$work/workload count 100000000 & victim=\$!; sleep 0.4; kill -9 \$victim; wait \$victim; $work/workload count 5000"
[ "$status" = 0 ] || fail "a killed program: status $status"
"$here/counts" "$work/home/trace" >"$work/counts" || fail "the trace cannot be read"
[ "$(sed -n 's/^getuid //p' "$work/counts")" -gt 5000 ] || fail "the calls after the kill are missing"
grep -q '^1 programs were killed' "$work/said" || fail "the killed program is not said: $(cat "$work/said")"
echo "a program killed: the others recorded, the trace readable"

# The front end killed: the command goes on; the daemon ends by itself.
# within SECONDS CONDITION...: waits until it holds; a busy machine is slow.
within() {
	local left=$(($1 * 10))
	shift
	until "$@"; do
		[ $((left -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}
no_daemon() { [ -z "$(find_process '^lttng-sessiond')" ]; }
(cd "$work/home" && exec_as_user "$tandem" syscalls -o "$work/home/trace2" -- bash -c \
	"echo >$work/home/begun; while [ ! -e $work/home/go-on ]; do sleep 0.1; done; $work/workload count 100; echo done >$work/home/went-on") \
	>/dev/null 2>&1 &
front=$!
within 60 test -e "$work/home/begun" || fail "the command did not begin"
kill -9 $front
wait $front 2>/dev/null
as_user touch "$work/home/go-on"
within 60 test -e "$work/home/went-on" || fail "the command ended with the front end"
within 30 no_daemon || fail "the daemon outlives the front end that was killed"
rm -rf /tmp/tandem-syscalls-* 2>/dev/null
echo "the front end killed: the command went on, the daemon ended"
