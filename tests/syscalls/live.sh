#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# --live: calls are seen in a viewer while the command runs, and all of them are in what the relay daemon wrote.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
command -v lttng-relayd >/dev/null || { echo "SKIP: lttng-relayd is not installed"; exit 77; }
port=$(/usr/bin/python3 -c '
import socket
for port in range(25342, 35342, 3):
    try:
        for p in range(port, port + 3):
            s = socket.socket(); s.bind(("127.0.0.1", p)); s.close()
    except OSError:
        continue
    print(port)
    break')
relay=$work/home/relayd
(exec_as_user lttng-relayd -o "$relay" -C "tcp://127.0.0.1:$port" -D "tcp://127.0.0.1:$((port + 1))" \
	-L "tcp://127.0.0.1:$((port + 2))") >"$work/relayd" 2>&1 &
relayd=$!
cleanup="kill $relayd; kill \${viewer:-} 2>/dev/null"
for _ in $(seq 100); do
	/usr/bin/python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null && break
	kill -0 $relayd 2>/dev/null || fail "lttng-relayd: $(cat "$work/relayd")"
	sleep 0.1
done

# The command waits until the viewer has shown one of its calls, then makes its last ones.
cat >"$work/waits" <<'SCRIPT'
#!/bin/bash
for i in $(seq 900); do
	"$1" count 10
	[ -e "$2" ] && break
	sleep 0.1
done
"$1" count 500
exit 7
SCRIPT
chmod a+rx "$work/waits"
(cd "$work/home" && exec_as_user timeout -k 5 120 "$tandem" syscalls --live "net://127.0.0.1:$port:$((port + 1))" -- \
	"$work/waits" "$work/workload" "$work/home/seen") >"$work/out" 2>"$work/err" &
front=$!
for _ in $(seq 200); do
	url=$(sed -n 's/.*lttng-live \(net:[^ ]*\) .*/\1/p' "$work/err")
	[ -n "$url" ] && break
	sleep 0.1
done
[ -n "${url:-}" ] || fail "it does not say where to watch: $(cat "$work/err")"
timeout 110 babeltrace2 --input-format=lttng-live "${url/127.0.0.1/127.0.0.1:$((port + 2))}" >"$work/viewed" 2>"$work/viewer.err" &
viewer=$!
for _ in $(seq 900); do
	grep -q 'syscall_entry_getuid' "$work/viewed" && break
	kill -0 $front 2>/dev/null || break
	sleep 0.1
done
kill -0 $front 2>/dev/null || fail "the command ended before the viewer showed a call: $(cat "$work/err" "$work/viewer.err")"
touch "$work/home/seen"
wait $front
status=$?
[ "$status" = 7 ] || fail "status $status: $(cat "$work/err")"
grep -q "sent to net://127.0.0.1:$port" "$work/err" || fail "it does not say where the trace went: $(cat "$work/err")"
sent=$(as_user "$tandem" syscalls --report "$relay" 2>&1) || fail "the relay daemon's trace: $sent"
grep -q '^lost: 0 events discarded by LTTng, 0 packets' <<<"$sent" || fail "lost on the way: $sent"
got=$("$here/counts" "$relay" | sed -n 's/^getuid //p')
[ "$got" -ge 510 ] || fail "the relay daemon has only $got calls of getuid"
grep -q '^check: ' <<<"$sent" && ! grep -q 'DOES NOT ADD UP' <<<"$sent" || fail "the counts do not add up: $sent"
# A viewer sees all that was recorded before the session went away, at least what was there when it was looked at.
shown=$(grep -c 'syscall_entry_getuid' "$work/viewed")
[ "$shown" -ge 1 ] && [ "$shown" -le "$got" ] || fail "the viewer showed $shown of $got"
echo "live: $shown of $got calls shown while it ran, all in the relay daemon's trace"
