#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A KVM host in an emulated guest, with a guest of its own: exchanges over vsock and KVM's tsc-offset agree within the
# bound, and the inner guest's events lie inside the kvm_entry..kvm_exit windows of its vCPUs.
set -euo pipefail
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"

static=$TANDEM_BUILD/agent/tandem-agent-static
[ -x "$static" ] || { echo "SKIP: no static agent in this build"; exit 77; }
make_guest nested.img --with-qemu --add "$static" --add "$TANDEM_BUILD/cli/tandem"
start_guest nested.img --nested --smp 2 --mem 3000 --timeout 600

in_guest 'qemu-system-x86_64 -machine pc -accel kvm -cpu host -smp 2 -m 700 \
	-nodefaults -no-user-config -display none -no-reboot -serial file:/tmp/l2.log \
	-name guest=l2 -kernel /boot/vmlinuz -initrd /boot/initrd.img \
	-append "console=ttyS0 panic=-1 mitigations=off no_timer_check guest.name=l2 guest.eth0=10.0.2.15/24" \
	-netdev user,id=n0,hostfwd=tcp:127.0.0.1:7100-:7000 -device virtio-net-pci,netdev=n0,romfile= \
	-device vhost-vsock-pci,guest-cid=3 -daemonize
i=0; until grep -q "guest: ready" /tmp/l2.log; do sleep 1; i=$((i + 1)); [ $i -lt 1200 ] || exit 1; done' ||
	die "the inner guest did not start"

