#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A live LTTng session through lttng-relayd, corrected by a service that starts late, dies and comes back: no event is
# lost, none waits for ever, time never goes back, and the user is told once when the service goes.
set -euo pipefail

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
	ls -l "$work"; cat "$work/lines" || true
	exit 1
}

wait_for() { # SECONDS WHAT COMMAND...
	local until=$((SECONDS + $1)) what=$2
	shift 2
	until "$@"; do
		[ $SECONDS -lt $until ] || fail "$what did not happen"
		sleep 0.1
	done
}

serve=$TANDEM_BUILD/tests/support/serve_corrections
uptime_ns() { /usr/bin/python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_MONOTONIC))'; }
SHIFT=5000000000
knot() { local t; t=$(uptime_ns); echo "k $t $((t + SHIFT)) 100 100"; }

# A free range of ports for the relay daemon.
LTTNG_RELAYD=$(/usr/bin/python3 -c '
import socket
for port in range(21342, 31342, 3):
    try:
        for p in range(port, port + 3):
            s = socket.socket(); s.bind(("127.0.0.1", p)); s.close()
    except OSError:
        continue
    print(port)
    break')
lttng_begin "$work/home"
host=$(hostname)
as_user lttng create live --live=200000 --ctrl-url="tcp4://127.0.0.1:$LTTNG_RELAYD" \
	--data-url="tcp4://127.0.0.1:$((LTTNG_RELAYD + 1))" >/dev/null
as_user lttng enable-channel -u c --subbuf-size=64k --num-subbuf=8 >/dev/null
as_user lttng enable-event -u -c c 'tandemtest:*' >/dev/null
as_user lttng start >/dev/null
ROUNDS=450
"${user[@]}" env LTTNG_UST_REGISTER_TIMEOUT=5000 "$TANDEM_BUILD/tests/filter/ust_fields" $ROUNDS 20000 &
app=$!
pids="$pids $app"

# The viewer first, the service later: everything waits.
timeout 100 babeltrace2 run --retry-duration=50000 \
	-c "in:source.ctf.lttng-live" -p "inputs=[\"net://127.0.0.1:$((LTTNG_RELAYD + 2))/host/$host/live\"],session-not-found-action=\"end\"" \
	-c mux:filter.utils.muxer -c fix:filter.tandem.clock \
	-p "corrections=\"unix:$work/service\",max-wait-ms=800,host-clock=0" \
	-c check:filter.tandemtest.check -c out:sink.text.pretty -p 'clock-seconds=yes,path="'"$work/out"'"' \
	-x in:mux -x mux:fix -x fix:check -x check:out 2>"$work/viewer.err" &
viewer=$!
pids="$pids $viewer"
sleep 1.5
[ ! -s "$work/out" ] || fail "events came out before there was a correction"

(
	echo "tandem-corrections 1"
	echo "host h clock mono unit-hz 1000000000"
	echo "guest g clock mono unit-hz 1000000000"
	echo "segment start 0 0"
	knot
) >"$work/lines"
"$serve" "unix:$work/service" "$work/lines" >/dev/null 2>"$work/serve1.err" &
service=$!
for _ in 1 2 3; do
	sleep 0.4
	knot >>"$work/lines"
done
events() { [ -s "$work/out" ] && [ "$(wc -l <"$work/out")" -ge "$1" ]; }
wait_for 40 "output after the service came" events 20
grep -q 'is gone' "$work/viewer.err" && fail "the service is said to be gone while it is there"

# It dies: the trace goes on.
kill $service
wait $service 2>/dev/null || true
before=$(wc -l <"$work/out")
wait_for 40 "going on without the service" events $((before + 100))
wait_for 40 "saying so" grep -q 'corrections service is gone' "$work/viewer.err"

# It comes back, tells everything again and something new.
knot >>"$work/lines"
"$serve" "unix:$work/service" "$work/lines" >/dev/null 2>"$work/serve2.err" &
service=$!
pids="$pids $service"
for _ in 1 2 3; do
	sleep 0.4
	knot >>"$work/lines"
done
wait $app
as_user lttng stop >/dev/null
echo end >>"$work/lines"
# The last lines may still be in the sink's buffer.
wait_for 40 "nearly all events" events $((ROUNDS * 2 - 40))
as_user lttng destroy >/dev/null
wait_for 40 "the end of the viewer" sh -c "! kill -0 $viewer 2>/dev/null"
wait $viewer || fail "the viewer failed"
[ "$(wc -l <"$work/out")" -eq $((ROUNDS * 2)) ] || fail "$(wc -l <"$work/out") events, wanted $((ROUNDS * 2))"
[ "$(grep -c 'is gone' "$work/viewer.err")" -eq 1 ] || fail "the loss of the service is to be said once"

# Every stamp is the recorded reading and the shift: all knots lie on that line, so that extrapolation does too.
as_user find "$work/home/relayd" -name metadata -print >"$work/found"
recorded=$(dirname "$(head -1 "$work/found")")
babeltrace2 --clock-cycles "$recorded" 2>/dev/null | sed -E 's/^\[0*([0-9]+)\].*/\1/' >"$work/readings"
sed -E 's/^\[([0-9]+)\.([0-9]+)\].*/\1\2/' "$work/out" >"$work/stamps"
paste "$work/readings" "$work/stamps" | awk -v shift=$SHIFT '$2 - $1 != shift { bad++ } END { exit bad > 0 }' ||
	fail "stamps differ from reading + shift: $(paste "$work/readings" "$work/stamps" | head -3)"
echo "live: $((ROUNDS * 2)) events, each at its reading + $SHIFT ns"
