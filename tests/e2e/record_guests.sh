#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tandem record with agents on this machine: their traces are of the same kernel, so that every event of the host must be
# in theirs too, and at the same time within the bound; what peers do wrong harms nobody else.
set -euo pipefail

. "$(dirname "$0")/record_lib.sh"
command -v trace-cmd >/dev/null || skip "trace-cmd is not installed"

(umask 077; echo "a shared secret" >"$work/secret"; echo "another secret" >"$work/wrong")

# start_agent NAME ARGUMENT...: waits until it is ready; its pid is in agent_pid.
start_agent() {
	local name=$1
	shift
	"$agent" "$@" 2>"$work/$name.log" &
	agent_pid=$!
	pids="$pids $agent_pid"
	for _ in $(seq 100); do
		grep -q Ready "$work/$name.log" && return
		sleep 0.05
	done
	fail "agent $name did not start: $(cat "$work/$name.log")"
}

port=$((20000 + RANDOM % 20000))
start_agent web --listen "tcp:127.0.0.1:$port" --listen "unix:$work/web" --secret-file "$work/secret" \
	--allow 'raw_syscalls:*' --allow 'sched:*'
web_pid=$agent_pid

# 1. Sealed over TCP and bare over a UNIX socket in one recording: complete, nothing left behind.
"$tandem" record -o "$work/a" --no-kallsyms -b 8192 -e raw_syscalls --secret-file "$work/secret" \
	--guest "sealed=tcp:127.0.0.1:$port" --guest "bare=unix:$work/web" -- \
	dd if=/dev/zero of=/dev/null bs=1 count=3000 >"$work/out" 2>"$work/err" ||
	fail "record: status $?: $(cat "$work/err")"
# The guests are no machines of their own, so that nobody can tell how their TSCs run.
grep -q '^clock: mono_raw (.*"sealed"' "$work/out" || fail "the choice of clock is not told: $(cat "$work/out")"
for name in host sealed bare; do
	[ -s "$work/a/$name.dat" ] || fail "$name.dat is missing"
	writes=$(trace-cmd report -i "$work/a/$name.dat" 2>/dev/null | grep -c '^ *dd-.*sys_enter: *NR 1 ') || true
	[ "$writes" -ge 3000 ] || fail "$name.dat: 3000 writes were made, $writes are there"
done
for file in sealed.exchanges sealed.corrections bare.exchanges bare.corrections; do
	[ -s "$work/a/$file" ] || fail "$file is missing"
done
# A clock that counts ticks of 10 ms: its bound is told in ns all the same.
"$tandem" record -o "$work/ticks" --no-kallsyms -C uptime -e sched:sched_switch --secret-file "$work/secret" \
	--guest "bare=unix:$work/web" -- sleep 1 >"$work/out" 2>"$work/err" || [ $? -eq 3 ] || fail "uptime: $(cat "$work/err")"
bound=$(sed -n 's/.*bare.*clock [a-z]* to +-\([0-9]*\) ns.*/\1/p' "$work/out")
[ "${bound:-0}" -ge 10000000 ] || fail "uptime known to $bound ns: $(cat "$work/out")"
[ -z "$(ls -d "$work"/a/*.recording 2>/dev/null)" ] || fail "a spool was left behind"
for _ in $(seq 50); do
	left=$(ls -d $tracing/instances/tandem-"$web_pid"-* 2>/dev/null) || true
	[ -z "$left" ] && break
	sleep 0.1
done
[ -z "$left" ] || fail "the agent left a trace instance behind: $left"

# 2. The same write seen by host and guests: corrected times agree within the bound of the corrections. TIME_SHIFT, which
# trace-cmd applies, interpolates between few points; 2 ns are allowed for that.
"$TANDEM_SOURCE/tests/e2e/same_events.py" "$work/a" sealed bare || fail "times of host and guests do not agree"

# 3. trace-cmd knows host and guest as a pair.
trace-cmd dump --options -i "$work/a/host.dat" 2>/dev/null >"$work/options"
grep -q 'sealed' "$work/options" || fail "the host's file names no guest"

