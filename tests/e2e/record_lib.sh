# SPDX-License-Identifier: MIT
# record_lib.sh - sourced: what tests of recording beside an agent on this machine begin with. Root and tracefs, or SKIP.
#
#   $tandem $agent $tracing   programs, and where tracefs is mounted
#   $work                     a folder that goes when the test ends, unless KEEP is set
#   $pids                     processes to kill then
#   fail WORD... / skip WORD...

tandem=$TANDEM_BUILD/cli/tandem
agent=$TANDEM_BUILD/agent/tandem-agent
work=$(mktemp -d)
tracing=/sys/kernel/tracing
pids=

fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "SKIP: $*"; exit 77; }
cleanup() {
	for pid in $pids; do kill -KILL "$pid" 2>/dev/null || true; done
	rm -rf "$work"
}
[ -n "${KEEP:-}" ] || trap cleanup EXIT

[ "$(id -u)" = 0 ] || skip "recording needs root"
[ -e $tracing/trace_clock ] || mount -t tracefs tracefs $tracing 2>/dev/null || skip "no tracefs"
