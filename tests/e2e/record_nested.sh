#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A KVM host in an emulated guest records itself and a guest of its own over vsock, with the TSC as clock: KVM's tsc-offset
# and the exchanges of the recording agree, and no event of the inner guest lies outside the kvm_entry..kvm_exit windows of
# its vCPU beyond the bound, with either. Then an unmodified "trace-cmd record -A" of that host, over vsock, with the same agent.
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
s="tandem-agent-static --listen vsock:any:8990 --trace-cmd --secret-file /etc/secret --allow \"*:*\" >/tmp/agent.log 2>&1 </dev/null &"
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
# Nobody is let in over vsock but the host, which this is.
in_guest 'cd /tmp; timeout 600 trace-cmd record -o t.dat -C mono -e sched:sched_switch -A @3:823 --name l2 -C mono -e sched sleep 2
echo trace-cmd $?; ls -l t*.dat' 2>&1 | tee "$work/tracecmd.out"
grep -qx 'trace-cmd 0' "$work/tracecmd.out" || die "trace-cmd record over vsock"
for name in t.dat t-l2.dat; do
	"$rig/run-guest" get "$ctl" "/tmp/$name" "$work/$name"
done
trace-cmd report -t -i "$work/t.dat" -i "$work/t-l2.dat" >"$work/report" 2>/dev/null
# The inner guest started minutes after its host: uncorrected, its times are far from the recording.
awk '$0 ~ /sched_switch:/ { match($0, /[0-9]+\.[0-9]+:/); t = substr($0, RSTART, RLENGTH - 1) + 0
	if ($1 == "t.dat:") { if (!h++) first = t; last = t } else { g++; if (t > greatest) greatest = t; if (!least || t < least) least = t } }
	END { printf "trace-cmd over vsock: %d switches of the host, %d of its guest from %.3f s to %.3f s behind the first\n",
		h, g, least - first, greatest - first
	exit !(h > 10 && g > 10 && least > first - 20 && greatest < last + 20) }' "$work/report" || die "host and guest do not overlap"
[ -z "${KEEP:-}" ] || cp -r "$work" "$KEEP"
"$TANDEM_SOURCE/tests/e2e/windows.py" "$work"
