#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A KVM host in an emulated guest records itself and a guest of its own over vsock, with the TSC as clock: KVM's tsc-offset
# and the exchanges of the recording agree, and no event of the inner guest lies outside the kvm_entry..kvm_exit windows of
# its vCPU beyond the bound, with either.
set -euo pipefail
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"

static=$TANDEM_BUILD/agent/tandem-agent-static
tandem=$TANDEM_BUILD/cli/tandem
[ -x "$static" ] || { echo "SKIP: no static agent in this build"; exit 77; }
printf 'between us\n' >"$work/secret"
chmod 600 "$work/secret"
make_guest record-nested.img --with-qemu --add "$static" --add "$tandem" --add "$work/secret:/etc/secret"
start_guest record-nested.img --nested --smp 2 --mem 3000 --timeout 300

in_guest 'qemu-system-x86_64 -machine pc -accel kvm -cpu host -smp 2 -m 700 \
	-nodefaults -no-user-config -display none -no-reboot -serial file:/tmp/l2.log \
	-name guest=l2 -kernel /boot/vmlinuz -initrd /boot/initrd.img \
	-append "console=ttyS0 panic=-1 mitigations=off no_timer_check guest.name=l2 guest.eth0=10.0.2.15/24" \
	-netdev user,id=n0,hostfwd=tcp:127.0.0.1:7100-:7000 -device virtio-net-pci,netdev=n0,romfile= \
	-device vhost-vsock-pci,guest-cid=3 -daemonize
i=0; until grep -q "guest: ready" /tmp/l2.log; do sleep 1; i=$((i + 1)); [ $i -lt 400 ] || exit 1; done' ||
	die "the inner guest did not start"

in_guest 'cat >/tmp/put.sh <<"END2"
put() { { printf "put %d %s %s\n" "$(stat -L -c %s "$1")" "$2" "$3"; cat "$1"; sleep 2; } | nc 127.0.0.1 7100; }
put /usr/local/bin/tandem-agent-static 755 /usr/local/bin/tandem-agent-static
put /etc/secret 600 /etc/secret
s="tandem-agent-static --listen vsock:any:8990 --secret-file /etc/secret --allow \"*:*\" >/tmp/agent.log 2>&1 </dev/null &"
{ printf "exec 1 %d\n%s" ${#s} "$s"; sleep 3; } | nc 127.0.0.1 7100
END2
sh /tmp/put.sh'

in_guest 'offsets() { echo offsets $(cat /sys/kernel/debug/kvm/*/vcpu*/tsc-offset); }
offsets
i=0
until tandem record --force -o /tmp/rec --no-kallsyms -C x86-tsc -b 16384 --secret-file /etc/secret \
	-e kvm:kvm_entry -e kvm:kvm_exit -e sched:sched_switch --guest l2=vsock:3 -e sched -e irq -- sleep 4; do
	status=$?; i=$((i + 1)); [ $status = 3 ] && [ $i -lt 3 ] || break
done; echo status ${status:-0}
offsets
ls -l /tmp/rec' 2>&1 | tee "$work/record.out"
mkdir "$work/rec"
for name in host.dat l2.dat l2.exchanges l2.corrections; do
	"$rig/run-guest" get "$ctl" "/tmp/rec/$name" "$work/rec/$name"
	[ -s "$work/rec/$name" ] || die "$name was not recorded"
done
[ -z "${KEEP:-}" ] || cp -r "$work" "$KEEP"
"$TANDEM_SOURCE/tests/e2e/windows.py" "$work"
