#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A live LTTng session through lttng-relayd, corrected by a service that starts late, dies and comes back: no event is
# lost, none waits for ever, time never goes back, and the user is told once when the service goes.
set -euo pipefail

. "$(dirname "$0")/live_lib.sh"

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

live_begin 21342
ROUNDS=450
"${user[@]}" env LTTNG_UST_REGISTER_TIMEOUT=5000 "$TANDEM_BUILD/tests/filter/ust_fields" $ROUNDS 20000 &
app=$!
pids="$pids $app"

# The viewer first, the service later: everything waits.
live_view max-wait-ms=800
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
live_stamps >"$work/pairs"
awk -v shift=$SHIFT '$2 - $1 != shift { bad++ } END { exit bad > 0 }' "$work/pairs" ||
	fail "stamps differ from reading + shift: $(head -3 "$work/pairs")"
echo "live: $((ROUNDS * 2)) events, each at its reading + $SHIFT ns"
