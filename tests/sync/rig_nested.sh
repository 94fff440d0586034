#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A KVM host in an emulated guest, with a guest of its own: exchanges over vsock and KVM's tsc-offset agree within the
# bound, and the inner guest's events lie inside the kvm_entry..kvm_exit windows of its vCPUs. All that is checked is
# recorded by Tandem itself; trace-cmd's ptp stands beside it where it comes to an end.
set -euo pipefail
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"

tandem=$TANDEM_BUILD/cli/tandem
static=$TANDEM_BUILD/agent/tandem-agent-static
[ -x "$static" ] || { echo "SKIP: no static agent in this build"; exit 77; }
make_guest nested.img --with-qemu --add "$static" --add "$tandem"
start_guest nested.img --nested --smp 2 --mem 3000 --timeout 600

# Under emulation the boot of a nested guest hangs now and then: one whose console stands still is begun anew.
in_guest 'for try in 1 2 3; do
	rm -f /tmp/l2.log
	qemu-system-x86_64 -machine pc -accel kvm -cpu host -smp 2 -m 700 -pidfile /tmp/l2.pid \
		-nodefaults -no-user-config -display none -no-reboot -serial file:/tmp/l2.log \
		-name guest=l2 -kernel /boot/vmlinuz -initrd /boot/initrd.img \
		-append "console=ttyS0 panic=-1 mitigations=off no_timer_check guest.name=l2 guest.eth0=10.0.2.15/24" \
		-netdev user,id=n0,hostfwd=tcp:127.0.0.1:7100-:7000 -device virtio-net-pci,netdev=n0,romfile= \
		-device vhost-vsock-pci,guest-cid=3 -daemonize
	still=0 size=0
	while [ $still -lt 90 ]; do
		grep -q "guest: ready" /tmp/l2.log && exit 0
		sleep 1
		now=$(wc -c </tmp/l2.log)
		if [ "$now" = "$size" ]; then still=$((still + 1)); else still=0; fi
		size=$now
	done
	echo "the inner guest hangs, try $try: $(tail -n 1 /tmp/l2.log)"
	kill "$(cat /tmp/l2.pid)"
	sleep 2
done
exit 1' || die "the inner guest did not start"

