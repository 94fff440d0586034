#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From the start of the recorder to the start of its command, when host and guest record: a guest of 2 CPUs over TCP, both
# emulated machines joined by a link. Beside trace-cmd in the same machines, with Nagle's algorithm off at both ends and as it
# comes (bounded: longer is said as such). Then from this very machine to the guest. Some six minutes, three of them trace-cmd's.
# usage: bench_record_start.sh [ROUNDS [LIMIT_S]]      as root; LIMIT_S is how long trace-cmd as it comes is waited for
# environment: TANDEM_BUILD (default: build/main)
set -euo pipefail
cd "$(dirname "$0")/.."
export TANDEM_SOURCE=$PWD TANDEM_BUILD=${TANDEM_BUILD:-$PWD/build/main}
. tests/sync/rig_lib.sh
rounds=${1:-5}
ours_limit=30 patched_limit=60 plain_limit=${2:-180}

printf 'between us\n' >"$work/secret"
chmod 600 "$work/secret"
make_guest bench-start.img --add "$TANDEM_BUILD/agent/tandem-agent-static" --add "$TANDEM_BUILD/cli/tandem" \
	--add "$TANDEM_BUILD/benches/nodelay.so:/usr/lib/nodelay.so" --add "$work/secret:/etc/secret"
start_guest bench-start.img --name host --smp 2 --mem 700 --link "server=$work/link,10.0.9.1/24"
host=$ctl
start_guest bench-start.img --name guest --smp 2 --mem 500 --fwd 8990 --link "client=$work/link,10.0.9.2/24"
guest=$ctl
on_host() { "$rig/run-guest" exec "$host" "$@"; }
on_guest() { "$rig/run-guest" exec "$guest" "$@"; }

on_guest 'tandem-agent-static --listen tcp:0.0.0.0:8990 --secret-file /etc/secret --allow "*:*" >/tmp/agent.log 2>&1 </dev/null &
i=0; until grep -q Ready /tmp/agent.log; do usleep 50000; i=$((i + 1)); [ $i -lt 200 ] || exit 1; done'

# What is recorded says when it starts; the second one ends trace-cmd too, whose end takes as long as its start.
on_host "cat >/tmp/first <<'END'
#!/bin/sh
cut -d' ' -f1 /proc/uptime >/tmp/began
END
{ cat /tmp/first; echo 'kill -9 \$PPID'; } >/tmp/only; chmod +x /tmp/first /tmp/only"

# measure LIMIT_S COMMAND...: seconds from here to there by the host's clock, or "over" and why.
measure() {
	local limit=$1
	shift
	on_host "cd /tmp; rm -rf /tmp/rec* /tmp/began; a=\$(cut -d' ' -f1 /proc/uptime)
timeout -k 5 $limit $* >/tmp/out 2>&1 || true
if [ -s /tmp/began ]; then echo \"\$a \$(cat /tmp/began)\" | awk '{ printf \"%.2f\\n\", \$2 - \$1 }'; else echo \"over: \$(tail -n 1 /tmp/out)\"; fi"
}
# agent ENVIRONMENT...: a fresh one of trace-cmd's: one that was left in a session serves nobody else; at a port of its own,
# as it does not take one that was in use a moment ago.
port=8230
clean='killall -9 trace-cmd 2>/dev/null; cd /sys/kernel/tracing; echo 0 >tracing_on; echo >set_event'
agent() {
	port=$((port + 1))
	on_host "$clean"
	on_guest "$clean; sleep 1
env $* trace-cmd agent -N 10.0.9.1 -p $port >/tmp/tc.log 2>&1 </dev/null &
i=0; until netstat -ltn | grep -q ':$port '; do usleep 100000; i=\$((i + 1)); [ \$i -lt 200 ] || exit 1; done" ||
		die "trace-cmd's agent does not start: $(on_guest 'cat /tmp/tc.log')"
}
median() { awk '/^[0-9.]+$/' "$@" | sort -n | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }
times() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", b / a }'; }
all() { tr '\n' ' ' <"$1"; }

for _ in $(seq "$rounds"); do
	measure $ours_limit tandem record --quiet -o /tmp/rec --no-kallsyms -e sched --secret-file /etc/secret \
		--guest guest=tcp:10.0.9.2:8990 -- /tmp/first >>"$work/ours"
done
a=$(median "$work/ours")
[ -n "$a" ] || die "tandem record: $(cat "$work/ours")"
echo "tandem record:                     $a s from start to first event, all: $(all "$work/ours")"

for _ in $(seq "$rounds"); do
	rm -rf "$work/rec"
	began=${EPOCHREALTIME/[.,]/}
	timeout -k 5 $ours_limit "$TANDEM_BUILD/cli/tandem" record --quiet -o "$work/rec" --no-kallsyms -e sched --secret-file "$work/secret" \
		--guest "guest=tcp:127.0.0.1:${fwd[8990]}" -- bash -c 'echo ${EPOCHREALTIME/,/.}' >"$work/there" 2>"$work/err" </dev/null ||
		cat "$work/err" >&2
	awk -v began="$began" 'NR == 1 { printf "%.3f\n", $1 - began / 1e6 }' "$work/there" >>"$work/near"
done
near=$(median "$work/near")
echo "tandem record on this machine, the emulated guest over a forwarded port: ${near:-none} s; bar 0.5 s; all: $(all "$work/near")"

for _ in 1 2 3; do
	agent LD_PRELOAD=/usr/lib/nodelay.so
	measure $patched_limit env LD_PRELOAD=/usr/lib/nodelay.so trace-cmd record -o /tmp/rec.dat -e sched \
		-A "10.0.9.2:$port" --name 10.0.9.2 -e sched /tmp/only >>"$work/patched"
done
b=$(median "$work/patched")
echo "trace-cmd, Nagle off at both ends: ${b:-over $patched_limit} s, x $(times "$a" "${b:-$patched_limit}") of ours; all: $(all "$work/patched")"

for _ in 1 2 3; do
	agent
	measure $patched_limit tandem record --quiet -o /tmp/rec --no-kallsyms -e sched \
		--guest "guest=trace-cmd:10.0.9.2:$port" -- /tmp/first >>"$work/driven"
done
d=$(median "$work/driven")
echo "tandem record with trace-cmd's agent as it comes: ${d:-over $patched_limit} s; all: $(all "$work/driven")"

agent
measure "$plain_limit" trace-cmd record -o /tmp/rec.dat -e sched -A "10.0.9.2:$port" --name 10.0.9.2 -e sched /tmp/only >"$work/plain"
c=$(median "$work/plain")
if [ -n "$c" ]; then
	echo "trace-cmd as it comes:             $c s, x $(times "$a" "$c") of ours, x $(times "${d:-$patched_limit}" "$c") of ours with its agent"
else
	echo "trace-cmd as it comes:             over $plain_limit s, x more than $(times "$a" "$plain_limit") of ours; $(all "$work/plain")"
fi
