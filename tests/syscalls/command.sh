#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What "tandem syscalls" promises its user: status, output, filter, profiles, sessions of one's own, refusals, nothing left.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
trace=$work/home/trace

record "$trace" bash -c 'echo out; echo err >&2; exit 7'
[ "$status" = 7 ] || fail "exit status $status, not the command's 7"
[ "$(cat "$work/out")" = out ] && [ "$(cat "$work/err.own")" = err ] || fail "the command's output was changed"
nothing_lost
grep -q 'the trace is in' "$work/said" || fail "it does not say where the trace is"
record "$trace" sh -c 'kill -9 $$'
[ "$status" = 137 ] || fail "killed command: status $status, not 137"
grep -q 'were killed or are still running' "$work/said" || fail "a killed program is not said"
record "$trace" /nonexistent/program
[ "$status" = 127 ] || fail "a command that is not there: status $status"

# The same calls as a kernel trace: LTTng's names, no prefix, none missing.
record "$trace" bash -c 'ls / | sort >/dev/null'
nothing_lost
as_user "$tandem" convert -q --as-kernel -o "$work/home/kernel" "$trace" >"$work/converted" 2>&1 || fail "convert: $(cat "$work/converted")"
babeltrace2 "$work/home/kernel" >"$work/kernel.txt" 2>"$work/converted" || fail "the kernel trace: $(cat "$work/converted")"
for side in entry exit; do
	[ "$(grep -c " syscall_${side}_[a-z]" "$work/kernel.txt")" = "$(babeltrace2 "$trace" | grep -c "tandem:syscall_${side}_")" ] ||
		fail "--as-kernel: not all ${side} events"
done
grep -q 'tandem:' "$work/kernel.txt" && fail "--as-kernel leaves the prefix"
grep -q 'syscall_entry_openat: .* tid = .* filename = "' "$work/kernel.txt" || fail "--as-kernel: $(grep -m 1 openat "$work/kernel.txt")"
for name in bash ls sort; do
	grep -q "lttng_statedump_process_state: .* name = \"$name\"" "$work/kernel.txt" || fail "--as-kernel: no thread is called $name"
done
grep -q 'lttng_statedump_process_state: .* name = ""' "$work/kernel.txt" && fail "--as-kernel: a thread without a name"

options="--filter openat,sched_getaffinity"
record "$trace" sh -c "nproc; cat /etc/hostname"
nothing_lost
[ "$("$here/counts" "$trace" | cut -d' ' -f1 | tr '\n' ' ')" = "openat sched_getaffinity " ] || fail "--filter lets others in"
options="--filter !%file,%memory"
record "$trace" ls /
nothing_lost
"$here/counts" "$trace" | grep -q '^openat\|^mmap\|^newfstatat' && fail "! does not leave out"
"$here/counts" "$trace" | grep -q '^write ' || fail "! leaves out all"
options="--filter nonsense"
record "$trace" true
[ "$status" = 2 ] || fail "an unknown call is no usage fault"

# Without the process's number in the events, what the trace says and what the programs said is still the same thing.
sed '/<contexts>/,/<\/contexts>/d' "$stage/sessions/tandem-syscalls.lttng" >"$work/bare.lttng"
chmod a+r "$work/bare.lttng"
options="--profile $work/bare.lttng"
record "$trace" bash -c "$work/workload count 1000; $work/workload count 500; exit 3"
[ "$status" = 3 ] || fail "without contexts: status $status"
nothing_lost
[ "$(sed -n 's/^\([0-9]*\) system calls.*/\1/p' "$work/said")" -lt 3000 ] || fail "without contexts calls count twice: $(cat "$work/said")"

options="--profile tandem-syscalls-flight"
record "$trace" ls /
"$here/counts" "$trace" | grep -q '^openat' || fail "the flight recorder left no snapshot"
options="--procname --profile syscalls-small"
record "$trace" "$work/workload" count 1000
nothing_lost
babeltrace2 "$trace" | grep 'entry_getuid' | grep -vc 'procname = "workload"' | grep -qx 0 || fail "--procname"
options=

# Asked to end, it asks the command by the same signal, and nothing stays behind: session, daemon, folder.
rm -rf "$trace"
(trap "" INT; cd "$work/home" && exec_as_user "$tandem" syscalls -o "$trace" -- \
	sh -c 'trap "exit 5" TERM; echo ready >ready; while :; do sleep 0.1; done') 2>"$work/err" &
front=$!
for _ in $(seq 100); do [ -e "$work/home/ready" ] && break; sleep 0.1; done
kill -TERM $front
wait $front
[ $? = 5 ] || fail "SIGTERM: the command did not get it: $(cat "$work/err")"
grep -q '^lost: 0 events' "$work/err" || fail "SIGTERM: no report: $(cat "$work/err")"

# What LTTng writes for each user is a trace of its own: all of them are counted.
mkdir "$work/home/users" && chown --reference="$work/home" "$work/home/users"
record "$work/home/users/1" "$work/workload" count 100
one=$(sed -n 's/^\([0-9]*\) system calls.*/\1/p' "$work/said")
record "$work/home/users/2" "$work/workload" count 200
two=$(sed -n 's/^\([0-9]*\) system calls.*/\1/p' "$work/said")
as_user "$tandem" syscalls --report "$work/home/users" >"$work/report" 2>&1
grep -q "^$((one + two)) system calls" "$work/report" || fail "two traces of $one and $two calls: $(cat "$work/report")"

