# SPDX-License-Identifier: MIT
# live_lib.sh - sourced: a live LTTng session through lttng-relayd and a viewer with the filter; all goes when the test ends.
#
#   fail WORD...                 prints why and what the programs said, ends
#   live_begin FIRST_PORT        session "live" of an ordinary user, its relay daemon on three free ports from FIRST_PORT on
#   live_view PARAMETERS         the viewer, in the background: corrected events into $work/out, errors into $work/viewer.err
#   live_stamps                  what was recorded and what came out, one pair of ns a line

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
pids=
trap 'for p in $pids; do kill $p 2>/dev/null || true; done; lttng_end 2>/dev/null; rm -rf "$work"' EXIT
chmod 755 "$work"
export BABELTRACE_PLUGIN_PATH=$TANDEM_BUILD/plugin:$TANDEM_BUILD/tests/filter
. "$here/../support/lttng_session.sh"

fail() {
	echo "FAIL: $*"
	for f in "$work"/*.err; do echo "== $f"; tail -n 20 "$f"; done
	ls -l "$work"
	exit 1
}

live_begin() {
	LTTNG_RELAYD=$(/usr/bin/python3 -c '
import socket, sys
first = int(sys.argv[1])
for port in range(first, first + 10000, 3):
    try:
        for p in range(port, port + 3):
            s = socket.socket(); s.bind(("127.0.0.1", p)); s.close()
    except OSError:
        continue
    print(port)
    break' "$1")
	lttng_begin "$work/home"
	as_user lttng create live --live=200000 --ctrl-url="tcp4://127.0.0.1:$LTTNG_RELAYD" \
		--data-url="tcp4://127.0.0.1:$((LTTNG_RELAYD + 1))" >/dev/null
	as_user lttng enable-channel -u c --subbuf-size=64k --num-subbuf=8 >/dev/null
	as_user lttng enable-event -u -c c 'tandemtest:*' >/dev/null
	as_user lttng start >/dev/null
}

live_view() {
	local url
	url=net://127.0.0.1:$((LTTNG_RELAYD + 2))/host/$(hostname)/live
	timeout 100 babeltrace2 run --retry-duration=50000 \
		-c "in:source.ctf.lttng-live" -p "inputs=[\"$url\"],session-not-found-action=\"end\"" \
		-c mux:filter.utils.muxer -c fix:filter.tandem.clock -p "corrections=\"unix:$work/service\",host-clock=0,$1" \
		-c check:filter.tandemtest.check -c out:sink.text.pretty -p 'clock-seconds=yes,path="'"$work/out"'"' \
		-x in:mux -x mux:fix -x fix:check -x check:out 2>"$work/viewer.err" &
	viewer=$!
	pids="$pids $viewer"
}

live_stamps() {
	as_user find "$work/home/relayd" -name metadata -print >"$work/found"
	babeltrace2 --clock-cycles "$(dirname "$(head -1 "$work/found")")" 2>/dev/null |
		sed -E 's/^\[0*([0-9]+)\].*/\1/' >"$work/readings"
	sed -E 's/^\[([0-9]+)\.([0-9]+)\].*/\1\2/' "$work/out" >"$work/stamps"
	paste "$work/readings" "$work/stamps"
}
