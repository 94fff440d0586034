#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A real guest under qemu: the static agent runs in it, the bound holds, vsock works.
set -euo pipefail
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"

static=$TANDEM_BUILD/agent/tandem-agent-static
[ -x "$static" ] || { echo "SKIP: no static agent in this build"; exit 77; }
make_guest sync.img --add "$static" --add "$TANDEM_BUILD/agent/tandem-agent" --add "$TANDEM_BUILD/cli/tandem"
start_guest sync.img --smp 2 --mem 900 --fwd 8990 --fwd 8991

printf 'between us\n' >"$work/secret"
chmod 600 "$work/secret"
"$rig/run-guest" put "$ctl" "$work/secret" /tmp/secret
in_guest 'chmod 600 /tmp/secret
tandem-agent-static --listen tcp:0.0.0.0:8990 --secret-file /tmp/secret >/tmp/static.log 2>&1 </dev/null &
tandem-agent --listen tcp:0.0.0.0:8991 --secret-file /tmp/secret >/tmp/dynamic.log 2>&1 </dev/null &
i=0; until grep -q Ready /tmp/static.log && grep -q Ready /tmp/dynamic.log; do usleep 50000; i=$((i + 1)); [ $i -lt 200 ] || exit 1; done' ||
	die "the agents do not start in the guest: $(in_guest 'cat /tmp/*.log')"

# Two agents, two connections, two logs: what they say of one clock must agree within their bounds.
# Status 3 is allowed: an emulated guest on a busy machine may miss a burst, which costs accuracy, not truth.
sync() {
	local out=$1 status=0
	shift
	"$TANDEM_BUILD/cli/tandem" sync --force -o "$out" --secret-file "$work/secret" \
		--guest "one=tcp:127.0.0.1:${fwd[8990]}" --guest "two=tcp:127.0.0.1:${fwd[8991]}" "$@" || status=$?
	[ "$status" -eq 0 ] || [ "$status" -eq 3 ]
}
# Meanwhile the guest's own clock is read through its command server: it lies between two readings of ours.
cat >"$work/look" <<'END'
#!/usr/bin/python3
import subprocess, sys, time
run, ctl, out = sys.argv[1:]
now = lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC)
time.sleep(1)
with open(out, "w") as f:
    for _ in range(5):
        before = now()
        text = subprocess.run([run, "exec", ctl, "head -n 4 /proc/timer_list"], capture_output=True, text=True).stdout
        after = now()
        words = text.split()
        print(before, words[words.index("nsecs") - 1], after, file=f)
END
chmod +x "$work/look"
sync "$work/mono" -- "$work/look" "$rig/run-guest" "$ctl" "$work/looks"
sync "$work/raw" -C mono_raw -- sleep 2
sync "$work/kernel" --stamps kernel -- sleep 2
sync "$work/local" -C local -- sleep 2

# vsock: this kernel's loopback transport, agent and host both in the guest.
in_guest 'insmod /lib/modules/vsock_loopback.ko
tandem-agent-static --listen vsock:any:8990 >/tmp/vsock.log 2>&1 </dev/null &
i=0; until grep -q Ready /tmp/vsock.log; do usleep 50000; i=$((i + 1)); [ $i -lt 200 ] || exit 1; done
tandem sync -o /tmp/vsock --guest me=vsock:1:8990 -- sleep 2 2>&1
echo status $?' | tee "$work/vsock.out"
grep -q '^status 0' "$work/vsock.out" || die "vsock: no success"
mkdir "$work/vsock"
for name in me.corrections me.exchanges; do
	"$rig/run-guest" get "$ctl" "/tmp/vsock/$name" "$work/vsock/$name"
done

cat >"$work/judge" <<'END'
#!/usr/bin/python3
import os, sys
sys.path.insert(0, os.environ["TANDEM_SOURCE"] + "/tests/sync")
import tandem_wire as t
work = sys.argv[1]

def at(knots, guest):
    """Host reading and bound by the interval around a reading, growing outside as the file's rate allowance says."""
    i = max(0, min(len(knots) - 2, sum(k[0] <= guest for k in knots) - 1))
    a, b = knots[i], knots[i + 1]
    host = a[1] + (guest - a[0]) * (b[1] - a[1]) // (b[0] - a[0])
    out = max(a[0] - guest, guest - b[0], 0)
    more = out // 5000000 + out * (a[2] + a[3]) // (knots[-1][0] - knots[0][0])
    return host, max(a[2], b[2]) + more, max(a[3], b[3]) + more

for name in ("mono", "raw", "kernel", "local"):
    one, two = (t.Corrections(f"{work}/{name}/{n}.corrections").knots() for n in ("one", "two"))
    apart = []
    for guest in sorted(k[0] for k in one + two):
        h1, m1, p1 = at(one, guest)
        h2, m2, p2 = at(two, guest)
        assert h1 - m1 <= h2 + p2 and h2 - m2 <= h1 + p1, f"{name} at {guest}: {h1} -{m1} +{p1} and {h2} -{m2} +{p2}"
        apart.append(abs(h1 - h2))
    width = max(k[2] + k[3] for k in one) // 2
    print(f"{name}: bound +-{width} ns, two sessions differ by {max(apart)} ns")
knots = t.Corrections(f"{work}/mono/one.corrections").knots()
for line in open(f"{work}/looks"):
    before, guest, after = map(int, line.split())
    host, minus, plus = at(knots, guest)
    assert before <= host + plus and host - minus <= after, (before, host, after)
assert "t " in "".join(l[:2] for l in open(f"{work}/kernel/one.exchanges")), "no kernel stamps over the forwarded port"
t.Corrections(f"{work}/vsock/me.corrections").check_identity()
print("vsock in the guest:", next(l for l in open(f"{work}/vsock.out") if l.startswith("me:")).strip())
END
/usr/bin/python3 "$work/judge" "$work"
