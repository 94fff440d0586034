#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From the start of the recorder to the start of its command, when host and guest record: a guest of 2 CPUs over TCP, both
# emulated machines joined by a link. Beside trace-cmd in the same machines, with Nagle's algorithm off at both ends and as it
# comes (bounded: longer is said as such). Then from this very machine to the guest. Ten minutes at most.
# usage: bench_record_start.sh [ROUNDS]      environment: TANDEM_BUILD (default: build/main)      as root
set -euo pipefail
cd "$(dirname "$0")/.."
export TANDEM_SOURCE=$PWD TANDEM_BUILD=${TANDEM_BUILD:-$PWD/build/main}
. tests/sync/rig_lib.sh
rounds=${1:-5}
patched_limit=60 plain_limit=120

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

# measure LIMIT COMMAND...: seconds from here to there by the host's clock; "over" where it took longer than the limit.
measure() {
	local limit=$1
	shift
	on_host "cd /tmp; rm -rf /tmp/rec*; a=\$(cut -d' ' -f1 /proc/uptime)
timeout $limit $* cut -d' ' -f1 /proc/uptime >/tmp/out 2>/tmp/err || true
b=\$(grep -x '[0-9.]*' /tmp/out | head -n 1)
[ -n \"\$b\" ] && echo \"\$a \$b\" | awk '{ printf \"%.2f\\n\", \$2 - \$1 }' || { echo over; tail -n 2 /tmp/err; }"
}
# agent ENVIRONMENT...: a fresh one of trace-cmd's: one that was left in a session serves nobody else.
agent() {
	on_guest "killall -9 trace-cmd 2>/dev/null; sleep 1
env $* trace-cmd agent -N 10.0.9.1 -p 8230 >/tmp/tc.log 2>&1 </dev/null &
sleep 2"
}
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

ours='tandem record --quiet -o /tmp/rec --no-kallsyms -e sched --secret-file /etc/secret --guest guest=tcp:10.0.9.2:8990 --'
plain='trace-cmd record -o /tmp/rec.dat -e sched -A 10.0.9.2:8230 --name 10.0.9.2 -e sched'
patched='LD_PRELOAD=/usr/lib/nodelay.so trace-cmd record -o /tmp/rec.dat -e sched -A 10.0.9.2:8230 --name 10.0.9.2 -e sched'
for _ in $(seq "$rounds"); do
	measure 60 "$ours" >>"$work/ours"
done
a=$(median <"$work/ours")
echo "tandem record:                     $a s from start to first event, all: $(tr '\n' ' ' <"$work/ours")"

for _ in $(seq "$rounds"); do
	rm -rf "$work/rec"
	began=${EPOCHREALTIME/[.,]/}
	"$TANDEM_BUILD/cli/tandem" record --quiet -o "$work/rec" --no-kallsyms -e sched --secret-file "$work/secret" \
		--guest "guest=tcp:127.0.0.1:${fwd[8990]}" -- sh -c 'echo ${EPOCHREALTIME:-$(date +%s.%N)}' >"$work/there" 2>"$work/err" || true
	awk -v began="$began" 'NR == 1 { printf "%.3f\n", $1 - began / 1e6 }' "$work/there" >>"$work/near"
done

echo "tandem record on this machine, the emulated guest over a forwarded port: $(median <"$work/near") s; bar 0.5 s"

for _ in 1 2 3; do
	agent LD_PRELOAD=/usr/lib/nodelay.so
	measure $patched_limit "env $patched" >>"$work/patched"
done
b=$(grep -x '[0-9.]*' "$work/patched" | median)
echo "trace-cmd, Nagle off at both ends: ${b:-none} s, x $(awk -v a="$a" -v b="${b:-$patched_limit}" 'BEGIN { printf "%.1f", b / a }') of ours; all: $(tr '\n' ' ' <"$work/patched")"
agent
measure $plain_limit "$plain" >"$work/plain"
read -r c <"$work/plain"
case $c in
over) echo "trace-cmd as it comes:             over $plain_limit s, x more than $(awk -v a="$a" -v b="$plain_limit" 'BEGIN { printf "%.0f", b / a }') of ours" ;;
*) echo "trace-cmd as it comes:             $c s, x $(awk -v a="$a" -v b="$c" 'BEGIN { printf "%.1f", b / a }') of ours" ;;
esac