# The agent goes into the inner guest through its command server.
in_guest 'cat >/tmp/put.sh <<"END"
size=$(stat -c %s /usr/local/bin/tandem-agent-static)
{ printf "put %d 755 /usr/local/bin/tandem-agent-static\n" $size; cat /usr/local/bin/tandem-agent-static; sleep 2; } | nc 127.0.0.1 7100
s="tandem-agent-static --listen vsock:any:8990 >/tmp/agent.log 2>&1 </dev/null & trace-cmd agent >/tmp/tc.log 2>&1 </dev/null &"
{ printf "exec 1 %d\n%s" ${#s} "$s"; sleep 3; } | nc 127.0.0.1 7100
END
sh /tmp/put.sh'

# KVM's relation, cross-checked by exchanges; then exchanges alone, and how far the exact line lies from them.
in_guest 'offsets() { echo offsets $(cat /sys/kernel/debug/kvm/*/vcpu*/tsc-offset); }
offsets
i=0; until tandem sync --force -o /tmp/exact --guest l2=vsock:3 -C x86-tsc -- sleep 5; do i=$((i + 1)); [ $i -lt 5 ] || break; done; echo status $?
offsets
tandem sync -o /tmp/measured --guest l2=vsock:3 -C x86-tsc --no-kvm -- sleep 5; echo status $?
offsets' 2>&1 | tee "$work/sync.out"
grep -q contradicts "$work/sync.out" && die "exchanges contradict KVM"
for kind in exact measured; do
	"$rig/run-guest" get "$ctl" "/tmp/$kind/l2.corrections" "$work/$kind.corrections"
	"$rig/run-guest" get "$ctl" "/tmp/$kind/l2.exchanges" "$work/$kind.exchanges"
done
/usr/bin/python3 - "$work" <<'END'
import os, sys
sys.path.insert(0, os.environ["TANDEM_SOURCE"] + "/tests/sync")
import tandem_wire as t
work = sys.argv[1]
told = [line.split()[1:] for line in open(f"{work}/sync.out") if line.startswith("offsets")]
print("tsc-offset of the vCPUs before, between, after:", told)
if len(set(map(tuple, told))) > 1:
    print("SKIP: KVM changed the offsets while we looked")
    sys.exit(77)
assert any(line.startswith("l2: exact") for line in open(f"{work}/sync.out")), "KVM's relation was not taken"
exact = t.Corrections(f"{work}/exact.corrections").knots()
offset = exact[0][1] - exact[0][0]
off = [(abs(host - guest - offset), minus, plus) for guest, host, minus, plus
       in t.Corrections(f"{work}/measured.corrections").knots()]
for distance, minus, plus in off:
    assert distance <= max(minus, plus), f"exchanges are {distance} ticks off, bound -{minus} +{plus}"
print(f"exchanges and tsc-offset differ by at most {max(d for d, _, _ in off)} ticks, bound {max(p for _, _, p in off)}")
END

# record NAME SYNC-OPTIONS TRACE-CMD-OPTIONS PROTOCOL: leaves NAME.dat, NAME-l2.dat and NAME.corrections.
# Recordings of both machines, each beside a tandem sync of its own; in the background, because nobody knows how long they take.
record_once() {
	local name=$1 i=0
	in_guest "rm -rf /tmp/$name.done /tmp/$name*.dat*; cat >/tmp/record.sh <<'END'
tandem sync --force -o /tmp/$name --guest l2=vsock:3 $2 >/tmp/$name.sync 2>&1 &
sync=\$!
sleep 10
cd /tmp
trace-cmd record $3 -o /tmp/$name.dat -b 8000 -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch \
	-A 3 --name l2 $3 -e sched -e irq sleep 2 >/tmp/$name.log 2>&1
sleep 5
kill -INT \$sync
wait
echo done >/tmp/$name.done
END
sh /tmp/record.sh >/dev/null 2>&1 </dev/null &"
	until in_guest "[ -e /tmp/$name.done ]" 2>/dev/null; do
		i=$((i + 1))
		[ $i -lt 240 ] || die "recording $name: $(in_guest "tail -n 3 /tmp/$name.log /tmp/$name.sync")"
		sleep 5
	done
	in_guest "grep '^Negotiated' /tmp/$name.log; grep '^l2: ' /tmp/$name.sync" | sed "s/^/$name: /"
	for file in "$name.dat" "$name-l2.dat"; do
		"$rig/run-guest" get "$ctl" "/tmp/$file" "$work/$file" || return 1
	done
	"$rig/run-guest" get "$ctl" "/tmp/$name/l2.corrections" "$work/$name.corrections" || return 1
	in_guest "grep -q '^Negotiated $4 ' /tmp/$name.log" || return 1
	"$TANDEM_BUILD/cli/tandem" info "$work/$name-l2.dat" >/dev/null && "$TANDEM_BUILD/cli/tandem" info "$work/$name.dat" >/dev/null
}
# trace-cmd gives up its guest where that is slow to answer, and takes ptp and another clock where it does not find the guest's
# CPUs in /proc in time: another try.
record() {
	local try
	for try in 1 2 3; do
		record_once "$@" && return
		in_guest "tail -n 5 /tmp/$1.log" | sed "s/^/$1, try $try: /"
	done
	echo "$1: trace-cmd did not record the inner guest" | tee -a "$work/lacks"
	return 1
}

# Events of the inner guest between the entries and exits of its vCPUs, put there by a corrections file.
windows() {
	"$TANDEM_BUILD/cli/tandem" info --causality --corrections "l2=$work/$1.corrections" \
		"host=$work/$1.dat" "l2=$work/$1-l2.dat" >"$work/$1.windows" || [ $? -eq 3 ]
	sed "s/^/$1: /" "$work/$1.windows"
}
# KVM's relation; then exchanges alone, beside what trace-cmd's own exchanges (ptp over vsock) make of the same recording.
if record exact "-C x86-tsc" "" kvm; then
	windows exact
fi
if record ptp "-C mono" "-C mono" ptp; then
	windows ptp
	"$rig/kvm-windows" "$work/ptp.dat" "$work/ptp-l2.dat" | tee "$work/rival"
fi
/usr/bin/python3 - "$work" <<'END'
import os, re, sys
sys.path.insert(0, os.environ["TANDEM_SOURCE"] + "/tests/sync")
import tandem_wire as t
work = sys.argv[1]

def told(name):
    """Events, those outside all windows of their vCPU, and how far the worst is outside."""
    text = open(f"{work}/{name}.windows").read()
    events = sum(map(int, re.findall(r": (\d+) events", text)))
    outside = sum(map(int, re.findall(r"events, (\d+) outside", text)))
    return events, outside, max(map(int, re.findall(r"(\d+) ns at most", text)), default=0)

if os.path.exists(f"{work}/exact.windows"):
    events, outside, _ = told("exact")
    assert events > 0 and outside == 0, f"exact: {outside} of {events} events outside the windows"
    print(f"exact: all {events} events inside")
if not os.path.exists(f"{work}/rival"):
    sys.exit(0)
events, outside, worst = told("ptp")
bound = max(max(minus, plus) for _, _, minus, plus in t.Corrections(f"{work}/ptp.corrections").knots())
assert events > 0 and worst <= bound, f"an event is {worst} ns outside, the bound is {bound} ns"
rival = dict(line.split()[:2] for line in open(f"{work}/rival"))
theirs = int(rival["inside"]) / max(int(rival["events"]), 1)
ours = 1 - outside / events
print(f"exchanges alone: {100 * ours:.1f} % of {events} inside, trace-cmd: {100 * theirs:.1f} %; "
      f"worst {worst} ns, bound {bound} ns")
# On a machine that is busy with other things neither is a figure; the bound holds in any case.
END
if [ -e "$work/lacks" ]; then
	echo "SKIP: trace-cmd did not record the inner guest each time; exchanges and tsc-offset agree"
	exit 77
fi
