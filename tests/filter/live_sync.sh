#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A live LTTng session corrected by "tandem sync --serve" itself. Agent and host are one kernel here, so that the true
# correction is none: each corrected stamp must lie within the bound that the corrections file tells of its reading.
set -euo pipefail

. "$(dirname "$0")/live_lib.sh"

"$TANDEM_BUILD/agent/tandem-agent" --listen "unix:$work/agent" 2>"$work/agent.err" &
pids="$pids $!"
live_begin 31342
ROUNDS=200
cat >"$work/load" <<END
"$TANDEM_BUILD/tests/filter/ust_fields" $ROUNDS 20000
sleep 1.5
END
"$TANDEM_BUILD/cli/tandem" sync --guest "vm=unix:$work/agent" --serve "unix:$work/service" -o "$work/sync" -- \
	"${user[@]}" env LTTNG_UST_REGISTER_TIMEOUT=5000 sh "$work/load" >"$work/sync.out" 2>"$work/sync.err" &
sync=$!
pids="$pids $sync"
live_view 'guest="vm"'
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
live_stamps | /usr/bin/python3 -c '
import sys
bound = max(int(n) for line in open(sys.argv[1]) if line.startswith("k ") for n in line.split()[3:5])
worst = max(abs(int(b) - int(a)) for a, b in (line.split() for line in sys.stdin))
print(f"live with tandem sync: worst error {worst} ns, worst bound {bound} ns")
sys.exit(worst > 3 * bound + 1000000)
' "$work/sync/vm.corrections" || fail "stamps lie outside the bound"
