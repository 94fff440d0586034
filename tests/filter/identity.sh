#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# With a correction that changes nothing the filter changes nothing: text, details and CTF, over every kind of trace.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'lttng_end 2>/dev/null; rm -rf "$work"' EXIT
chmod 755 "$work"
export BABELTRACE_PLUGIN_PATH=$TANDEM_BUILD/plugin:$TANDEM_BUILD/tests/filter
. "$here/../support/lttng_session.sh"

fail() {
	echo "FAIL: $*"
	exit 1
}

# The three lines that the filter adds to a trace's environment, and the count of entries, are the only difference.
without_marks() {
	grep -v '^ *tandem_[a-z_]*: ' "$1" | sed -E 's/(Environment) \([0-9]+ entries\)/\1/'
}

# graph OUT SINK FILTERS... : runs source -> [muxer] -> filters -> check -> sink; $source holds the source's arguments.
graph() {
	local out=$1 sink=$2 last=$first args=() n=0
	shift 2
	for f in "$@"; do
		n=$((n + 1))
		if [ "$f" = clock ]; then
			args+=(-c "f$n:filter.tandem.clock" -p "corrections=\"$here/identity.corrections\",host-clock=$epoch")
		else
			args+=(-c "f$n:$f")
		fi
		args+=(-x "$last:f$n")
		last=f$n
	done
	if [ "$sink" = ctf ]; then
		args+=(-c "out:sink.ctf.fs" -p "path=\"$out\",quiet=yes")
	else
		args+=(-c "out:sink.text.$sink" -p "$sinkargs")
	fi
	timeout 120 babeltrace2 run "${source[@]}" "${args[@]}" -x "$last:out" >"$out.txt" 2>"$out.err" || { cat "$out.err"; fail "the graph failed"; }
}

compare() {
	local name=$1
	sinkargs="clock-cycles=yes,no-delta=yes,name-default=show"
	[ "$1" != rich ] || sinkargs="name-default=show"
	graph "$work/plain" pretty filter.tandemtest.check
	graph "$work/fixed" pretty clock filter.tandemtest.check
	[ -s "$work/plain.txt" ] || fail "$name: no output"
	cmp "$work/plain.txt" "$work/fixed.txt" || fail "$name: the text differs"
	sinkargs="color=never"
	graph "$work/plain" details
	graph "$work/fixed" details clock
	diff <(without_marks "$work/plain.txt") <(without_marks "$work/fixed.txt") >"$work/diff" ||
		{ head -20 "$work/diff"; fail "$name: the details differ"; }
	grep -q tandem_clock_corrected "$work/fixed.txt" || fail "$name: the trace is not marked"
	echo "$name: $(grep -c . "$work/plain.txt") lines of details equal"
	[ "$2" = ctf ] || return 0
	rm -rf "$work/plain" "$work/fixed"
	graph "$work/plain" ctf
	graph "$work/fixed" ctf clock
	local dir
	for dir in plain fixed; do
		local trace
		trace=$(dirname "$(find "$work/$dir" -name metadata)")
		# A trace's own uuid is random in each output; the environment has our marks.
		sed -E '/^env \{/,/^\}/d; /uuid = /{/clock/!s/"[-0-9a-f]{36}"/UUID/}' "$trace/metadata" >"$work/$dir.metadata"
		babeltrace2 --clock-cycles --no-delta "$trace" >"$work/$dir.ctf.txt"
	done
	diff "$work/plain.metadata" "$work/fixed.metadata" || fail "$name: the CTF metadata differ"
	cmp "$work/plain.ctf.txt" "$work/fixed.ctf.txt" || fail "$name: the CTF events differ"
	[ -s "$work/plain.ctf.txt" ] || fail "$name: no events in CTF"
	rm -rf "$work/plain" "$work/fixed"
}

# A CTF trace, through a muxer; its own epoch is put on again.
ctf() {
	source=(-c in:source.ctf.fs -p "inputs=[\"$2\"]${3:-}" -c mux:filter.utils.muxer -x in:mux)
	first=mux
	epoch=\"$2\"
	compare "$1" ctf
}

source=(-c in:source.tandemtest.rich)
first=in
epoch=1700000000000000123
compare rich no

data=$TANDEM_SOURCE/tests/data
ctf "LTTng kernel, host" "$data/lttng-kernel/pair1/host/kernel"
ctf "LTTng kernel, guest" "$data/lttng-kernel/pair1/guest/kernel"

# perf's own converter, where it is built with it.
perf_data=$data/perf/guest-mono-sys.data
if perf data convert -i "$perf_data" --to-ctf="$work/perf-ctf" >"$work/perf.log" 2>&1; then
	ctf "perf CTF" "$work/perf-ctf" ",force-clock-class-origin-unix-epoch=yes"
else
	echo "note: this perf does not convert to CTF"
fi

# LTTng-UST, every kind of field, small buffers that lose events, two channels, contexts.
lttng_begin "$work/home"
as_user lttng create ust --output="$work/home/ust" >/dev/null
as_user lttng enable-channel -u small --subbuf-size=4k --num-subbuf=2 --discard >/dev/null
as_user lttng enable-channel -u big --subbuf-size=64k --num-subbuf=8 >/dev/null
as_user lttng enable-event -u -c small 'tandemtest:fields' >/dev/null
as_user lttng enable-event -u -c big 'tandemtest:*' >/dev/null
as_user lttng add-context -u -c big -t vpid -t vtid -t procname -t pthread_id -t ip -t vuid -t pid_ns >/dev/null
as_user lttng start >/dev/null
as_user env LTTNG_UST_REGISTER_TIMEOUT=5000 "$TANDEM_BUILD/tests/filter/ust_fields" 3000
as_user lttng stop >/dev/null
as_user lttng destroy >/dev/null
trace=$(dirname "$(find "$work/home/ust" -name metadata | head -1)")
babeltrace2 "$trace" >"$work/ust.txt" 2>"$work/ust.err"
grep -q 'tandemtest:empty' "$work/ust.txt" || fail "the UST trace holds no events"
grep -q 'discarded' "$work/ust.err" || echo "note: this time LTTng lost nothing"
ctf "LTTng-UST" "$trace"
echo "identity: nothing differs"
