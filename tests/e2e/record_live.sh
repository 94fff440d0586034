#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Viewers of a recording that runs: host and guest merged and corrected while they are recorded; viewers come and go, one is
# killed, one has no secret; the recording knows of none of it.
set -euo pipefail

. "$(dirname "$0")/record_lib.sh"

(umask 077; echo "a shared secret" >"$work/secret")
"$agent" --listen "unix:$work/web" --secret-file "$work/secret" --allow 'sched:*' --allow 'raw_syscalls:*' 2>"$work/agent.log" &
pids="$pids $!"
for _ in $(seq 100); do grep -q Ready "$work/agent.log" && break; sleep 0.05; done

: >"$work/record.err"
"$tandem" record -o "$work/out" --no-kallsyms -e raw_syscalls:sys_enter -f 'comm == "dd"' --guest "web=unix:$work/web" \
	--secret-file "$work/secret" --serve tcp:127.0.0.1:0 --time 40 >"$work/record.out" 2>"$work/record.err" &
recorder=$!
pids="$pids $recorder"
address=
for _ in $(seq 200); do
	address=$(sed -n 's/.*Serving: address="tcp:\(.*\)"/\1/p' "$work/record.err")
	[ -n "$address" ] && [ -s "$work/out/host.recording/texts" ] && [ -s "$work/out/web.recording/texts" ] && break
	sleep 0.1
done
[ -n "$address" ] || fail "no service: $(cat "$work/record.err")"
sleep 1

# Marks that both tracers of the one kernel see: writes of a size that nobody else makes.
marks() { for i in 1 2 3 4 5; do dd if=/dev/zero of=/dev/null bs=$((7000 + i)) count=20 2>/dev/null; sleep 0.1; done; }

# 1. A viewer without the secret is refused with the reason, and the recording goes on.
status=0
timeout 20 "$tandem" view "tandem://$address/host" >/dev/null 2>"$work/err" || status=$?
[ "$status" = 1 ] && grep -qi secret "$work/err" || fail "without a secret: status $status: $(cat "$work/err")"

# 2. One viewer is killed while it views.
timeout -s KILL 4 "$tandem" view "tandem://$address/*" --secret-file "$work/secret" >/dev/null 2>&1 || true

# 3. Another sees both machines, in order, the guest's writes beside the host's.
"$tandem" view "tandem://$address/*" --secret-file "$work/secret" >"$work/view.txt" 2>"$work/view.err" &
viewer=$!
pids="$pids $viewer"
for _ in $(seq 30); do
	dd if=/dev/zero of=/dev/null count=1 2>/dev/null
	[ -s "$work/view.txt" ] && break
	sleep 0.5
done
[ -s "$work/view.txt" ] || fail "the viewer shows nothing: $(cat "$work/view.err")"
marks
sleep 2
kill -INT "$recorder"
status=0
wait "$recorder" || status=$?
[ "$status" = 0 ] || [ "$status" = 3 ] || fail "record: status $status: $(cat "$work/record.err")"
for _ in $(seq 100); do kill -0 "$viewer" 2>/dev/null || break; sleep 0.1; done
kill -0 "$viewer" 2>/dev/null && fail "the viewer goes on after the end of the recording"
for machine in host web; do
	for i in 1 2 3 4 5; do
		seen=$(grep " $machine " "$work/view.txt" | grep -c "NR 1 (.*, $(printf %x $((7000 + i))),\|count=$((7000 + i))\$") || true
		[ "$seen" -ge 20 ] || fail "$machine: 20 writes of $((7000 + i)) bytes were made, the viewer saw $seen"
	done
done
awk -F'[][]' '$2 < before { exit 1 } { before = $2 }' "$work/view.txt" || fail "the viewer's lines are not in order"

# 4. The files are as complete as without viewers.
for file in host.dat web.dat web.corrections; do
	[ -s "$work/out/$file" ] || fail "$file is missing"
done
[ -z "$(ls -d "$work"/out/*.recording 2>/dev/null)" ] || fail "a spool was left behind"
echo "ok"
