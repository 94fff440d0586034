#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# tandem that begins and ends with a session of LTTng: clocks only, as an ordinary user with a session daemon of its own; and
# events, as root with one in a mount namespace of its own.
set -euo pipefail
. "$TANDEM_SOURCE/tests/support/lttng_session.sh"

tandem=$TANDEM_BUILD/cli/tandem
agent=$TANDEM_BUILD/agent/tandem-agent
work=$(mktemp -d)
pids=

fail() { echo "FAIL: $*" >&2; exit 1; }
cleanup() {
	lttng_end
	for pid in $pids; do kill -KILL "$pid" 2>/dev/null || true; done
	rm -rf "$work"
}
trap cleanup EXIT
chmod 755 "$work"
lttng_begin "$work/home"

"$agent" --listen "unix:$work/agent" --allow 'sched:*' --allow 'raw_syscalls:*' 2>"$work/agent.log" &
pids="$pids $!"
for _ in $(seq 100); do grep -q Ready "$work/agent.log" && break; sleep 0.05; done
chmod 777 "$work/agent"

# wait_end PID: it ends by itself; its status is in $status.
wait_end() {
	for _ in $(seq 600); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	! kill -0 "$1" 2>/dev/null || fail "it goes on after the session's end"
	status=0
	wait "$1" || status=$?
}
wait_text() {
	for _ in $(seq 300); do
		grep -q "$2" "$1" 2>/dev/null && return
		sleep 0.1
	done
	fail "no \"$2\": $(cat "$1")"
}

# 1. Nobody there of that name, and no such tracer: said at once.
status=0
as_user "$tandem" sync --attach lttng:nobody --guest "me=unix:$work/agent" 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -q 'no session "nobody"' "$work/err" || fail "unknown session: $status $(cat "$work/err")"
status=0
as_user "$tandem" sync --attach perf:x --guest "me=unix:$work/agent" 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -q 'lttng:SESSION' "$work/err" || fail "unknown tracer: $status $(cat "$work/err")"

# 2. Clocks only, by either command: ends with "lttng stop" and with "lttng destroy"; the files are beside the session's.
for command in sync "record --clocks-only"; do
	as_user lttng create mine --output="$work/home/trace-${command%% *}" >/dev/null
	as_user lttng enable-event --userspace 'none:*' >/dev/null
	# shellcheck disable=SC2086
	"${user[@]}" "$tandem" $command --attach lttng:mine --guest "me=unix:$work/agent" >"$work/out" 2>&1 &
	pid=$!
	pids="$pids $pid"
	for _ in $(seq 300); do [ -s "$work/home/trace-${command%% *}-tandem/me.corrections" ] && break; sleep 0.1; done
	sleep 0.3
	kill -0 "$pid" 2>/dev/null || fail "$command: it ended before the session began: $(cat "$work/out")"
	as_user lttng start >/dev/null
	sleep 1
	if [ "$command" = sync ]; then as_user lttng stop >/dev/null; else as_user lttng destroy mine >/dev/null; fi
	wait_end "$pid"
	[ "$status" = 0 ] || [ "$status" = 3 ] || fail "$command: status $status: $(cat "$work/out")"
	[ -s "$work/home/trace-${command%% *}-tandem/me.exchanges" ] || fail "$command: no files beside the session's output"
	[ "$command" != sync ] || as_user lttng destroy mine >/dev/null
done

# 3. A session daemon that hangs does not hang us.
as_user lttng create hung --output="$work/home/hung" >/dev/null
kill -STOP "$lttng_sessiond"
status=0
timeout 60 setpriv --reuid="$([ "$(id -u)" = 0 ] && echo 65534 || id -u)" env "HOME=$lttng_home" "LTTNG_HOME=$lttng_home" \
	"$tandem" sync --attach lttng:hung --guest "me=unix:$work/agent" 2>"$work/err" || status=$?
kill -CONT "$lttng_sessiond"
[ "$status" = 1 ] && grep -q 'does not answer' "$work/err" || fail "a hung daemon: status $status, $(cat "$work/err")"

# 4. Events, too.
[ "$(id -u)" = 0 ] || { echo "ok, without recording: that needs root"; exit 0; }
[ -e /sys/kernel/tracing/trace_clock ] || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || { echo "SKIP: no tracefs"; exit 77; }
cat >"$work/inside" <<'INSIDE'
set -eu
mkdir -p /run/lttng
mount -t tmpfs tmpfs /run/lttng
export HOME=$work/root LTTNG_HOME=$work/root
mkdir -p "$HOME"
lttng-sessiond --no-kernel >"$work/root.sessiond" 2>&1 &
sessiond=$!
trap 'kill $sessiond 2>/dev/null || true; wait $sessiond || true' EXIT
i=0
until lttng list >/dev/null 2>&1; do sleep 0.1; i=$((i + 1)); [ $i -lt 100 ] || exit 77; done
lttng create both --output="$work/root/both" >/dev/null
lttng enable-event --userspace 'none:*' >/dev/null
"$tandem" record --no-kallsyms --attach lttng:both -e raw_syscalls --guest "me=unix:$work/agent" >"$work/out" 2>"$work/err" &
pid=$!
i=0
until grep -q 'Ready: waits' "$work/err"; do sleep 0.1; i=$((i + 1)); [ $i -lt 300 ] || exit 1; done
dd if=/dev/zero of=/dev/null bs=1 count=3000 2>/dev/null
now() { /usr/bin/python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))'; }
now >"$work/began"
lttng start >/dev/null
i=0
until [ "$(cat /sys/kernel/tracing/instances/tandem-$pid-*/tracing_on)" = 1 ]; do sleep 0.05; i=$((i + 1)); [ $i -lt 300 ] || exit 1; done
dd if=/dev/zero of=/dev/null bs=1 count=500 2>/dev/null
lttng stop >/dev/null
i=0
while kill -0 $pid 2>/dev/null; do sleep 0.1; i=$((i + 1)); [ $i -lt 600 ] || exit 1; done
wait $pid || [ $? -eq 3 ]
lttng destroy both >/dev/null
INSIDE
work=$work tandem=$tandem timeout 200 unshare -m --propagation private bash "$work/inside" || fail "inside: status $?: $(cat "$work/err" "$work/out")"
dir=$work/root/both-tandem
for file in host.dat me.dat me.exchanges me.corrections; do
	[ -s "$dir/$file" ] || fail "$file is missing: $(ls "$work/root" "$dir")"
done
for file in host me; do
	trace-cmd report -t -i "$dir/$file.dat" 2>/dev/null >"$work/$file.txt"
	writes=$(grep -c '^ *dd-.*sys_enter: *NR 1 ' "$work/$file.txt") || true
	[ "$writes" -ge 500 ] || fail "$file: 500 writes were made while the session ran, $writes are there"
	[ "$writes" -lt 3000 ] || fail "$file: $writes writes: those of before the session began are there, too"
done
/usr/bin/python3 - "$work" <<'PYTHON' || fail "an event is older than the session"
import re, sys
work = sys.argv[1]
began = int(open(f"{work}/began").read())
first = min(int(a) * 10**9 + int(b) for a, b in re.findall(r"\] +(\d+)\.(\d{9}): ", open(f"{work}/host.txt").read()))
assert first >= began, (first, began)
PYTHON
grep -q 'LTTng' "$work/out" || fail "the clock's reason is not told: $(cat "$work/out")"
echo "ok"