mkdir -p "$trace" && as_user touch "$trace/mine"
(cd "$work/home" && as_user "$tandem" syscalls -o "$trace" -- true) 2>"$work/err"
[ $? = 1 ] && grep -q -- --force "$work/err" || fail "a used directory is not refused"

# Too little shared memory: a polite refusal with figures.
if [ "$(id -u)" = 0 ] && mkdir "$work/shm" && mount -t tmpfs -o size=4m none "$work/shm"; then
	cleanup="umount $work/shm"
	(cd "$work/home" && as_user env TANDEM_SHM_DIR="$work/shm" "$tandem" syscalls -o new -- true) 2>"$work/err"
	[ $? = 1 ] && grep -q 'MiB of shared memory (.* possible CPUs).*tandem-syscalls-small' "$work/err" ||
		fail "too little memory: $(cat "$work/err")"
	[ -e "$work/home/new" ] && fail "a refused run leaves a directory"
	umount "$work/shm"
	cleanup=
fi

# A daemon that does not come up: its own words, not the name of a file that is gone by then.
mkdir "$work/fake"
printf '#!/bin/sh\nseq 1000\necho "Error: no room for its sockets" >&2\nexit 1\n' >"$work/fake/lttng-sessiond"
chmod -R a+rx "$work/fake"
(cd "$work/home" && PATH=$work/fake:$PATH as_user "$tandem" syscalls -o no-daemon -- true) 2>"$work/err"
[ $? = 1 ] && grep -q 'ended at once; it said: .*999|1000|Error: no room for its sockets$' "$work/err" ||
	fail "a daemon that ends: $(cat "$work/err")"

# One that vanishes on the way: the last line says so, whatever was counted, and the status is the command's.
record "$trace" sh -c 'ls / >/dev/null; kill -9 "$(cat "$LTTNG_HOME/.lttng/lttng-sessiond.pid")"; exit 6'
[ "$status" = 6 ] || fail "a daemon that vanishes: status $status: $(cat "$work/err")"
tail -n 1 "$work/err" | grep -q 'error: THE TRACE IS INCOMPLETE' || fail "a daemon that vanishes: $(cat "$work/err")"

# A session of one's own: its daemon and it are left alone.
export LTTNG_HOME=$work/home
as_user lttng-sessiond --no-kernel --daemonize >"$work/daemon" 2>&1 || fail "lttng-sessiond: $(cat "$work/daemon")"
daemon=$(cat "$work/home/.lttng/lttng-sessiond.pid")
cleanup="kill $daemon"
lttng_() { as_user lttng "$@" >>"$work/lttng" 2>&1 || fail "lttng $*: $(tail -n 3 "$work/lttng")"; }
lttng_ create mine -o "$work/home/mine"
(cd "$work/home" && as_user "$tandem" syscalls --attach-session mine -- true) 2>"$work/err"
[ $? = 1 ] && grep -q "lttng enable-event -s mine -u 'tandem:\*'" "$work/err" || fail "a session without our events: $(cat "$work/err")"
lttng_ enable-event -s mine -u 'tandem:*'
(cd "$work/home" && as_user "$tandem" syscalls --attach-session mine -- true) 2>"$work/err"
[ $? = 1 ] && grep -q 'lttng start mine' "$work/err" || fail "a session that is not started"
lttng_ start mine
(cd "$work/home" && as_user "$tandem" syscalls --attach-session mine -- "$work/workload" count 100) 2>"$work/err" || fail "attach: $(cat "$work/err")"
kill -0 "$daemon" || fail "the user's daemon was stopped"
lttng_ list mine
lttng_ destroy mine
"$here/counts" "$work/home/mine" | grep -qx 'getuid 100' || fail "the user's session has not the calls"
for nothing in nosuch users/empty; do
	[ $nothing = nosuch ] || as_user mkdir "$work/home/$nothing"
	said=$(as_user "$tandem" syscalls --report "$work/home/$nothing" 2>&1)
	[ $? = 1 ] && [[ $said == *"/$nothing: no trace there"* && $said != *"system calls"* ]] || fail "--report $nothing: $said"
done
as_user "$tandem" syscalls --report "$work/home/mine" | grep -q '^lost: 0 events' || fail "--report"

# The session files load as they are.
for file in "$stage"/sessions/*.lttng; do
	xmllint --noout --schema /usr/share/xml/lttng/session.xsd "$file" 2>>"$work/lttng" || fail "$file is not valid"
	lttng_ load -i "$file"
done
as_user lttng list 2>/dev/null | grep -c 'tandem-syscalls' | grep -qx 4 || fail "not all session files load"
kill "$daemon"
cleanup=
unset LTTNG_HOME

leftovers=$(find /tmp -maxdepth 1 -name 'tandem-syscalls-*' -user "$uid")
[ -z "$leftovers" ] || fail "left behind: $leftovers"
echo "command: status, output, filter, profiles, own sessions, refusals"