# 4. Who may not, gets nothing, and the reason; the agent goes on.
status=0
"$tandem" record -o "$work/b" -e sched --secret-file "$work/wrong" --guest "web=tcp:127.0.0.1:$port" -- \
	true >/dev/null 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -qi secret "$work/err" || fail "wrong secret: status $status, $(cat "$work/err")"
status=0
"$tandem" record -o "$work/b" -e irq --secret-file "$work/secret" --guest "web=tcp:127.0.0.1:$port" -e irq -- \
	true >/dev/null 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -q -- '--allow' "$work/err" || fail "events that are not allowed: status $status, $(cat "$work/err")"
[ -z "$(ls -A "$work/b")" ] || fail "a refused recording left files: $(ls -A "$work/b")"
# The same by a guest that answers in time and one that refuses: the clock of the first was asked for already.
status=0
"$tandem" record -o "$work/b" -e sched --secret-file "$work/secret" --guest "good=unix:$work/web" \
	--guest "web=tcp:127.0.0.1:$port" -e irq -- true >/dev/null 2>"$work/err" || status=$?
[ "$status" = 1 ] && [ -z "$(ls -A "$work/b")" ] || fail "one of two refuses: status $status, left: $(ls -A "$work/b"), $(cat "$work/err")"
status=0
"$tandem" record -o "$work/b" -e sched --secret-file "$work/secret" --guest "good=unix:$work/web" -- \
	"$work/no-such-program" >/dev/null 2>"$work/err" || status=$?
[ "$status" = 1 ] && [ -z "$(ls -A "$work/b")" ] || fail "no such command: status $status, left: $(ls -A "$work/b")"
status=0
"$tandem" record -o "$work/b" --guest "web=unix:$work/nobody" -- true >/dev/null 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -qF "; try: tandem doctor --guest web=unix:$work/nobody" "$work/err" ||
	fail "nobody there: status $status, $(cat "$work/err")"
# What the guest only inherits from the host is left out where it is not allowed, or does not exist; agent and summary say so.
"$tandem" record -o "$work/i" --no-kallsyms -e raw_syscalls -e timer -e 's*:s*_wa*' --secret-file "$work/secret" \
	--guest "web=unix:$work/web" -- sleep 0.2 >"$work/out" 2>"$work/err" || fail "inherited events that are not allowed: status $?: $(cat "$work/err")"
trace-cmd report -i "$work/i/web.dat" >"$work/text" 2>/dev/null
grep -q sys_enter "$work/text" || fail "no event that is allowed came"
! grep -q 'timer_start\|hrtimer_' "$work/text" || fail "events came that are not allowed"
grep -qx 'guest "web": left out "timer": not allowed by its agent' "$work/out" || fail "not said what is left out: $(cat "$work/out")"
grep -qxF 'guest "web": left out "s*:s*_wa*": some of it not allowed by its agent' "$work/out" ||
	fail "not said that only a part is left out: $(cat "$work/out")"
[ "$(grep -c 'left out' "$work/out")" = 2 ] || fail "more than that is left out: $(cat "$work/out")"
grep -q 'pattern="timer"' "$work/web.log" || fail "the agent does not say what it leaves out: $(cat "$work/web.log")"
status=0
"$tandem" record -o "$work/j" -e timer --secret-file "$work/secret" --guest "web=unix:$work/web" -- true >/dev/null 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -q -- '--allow' "$work/err" || fail "only events that are not allowed: status $status, $(cat "$work/err")"

# 5. A guest that dies: the other and the host are complete, its own file holds what came, status 3.
start_agent mortal --listen "unix:$work/mortal" --secret-file "$work/secret" --allow '*:*'
mortal_pid=$agent_pid
(sleep 2; kill -KILL "$mortal_pid" 2>/dev/null) &
status=0
timeout 60 "$tandem" record -o "$work/c" --no-kallsyms -b 8192 -e raw_syscalls --secret-file "$work/secret" \
	--guest "mortal=unix:$work/mortal" --guest "bare=unix:$work/web" -- \
	sh -c 'dd if=/dev/zero of=/dev/null bs=1 count=50000 2>/dev/null; sleep 3' >/dev/null 2>"$work/err" || status=$?
