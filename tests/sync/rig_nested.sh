#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A KVM host in an emulated guest, with a guest of its own: exchanges over vsock and KVM's tsc-offset agree within the
# bound, and the inner guest's events lie inside the kvm_entry..kvm_exit windows of its vCPUs.
set -euo pipefail
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"

static=$TANDEM_BUILD/agent/tandem-agent-static
[ -x "$static" ] || { echo "SKIP: no static agent in this build"; exit 77; }
make_guest nested.img --with-qemu --add "$static" --add "$TANDEM_BUILD/cli/tandem"
start_guest nested.img --nested --smp 2 --mem 3000 --timeout 300

in_guest 'qemu-system-x86_64 -machine pc -accel kvm -cpu host -smp 2 -m 700 \
	-nodefaults -no-user-config -display none -no-reboot -serial file:/tmp/l2.log \
	-name guest=l2 -kernel /boot/vmlinuz -initrd /boot/initrd.img \
	-append "console=ttyS0 panic=-1 mitigations=off no_timer_check guest.name=l2 guest.eth0=10.0.2.15/24" \
	-netdev user,id=n0,hostfwd=tcp:127.0.0.1:7100-:7000 -device virtio-net-pci,netdev=n0,romfile= \
	-device vhost-vsock-pci,guest-cid=3 -daemonize
i=0; until grep -q "guest: ready" /tmp/l2.log; do sleep 1; i=$((i + 1)); [ $i -lt 400 ] || exit 1; done' ||
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

# Events of the inner guest between the entries and exits of its vCPUs: with KVM's relation all, with exchanges within their bound.
in_guest 'trace-cmd record -o /tmp/k.dat -b 8000 -e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch \
	-A 3 --name l2 -e sched -e irq sleep 2 >/tmp/record.log 2>&1; tail -n 3 /tmp/record.log; ls -l /tmp/k*.dat'
for name in k.dat k-l2.dat; do
	"$rig/run-guest" get "$ctl" "/tmp/$name" "$work/$name"
done
if ! "$TANDEM_BUILD/cli/tandem" info "$work/k-l2.dat" >/dev/null 2>&1; then
	echo "SKIP: trace-cmd did not record the inner guest; exchanges and tsc-offset agree"
	exit 77
fi
for kind in exact measured; do
	echo "$kind:"
	"$TANDEM_BUILD/cli/tandem" info --causality --corrections "l2=$work/$kind.corrections" \
		"host=$work/k.dat" "l2=$work/k-l2.dat" || [ $? -eq 3 ]
done
"$rig/kvm-windows" "$work/k.dat" "$work/k-l2.dat" | sed 's/^/trace-cmd: /'
