#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tandem record on this machine, with the real tracefs: the files open in trace-cmd, nothing is left behind, a full disk
# and a killed recorder lose only what had to be lost.
set -euo pipefail

. "$(dirname "$0")/record_lib.sh"
cleanup() {
	if mountpoint -q "$work/small" 2>/dev/null; then umount "$work/small"; fi
	rm -rf "$work"
}
command -v trace-cmd >/dev/null || skip "trace-cmd is not installed"

# Instances named after a process that is gone.
leftovers() {
	local name pid
	for name in "$tracing"/instances/tandem-*; do
		[ -e "$name" ] || continue
		pid=${name##*/tandem-}
		pid=${pid%%-*}
		[ "$pid" != "$1" ] || echo "$name"
	done
}

# 1. A command that writes 2000 times: each write is in the file, with both ends, under the command's own task.
"$tandem" record -o "$work/a" --quiet -e raw_syscalls -c -- \
	dd if=/dev/zero of=/dev/null bs=1 count=2000 2>/dev/null || fail "record: status $?"
writes=$(trace-cmd report -i "$work/a/host.dat" 2>/dev/null | grep -c 'sys_enter:.* NR 1 ')
[ "$writes" -ge 2000 ] || fail "2000 writes were made, trace-cmd reads $writes"
[ ! -e "$work/a/host.recording" ] || fail "the spool was left behind"

# 2. A filter, a clock and a glob are what the file says.
"$tandem" record -o "$work/b" --quiet -C boot -e 'raw_syscalls:sys_e*' -f 'id == 39' --no-kallsyms -- \
	sh -c 'i=0; while [ $i -lt 50 ]; do i=$((i + 1)); dd if=/dev/zero of=/dev/null count=1 2>/dev/null; done'
others=$(trace-cmd report -i "$work/b/host.dat" 2>/dev/null | grep 'sys_e' | grep -vc 'NR 39 \|sys_exit: *39') || true
[ "$others" = 0 ] || fail "the filter let $others events pass"
[ "$(trace-cmd dump --options -i "$work/b/host.dat" 2>/dev/null | grep -c '\[boot\]')" -gt 0 ] || fail "the clock is not boot"

# 3. What it refuses, it refuses before anything exists.
status=0
"$tandem" record -o "$work/a" -e sched -- true 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -q -- --force "$work/err" || fail "an existing file was not protected"
status=0
"$tandem" record -o "$work/c" -e nosuchevent -- true 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -q nosuchevent "$work/err" || fail "an unknown event was not named"
[ ! -e "$work/c/host.dat" ] || fail "a file of nothing"
true &
wait $!
status=0
"$tandem" record -o "$work/gone" -e sched --pid $! 2>"$work/err" </dev/null || status=$?
[ "$status" = 2 ] && grep -q "no such process" "$work/err" || fail "a process that is gone was waited for"
sleep 1 &
timeout 60 "$tandem" record -o "$work/pid" -e sched --pid $! -q </dev/null || fail "the end of the recorded process was not seen"
sh -c 'sleep 0.5; (sleep 2) & exit 0' &
began=$SECONDS
timeout 60 "$tandem" record -o "$work/pidc" -e sched --pid $! -c -q </dev/null || fail "the end of the recorded process's child"
[ $((SECONDS - began)) -ge 1 ] || fail "a recording ended before the children that it follows"
status=0
"$tandem" record -o "$work/f" -e sched:sched_switch -f 'nofield == 3' -- true 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -q "filter of sched:sched_switch is refused: Field not found" "$work/err" ||
	fail "the kernel's reason for a refused filter: $(cat "$work/err")"

# 4. Full disk: what fitted is complete and opens; status 3.
mkdir "$work/small"
mount -t tmpfs -o size=24m tmpfs "$work/small" || skip "no tmpfs can be mounted"
status=0
timeout 60 "$tandem" record -o "$work/small/d" --no-kallsyms -e raw_syscalls --time 30 -- \
	dd if=/dev/zero of=/dev/null bs=1 count=3000000 >/dev/null 2>"$work/err" || status=$?
[ "$status" = 3 ] || fail "full disk: status $status, wanted 3: $(cat "$work/err")"
grep -qi 'space' "$work/err" || fail "full disk was not said: $(cat "$work/err")"
events=$(trace-cmd report -i "$work/small/d/host.dat" 2>/dev/null | grep -c sys_enter) || true
[ "$events" -gt 10000 ] || fail "full disk: only $events events can be read"
umount "$work/small"

# 5. A killed recorder: the next one removes its instance, --finish makes its file.
"$tandem" record -o "$work/e" --quiet --no-kallsyms -b 64 -e raw_syscalls -- sleep 60 &
pid=$!
for _ in $(seq 50); do
	[ -s "$work/e/host.recording/cpu0" ] && break
	dd if=/dev/zero of=/dev/null bs=1 count=20000 2>/dev/null
	sleep 0.1
done
child=$(pgrep -P $pid -x sleep)
kill -KILL $pid
wait $pid 2>/dev/null || true
kill -KILL "$child"
[ -n "$(leftovers $pid)" ] || fail "the killed recorder left no instance, so nothing is tested"
"$tandem" record -o "$work/f" --quiet -e sched -- true 2>/dev/null || fail "record after a kill: status $?"
[ -z "$(leftovers $pid)" ] || fail "the instance of the killed recorder is still there"
"$tandem" record --finish "$work/e" >/dev/null || fail "--finish: status $?"
[ "$(trace-cmd report -i "$work/e/host.dat" 2>/dev/null | grep -c sys_enter)" -gt 0 ] || fail "the completed file has no events"

# 6. A recorder in a PID namespace of its own, a container's: one outside, which cannot see its process, leaves its instance alone.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	unshare --pid --fork --mount-proc "$tandem" record -o "$work/g" --quiet --no-kallsyms -e raw_syscalls -- \
		sh -c "touch '$work/runs'; while [ ! -e '$work/go' ]; do sleep 0.1; done; dd if=/dev/zero of=/dev/null bs=1 count=2000" 2>/dev/null &
	pid=$!
	for _ in $(seq 200); do [ -e "$work/runs" ] && break; sleep 0.1; done
	"$tandem" record -o "$work/h" --quiet -e sched -- true 2>"$work/err" || fail "record beside a container: $(cat "$work/err")"
	touch "$work/go"
	wait $pid || fail "record in a PID namespace: status $?"
	writes=$(trace-cmd report -i "$work/g/host.dat" 2>/dev/null | grep -c '^ *dd-.*sys_enter:.* NR 1 ') || true
	[ "$writes" -ge 2000 ] || fail "in a PID namespace: 2000 writes were made, $writes are there"
fi

echo "ok"
