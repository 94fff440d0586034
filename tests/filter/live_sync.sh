#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A live LTTng session corrected by "tandem sync --serve" itself. Agent and host are one kernel here, so that the true
# correction is none: each corrected stamp must lie within the bound that the corrections file tells of its reading.
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
	exit 1
}

"$TANDEM_BUILD/agent/tandem-agent" --listen "unix:$work/agent" 2>"$work/agent.err" &
pids="$pids $!"
LTTNG_RELAYD=$(/usr/bin/python3 -c '
import socket
for port in range(31342, 41342, 3):
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
ROUNDS=200
cat >"$work/load" <<END
"$TANDEM_BUILD/tests/filter/ust_fields" $ROUNDS 20000
sleep 1.5
END
"$TANDEM_BUILD/cli/tandem" sync --guest "vm=unix:$work/agent" --serve "unix:$work/service" -o "$work/sync" -- \
	"${user[@]}" env LTTNG_UST_REGISTER_TIMEOUT=5000 sh "$work/load" >"$work/sync.out" 2>"$work/sync.err" &
sync=$!
pids="$pids $sync"
timeout 100 babeltrace2 run --retry-duration=50000 \
	-c "in:source.ctf.lttng-live" -p "inputs=[\"net://127.0.0.1:$((LTTNG_RELAYD + 2))/host/$host/live\"],session-not-found-action=\"end\"" \
	-c mux:filter.utils.muxer -c fix:filter.tandem.clock \
	-p "corrections=\"unix:$work/service\",guest=\"vm\",host-clock=0" \
	-c check:filter.tandemtest.check -c out:sink.text.pretty -p 'clock-seconds=yes,path="'"$work/out"'"' \
	-x in:mux -x mux:fix -x fix:check -x check:out 2>"$work/viewer.err" &
viewer=$!
pids="$pids $viewer"
wait $sync || fail "tandem sync"
as_user lttng stop >/dev/null
sleep 1
as_user lttng destroy >/dev/null
for _ in $(seq 300); do
	kill -0 $viewer 2>/dev/null || break
	sleep 0.1
done
wait $viewer || fail "the viewer"
[ "$(wc -l <"$work/out")" -eq $((ROUNDS * 2)) ] || fail "$(wc -l <"$work/out") events, wanted $((ROUNDS * 2))"
recorded=$(dirname "$(find "$work/home/relayd" -name metadata | head -1)")
babeltrace2 --clock-cycles "$recorded" 2>/dev/null | sed -E 's/^\[0*([0-9]+)\].*/\1/' >"$work/readings"
sed -E 's/^\[([0-9]+)\.([0-9]+)\].*/\1\2/' "$work/out" >"$work/stamps"
paste "$work/readings" "$work/stamps" | /usr/bin/python3 -c '
import sys
bound = max(int(n) for line in open(sys.argv[1]) if line.startswith("k ") for n in line.split()[3:5])
worst = max(abs(int(b) - int(a)) for a, b in (line.split() for line in sys.stdin))
print(f"live with tandem sync: worst error {worst} ns, worst bound {bound} ns")
sys.exit(worst > 3 * bound + 1000000)
' "$work/sync/vm.corrections" || fail "stamps lie outside the bound"