# The agent goes into the inner guest through its command server; it records for nobody without a secret.
in_guest 'echo "a secret for one test, and that only" >/tmp/secret; chmod 600 /tmp/secret
cat >/tmp/put.sh <<"END"
put() { { printf "put %d %s %s\n" "$(stat -c %s "$2")" "$1" "$3"; cat "$2"; sleep 2; } | nc 127.0.0.1 7100; }
put 755 /usr/local/bin/tandem-agent-static /usr/local/bin/tandem-agent-static
put 600 /tmp/secret /tmp/secret
s="tandem-agent-static --listen vsock:any:8990 --secret-file /tmp/secret --allow sched:* --allow irq:* \
	>/tmp/agent.log 2>&1 </dev/null & trace-cmd agent >/tmp/tc.log 2>&1 </dev/null &"
{ printf "exec 1 %d\n%s" ${#s} "$s"; sleep 3; } | nc 127.0.0.1 7100
END
sh /tmp/put.sh'

# in_background NAME SECONDS <SCRIPT: a job of the guest; nobody waits for it longer than that. What it says stays in /tmp/NAME.said.
in_background() {
	local name=$1 i=0
	cat >"$work/$name.sh"
	"$rig/run-guest" put "$ctl" "$work/$name.sh" "/tmp/$name.sh"
	in_guest "rm -f /tmp/$name.done; { sh /tmp/$name.sh >/tmp/$name.said 2>&1; echo >/tmp/$name.done; } </dev/null >/dev/null 2>&1 &"
	until in_guest "[ -e /tmp/$name.done ]" 2>/dev/null; do
		i=$((i + 2))
		[ $i -lt "$2" ] || return 1
		sleep 2
	done
}
fetch() { "$rig/run-guest" get "$ctl" "$1" "$2"; }

# KVM's relation, cross-checked by exchanges; then exchanges alone, and how far the exact line lies from them.
in_background agree 600 <<'END' || die "tandem sync does not come to an end: $(in_guest 'tail -n 3 /tmp/agree.said')"
offsets() { echo offsets $(cat /sys/kernel/debug/kvm/*/vcpu*/tsc-offset); }
sync_l2() { tandem sync --force -o "$1" --secret-file /tmp/secret --guest l2=vsock:3 -C x86-tsc $2 -- sleep 5; }
offsets
i=0; until sync_l2 /tmp/exact; do i=$((i + 1)); [ $i -lt 5 ] || break; done; echo status $?
offsets
sync_l2 /tmp/measured --no-kvm; echo status $?
offsets
END
in_guest "cat /tmp/agree.said" | tee "$work/sync.out"
grep -q contradicts "$work/sync.out" && die "exchanges contradict KVM"
for kind in exact measured; do
	fetch "/tmp/$kind/l2.corrections" "$work/$kind.corrections"
done

# agree EXACT MEASURED: no exchanges are further from KVM's relation than their bound.
agree() {
	/usr/bin/python3 - "$1" "$2" <<'END'
import os, sys
sys.path.insert(0, os.environ["TANDEM_SOURCE"] + "/tests/sync")
import tandem_wire as t
exact, measured = (t.Corrections(path) for path in sys.argv[1:])
assert "method exact" in exact.lines and "method exact" not in measured.lines, "KVM's relation was not taken"
line = exact.knots()[0]
hz = int(next(text for text in exact.lines if text.startswith("host ")).split()[-1])
off = [(abs(host - guest - line[1] + line[0]), minus, plus) for guest, host, minus, plus in measured.knots()]
for distance, minus, plus in off:
    assert distance <= max(minus, plus), f"exchanges are {distance} ticks off, bound -{minus} +{plus}"
print(f"exchanges and tsc-offset differ by at most {max(d for d, _, _ in off) * 1e6 / hz:.1f} us "
      f"(median {sorted(d for d, _, _ in off)[len(off) // 2] * 1e6 / hz:.1f} us), "
      f"bound {min(max(m, p) for _, m, p in off) * 1e6 / hz:.1f} to {max(max(m, p) for _, m, p in off) * 1e6 / hz:.1f} us")
END
}
if [ "$(grep '^offsets' "$work/sync.out" | sort -u | wc -l)" -ne 1 ]; then
	echo "SKIP: KVM changed the offsets while we looked"
	exit 77
fi
agree "$work/exact.corrections" "$work/measured.corrections"

# A recording of both machines. A guest that is starved of its CPU by all this may miss its start: asked again.
for try in 1 2 3 failed; do
	[ $try != failed ] || die "tandem record did not record the inner guest: $(in_guest 'cat /tmp/own.said')"
	in_background own 300 <<'END' || continue
rm -rf /tmp/own
tandem record -o /tmp/own --secret-file /tmp/secret -C x86-tsc -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch \
	--guest l2=vsock:3 -e sched -e irq -- sleep 10
END
	in_guest 'cat /tmp/own.said' | sed "s/^/record, try $try: /"
	if in_guest 'grep -q "^method exact" /tmp/own/l2.corrections && [ -e /tmp/own/l2.exchanges ]' 2>/dev/null; then
		break
	fi
done
mkdir "$work/own"
for file in host.dat l2.dat l2.corrections l2.exchanges; do
	fetch "/tmp/own/$file" "$work/own/$file"
done
"$tandem" estimate --quiet "$work/own/l2.exchanges" "$work/own/alone.corrections" || [ $? -eq 3 ]
agree "$work/own/l2.corrections" "$work/own/alone.corrections"

# Over vsock, both raw clocks the TSC: one oscillator, until the exchanges contradict it.
grep -qx 'assume rate-ppb 10' "$work/own/l2.exchanges" || die "not taken for one oscillator: $(head -n 8 "$work/own/l2.exchanges")"
echo "exchanges alone: $(grep '^assume' "$work/own/alone.corrections")"

# windows NAME HOST.dat GUEST.dat CORRECTIONS: the guest's events between the entries and exits of its vCPUs.
windows() {
	"$tandem" info --causality --corrections "l2=$4" "host=$2" "l2=$3" >"$work/$1.windows" || [ $? -eq 3 ]
	grep windows "$work/$1.windows" | sed "s/^/$1:/"
}
windows exact "$work/own/host.dat" "$work/own/l2.dat" "$work/own/l2.corrections"
windows alone "$work/own/host.dat" "$work/own/l2.dat" "$work/own/alone.corrections"

# The rival: trace-cmd's own exchanges (ptp over vsock), on its recording; ours of the same time beside it. It gives up
# its guest where that is slow to answer, and takes another protocol where it finds no CPUs of it in /proc: tried twice.
rival() {
	in_background rival 240 <<'END' || { echo "trace-cmd: not done after 240 s" >>"$work/rival.said"; return 1; }
cd /tmp; rm -rf rival.dat* rival-l2.dat* rival
tandem sync -o /tmp/rival --secret-file /tmp/secret --guest l2=vsock:3 -C mono >/tmp/rival.sync 2>&1 &
sync=$!
sleep 5
timeout 180 trace-cmd record -C mono -o /tmp/rival.dat -b 8000 -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch \
	-A 3 --name l2 -C mono -e sched -e irq sleep 2
echo trace-cmd: status $?
sleep 2
kill -INT $sync
wait
END
	in_guest 'cat /tmp/rival.said' >"$work/rival.said"
	grep -q '^Negotiated ptp ' "$work/rival.said" && grep -q '^trace-cmd: status 0' "$work/rival.said" || return 1
	fetch /tmp/rival.dat "$work/rival.dat" && fetch /tmp/rival-l2.dat "$work/rival-l2.dat" &&
		fetch /tmp/rival/l2.corrections "$work/rival.corrections" &&
		"$rig/kvm-windows" "$work/rival.dat" "$work/rival-l2.dat" >"$work/rival"
}
if rival || rival; then
	windows rival "$work/rival.dat" "$work/rival-l2.dat" "$work/rival.corrections"
	sed 's/^/trace-cmd: /' "$work/rival"
else
	rm -f "$work/rival"
	echo "rival: trace-cmd did not finish: $(grep -v offset= "$work/rival.said" | tail -n 3 | tr '\n' ' ')"
fi
/usr/bin/python3 - "$work" <<'END'
import os, re, sys
sys.path.insert(0, os.environ["TANDEM_SOURCE"] + "/tests/sync")
import tandem_wire as t
work = sys.argv[1]

def told(name):
    """Events, those outside all windows of their vCPU, medians of how far, and how far the worst is outside."""
    text = open(f"{work}/{name}.windows").read()
    return (sum(map(int, re.findall(r": (\d+) events", text))), sum(map(int, re.findall(r"events, (\d+) outside", text))),
            [int(ns) for ns in re.findall(r"(\d+) ns away at the median", text)],
            max(map(int, re.findall(r"(\d+) ns at most", text)), default=0))

def share(name, who):
    events, outside, medians, worst = told(name)
    assert events > 0, f"{who}: no event to look at"
    print(f"{who}: {100 - 100 * outside / events:.1f} % of {events} events inside"
          + (f", misses {'/'.join(map(str, medians))} ns at the median, {worst} ns at most" if outside else ""))
    return outside, worst

outside, _ = share("exact", "exact")
assert outside == 0, f"exact: {outside} events outside the windows"
share("alone", "exchanges alone")
if os.path.exists(f"{work}/rival"):
    _, worst = share("rival", "exchanges alone, beside trace-cmd")
    bound = max(max(minus, plus) for _, _, minus, plus in t.Corrections(f"{work}/rival.corrections").knots())
    assert worst <= bound, f"an event is {worst} ns outside, the bound is {bound} ns"
    theirs = dict(line.split(None, 1) for line in open(f"{work}/rival"))
    print(f"rival: trace-cmd's ptp: {100 * int(theirs['inside']) / max(int(theirs['events']), 1):.1f} % of "
          f"{theirs['events'].strip()} events inside, misses {theirs['outside'].split()[2]} ns at the median, "
          f"{theirs['outside'].split()[4]} ns at most")
END
