#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Wakeups a second of an agent that nobody talks to: context switches of all its threads, fresh and after a recording.
# usage: bench_agent_idle.sh [SECONDS]      environment: TANDEM_BUILD (default: build/main)      as root for the second figure
set -euo pipefail
cd "$(dirname "$0")/.."
build=${TANDEM_BUILD:-$PWD/build/main}
seconds=${1:-10}
work=$(mktemp -d)
agent=
trap '[ -z "$agent" ] || kill "$agent"; rm -rf "$work"' EXIT

"$build/agent/tandem-agent" --listen "unix:$work/agent" --allow 'sched:*' 2>"$work/log" &
agent=$!
for _ in $(seq 100); do
	grep -q Ready "$work/log" 2>/dev/null && break
	sleep 0.05
done
switches() { cat /proc/"$agent"/task/*/status | awk '/ctxt_switches/ { n += $2 } END { print n }'; }
measure() {
	local before
	sleep 1
	before=$(switches)
	sleep "$seconds"
	awk -v n="$(($(switches) - before))" -v s="$seconds" -v what="$1" 'BEGIN { printf "agent, %s: %.2f wakeups/s (%d in %d s); bar 0\n", what, n / s, n, s }'
}
measure "nobody was there yet"
if [ "$(id -u)" = 0 ] && [ -e /sys/kernel/tracing/instances ]; then
	"$build/cli/tandem" record --quiet -o "$work/rec" --no-kallsyms -e sched:sched_switch --guest "g=unix:$work/agent" -- sleep 0.3
	measure "after a recording"
fi
