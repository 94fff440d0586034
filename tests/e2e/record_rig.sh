#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Three real guests under qemu and their host in one recording, while the host asks each of them questions over TCP: every
# request and reply is in both files, in causal order; trace-cmd and KernelShark's library read the same files alike.
set -euo pipefail
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"

static=$TANDEM_BUILD/agent/tandem-agent-static
[ -x "$static" ] || { echo "SKIP: no static agent in this build"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "SKIP: recording needs root"; exit 77; }
[ -e /sys/kernel/tracing/trace_clock ] || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null ||
	{ echo "SKIP: no tracefs"; exit 77; }

printf 'between us\n' >"$work/secret"
chmod 600 "$work/secret"
cat >"$work/start" <<'END2'
#!/bin/sh
request-reply serve 9000 &
exec tandem-agent-static --listen tcp:0.0.0.0:8990 --secret-file /etc/secret --allow '*:*'
END2
chmod +x "$work/start"
make_guest record.img --add "$static" --add "$TANDEM_BUILD/tests/support/request-reply" \
	--add "$work/secret:/etc/secret" --add "$work/start:/etc/guest-start"

names=(one two three)
cpus=(2 1 1)
options=()
for i in 0 1 2; do
	start_guest record.img --name "${names[i]}" --smp "${cpus[i]}" --mem 400 --fwd 8990 --fwd 9000
	options+=(--guest "${names[i]}=tcp:127.0.0.1:${fwd[8990]}")
	questions[i]=${fwd[9000]}
done

# The conversations: all three at once.
count=150
cat >"$work/talk" <<END2
#!/bin/sh
for port in ${questions[*]}; do
	"$TANDEM_BUILD/tests/support/request-reply" ask 127.0.0.1 \$port $count 2000 &
	pids="\$pids \$!"
done
for pid in \$pids; do wait \$pid || exit 1; done
END2
chmod +x "$work/talk"
status=0
"$TANDEM_BUILD/cli/tandem" record -o "$work/out" --no-kallsyms -b 8192 --secret-file "$work/secret" \
	-e raw_syscalls -f 'id == 44 || id == 45' -e sched:sched_switch "${options[@]}" -- "$work/talk" \
	>"$work/record.out" 2>"$work/record.err" || status=$?
cat "$work/record.out" "$work/record.err"
# An emulated guest on a busy machine may miss a burst: that costs accuracy, and is said.
[ "$status" -eq 0 ] || { [ "$status" -eq 3 ] && ! grep -v 'no time exchanges at the end' "$work/record.err"; } ||
	die "record: status $status"
[ "$(grep -c "^asked $count\$" "$work/record.out")" -eq 3 ] || die "the guests did not answer"
[ -z "$(ls -d "$work"/out/*.recording 2>/dev/null)" ] || die "a spool was left behind"

"$TANDEM_SOURCE/tests/e2e/conversation.py" "$work/out" "$count" "${names[@]}"
