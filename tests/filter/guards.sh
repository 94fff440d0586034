#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The filter's cost in instructions, which the load of the machine does not change, and that memory does not grow.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'lttng_end 2>/dev/null; rm -rf "$work"' EXIT
chmod 755 "$work"
. "$here/../support/lttng_session.sh"
command -v valgrind >/dev/null || { echo "SKIP: valgrind is not here"; exit 77; }
# record ROUNDS: a UST trace of 2 * ROUNDS events in $trace
record() {
	as_user lttng create "c$1" --output="$work/home/c$1" >/dev/null
	as_user lttng enable-channel -u c --subbuf-size=1M --num-subbuf=4 --blocking-timeout=inf >/dev/null
	as_user lttng enable-event -u -c c 'tandemtest:*' >/dev/null
	as_user lttng add-context -u -c c -t vpid -t vtid -t procname >/dev/null
	as_user lttng start >/dev/null
	as_user env LTTNG_UST_REGISTER_TIMEOUT=5000 LTTNG_UST_ALLOW_BLOCKING=1 "$TANDEM_BUILD/tests/filter/ust_fields" "$1"
	as_user lttng stop >/dev/null
	as_user lttng destroy >/dev/null
	trace=$(dirname "$(find "$work/home/c$1" -name metadata | head -1)")
}
lttng_begin "$work/home"
record 15000
read -r base filter debug <<<"$("$here/../support/count-instructions" "$trace" "$TANDEM_BUILD/plugin" "$here/identity.corrections")"
# What a graph costs before its first event is the same for all: taken off with a trace of next to nothing.
big=$trace
record 1
read -r base0 filter0 debug0 <<<"$("$here/../support/count-instructions" "$trace" "$TANDEM_BUILD/plugin" "$here/identity.corrections")"
awk -v b="$base" -v f="$filter" -v d="$debug" -v b0="$base0" -v f0="$filter0" -v d0="$debug0" 'BEGIN {
	if (b <= b0 || f <= f0) { print "FAIL: nothing was counted"; exit 1 }
	base = b - b0; add = (f - f0) - base; other = d > d0 ? (d - d0) - base : 0
	printf "instructions an event: base %.0f, the filter adds %.0f (%.1f %%), debug-info adds %.0f\n",
		base / 30000, add / 30000, 100 * add / base, other / 30000
	# The budget is 25 % and a third; a little slack for other compilers.
	if (add > 0.28 * base) { print "FAIL: the filter adds more than 25 % (and slack) of the graph below it"; exit 1 }
	if (other > 0 && add > 0.37 * other) { print "FAIL: the filter adds more than a third of what debug-info adds"; exit 1 }
}'

# Peak memory over 30 000 events and over 600 000: what the filter keeps does not depend on their number.
peak() {
	BABELTRACE_PLUGIN_PATH=$TANDEM_BUILD/plugin /usr/bin/python3 - "$1" "$here/identity.corrections" <<-'END'
		import resource, subprocess, sys
		trace, corrections = sys.argv[1:]
		subprocess.run(["babeltrace2", "run", "-c", "in:source.ctf.fs", "-p", f'inputs=["{trace}"]', "-c", "mux:filter.utils.muxer",
		    "-c", "fix:filter.tandem.clock", "-p", f'corrections="{corrections}",host-clock=0', "-c", "out:sink.utils.dummy",
		    "-x", "in:mux", "-x", "mux:fix", "-x", "fix:out"], check=True)
		print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
	END
}
small=$(peak "$big")
record 300000
large=$(peak "$trace")
echo "peak memory: $small KiB over 30 000 events, $large KiB over 600 000"
# The traces are mapped, so the file's own pages count: only what lies above them is ours.
grown=$(((large - small) - $(du -sk "$trace" | cut -f1)))
[ "$grown" -lt 8192 ] || { echo "FAIL: memory grew by $grown KiB beyond the trace file"; exit 1; }