[ "$status" = 3 ] || fail "a guest died: status $status, wanted 3: $(cat "$work/err")"
grep -q '"mortal"' "$work/err" || fail "the dead guest is not named: $(cat "$work/err")"
# A busy machine may fill its buffers: that is told, and no fault of the other guest.
! grep '"bare"' "$work/err" | grep -qv 'events lost' || fail "the other guest suffered: $(cat "$work/err")"
for name in host mortal bare; do
	[ "$(trace-cmd report -i "$work/c/$name.dat" 2>/dev/null | grep -c sys_enter)" -gt 1000 ] ||
		fail "$name.dat cannot be read after a guest died"
done

# 6. The killed agent's instance goes with the next recording of any of ours.
"$tandem" record -o "$work/d" --quiet -e sched -- true 2>/dev/null
[ -z "$(ls -d $tracing/instances/tandem-"$mortal_pid"-* 2>/dev/null)" ] || fail "the dead agent's instance is still there"

# 7. A killed recorder: what came of the guest is completed, its exchanges to the last one among it.
"$tandem" record -o "$work/e" --quiet --no-kallsyms -b 64 -e raw_syscalls --secret-file "$work/secret" \
	--guest "bare=unix:$work/web" -- sleep 60 2>/dev/null &
recorder=$!
for _ in $(seq 200); do
	[ -s "$work/e/bare.recording/cpu0" ] && [ -s "$work/e/bare.corrections" ] && break
	dd if=/dev/zero of=/dev/null bs=1 count=20000 2>/dev/null
	sleep 0.1
done
child=$(pgrep -P $recorder -x sleep)
kill -KILL $recorder
wait $recorder 2>/dev/null || true
kill -KILL "$child"
[ -s "$work/e/bare.exchanges.part" ] || fail "the killed recorder left no log, so nothing is tested"
"$tandem" record --finish "$work/e" >/dev/null 2>"$work/err" || fail "--finish: status $?: $(cat "$work/err")"
[ "$(tail -n 1 "$work/e/bare.exchanges")" = end ] && [ ! -e "$work/e/bare.exchanges.part" ] || fail "the log was not completed"
for file in host bare; do
	[ "$(trace-cmd report -i "$work/e/$file.dat" 2>/dev/null | grep -c sys_enter)" -gt 0 ] || fail "$file.dat of a killed recorder cannot be read"
	BABELTRACE_PLUGIN_PATH="$TANDEM_BUILD/plugin" babeltrace2 "$work/e/$file.dat" >/dev/null 2>"$work/err" || fail "babeltrace2: $(cat "$work/err")"
done

# 8. An agent that hangs: the second signal waits for it no longer; what came is there.
start_agent hung --listen "unix:$work/hung" --secret-file "$work/secret" --allow 'sched:*'
hung_pid=$agent_pid
timeout 120 "$tandem" record -o "$work/f" --no-kallsyms -e sched:sched_switch --secret-file "$work/secret" \
	--guest "hung=unix:$work/hung" -- sleep 20 >/dev/null 2>"$work/err" &
guard=$!
sleep 2
recorder=$(pgrep -P "$guard") || fail "no recorder: $(cat "$work/err")"
kill -STOP "$hung_pid"
kill -TERM "$recorder"
for _ in 1 2 3; do
	sleep 2
	kill -TERM "$recorder" 2>/dev/null || break
done
began=$SECONDS status=0
wait "$guard" || status=$?
kill -CONT "$hung_pid"
[ "$status" = 3 ] && [ $((SECONDS - began)) -lt 20 ] && grep -q '"hung": interrupted' "$work/err" ||
	fail "an agent hung: status $status after $((SECONDS - began)) s: $(cat "$work/err")"
trace-cmd report -i "$work/f/hung.dat" >/dev/null 2>&1 || fail "hung.dat cannot be read"

echo "ok"
