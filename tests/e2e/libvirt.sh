#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A guest of a real libvirtd, which has /run, /etc and /var to itself: "--guest NAME" finds its process and the thread of each
# vCPU, as QEMU's monitor tells them through libvirt; another guest's name finds nothing.
set -euo pipefail
# Everything below happens in mounts of its own.
if [ -z "${OWN_MOUNTS:-}" ]; then
	[ "$(id -u)" = 0 ] || { echo "SKIP: libvirtd needs root"; exit 77; }
	command -v libvirtd >/dev/null && command -v virsh >/dev/null || { echo "SKIP: libvirtd or virsh is not installed"; exit 77; }
	unshare -m true 2>/dev/null || { echo "SKIP: no mount namespaces"; exit 77; }
	OWN_MOUNTS=1 exec unshare -m --propagation private "$0" "$@"
fi
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"
libvirtd_pid=
libvirt_end() {
	[ -z "$libvirtd_pid" ] || kill "$libvirtd_pid" 2>/dev/null || true
	rig_end
}
trap libvirt_end EXIT

static=$TANDEM_BUILD/agent/tandem-agent-static
[ -x "$static" ] || { echo "SKIP: no static agent in this build"; exit 77; }
[ -e /sys/kernel/tracing/trace_clock ] || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null ||
	{ echo "SKIP: no tracefs"; exit 77; }

for dir in /run /etc/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt; do
	mkdir -p "$dir"
	mount -t tmpfs tmpfs "$dir"
done
# The daemon wants its user to exist, whoever QEMU then runs as.
for file in passwd group; do
	cp "/etc/$file" "$work/$file"
	mount --bind "$work/$file" "/etc/$file"
done
getent passwd libvirt-qemu >/dev/null || {
	echo 'libvirt-qemu:x:64055:64055::/nonexistent:/bin/false' >>/etc/passwd
	echo 'libvirt-qemu:x:64055:' >>/etc/group
	echo 'kvm:x:64056:' >>/etc/group
}
cat >/etc/libvirt/qemu.conf <<'END2'
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
remember_owner = 0
END2
libvirtd --pid-file "$work/libvirtd.pid" >"$work/libvirtd.log" 2>&1 </dev/null &
libvirtd_pid=$!
for _ in $(seq 100); do
	virsh -c qemu:///system list >/dev/null 2>&1 && break
	kill -0 "$libvirtd_pid" 2>/dev/null || die "libvirtd ended: $(tail -n 3 "$work/libvirtd.log")"
	sleep 0.1
done

printf 'between us\n' >"$work/secret"
chmod 600 "$work/secret"
cat >"$work/start" <<'END2'
#!/bin/sh
exec tandem-agent-static --listen tcp:0.0.0.0:8990 --secret-file /etc/secret --allow '*:*'
END2
chmod +x "$work/start"
make_guest libvirt.img --add "$static" --add "$work/secret:/etc/secret" --add "$work/start:/etc/guest-start"

# define NAME PORT: a domain of two CPUs whose agent is reached at that port of this machine.
define() {
	cat >"$work/$1.xml" <<END2
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>$1</name>
  <memory unit='MiB'>400</memory>
  <vcpu>2</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>$cache/vmlinuz</kernel>
    <initrd>$cache/libvirt.img</initrd>
    <cmdline>console=ttyS0 loglevel=4 panic=-1 mitigations=off tsc=reliable clocksource=tsc no_timer_check guest.name=$1 guest.eth0=10.0.2.15/24 guest.gw=10.0.2.2</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='maximum'/>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <emulator>$(command -v qemu-system-x86_64)</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    <serial type='file'><source path='$work/$1.serial'/></serial>
  </devices>
  <qemu:commandline>
    <qemu:arg value='-netdev'/>
    <qemu:arg value='user,id=n0,hostfwd=tcp:127.0.0.1:$2-:8990'/>
    <qemu:arg value='-device'/>
    <qemu:arg value='virtio-net-pci,netdev=n0,romfile=,addr=0x10'/>
  </qemu:commandline>
</domain>
END2
	virsh -q -c qemu:///system create "$work/$1.xml" || die "libvirt does not start $1: $(tail -n 3 "$work/libvirtd.log" "/var/log/libvirt/qemu/$1.log")"
	guests+=("$(cat "/run/libvirt/qemu/$1.pid")")
}
free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

web_port=$(free_port)
define web "$web_port"
define other "$(free_port)"
for name in web other; do
	for _ in $(seq 900); do
		grep -q '^guest: ready' "$work/$name.serial" 2>/dev/null && continue 2
		sleep 0.2
	done
	die "$name did not boot: $(tail -n 5 "$work/$name.serial")"
done

# What QEMU says of its threads, through libvirt.
virsh -q -c qemu:///system qemu-monitor-command web '{"execute":"query-cpus-fast"}' |
	/usr/bin/python3 -c '
import json, sys
for cpu in json.load(sys.stdin)["return"]:
    print(cpu["cpu-index"], cpu["thread-id"])' >"$work/truth"
[ "$(wc -l <"$work/truth")" -eq 2 ] || die "QEMU tells no threads: $(cat "$work/truth")"

status=0
"$TANDEM_BUILD/cli/tandem" record -o "$work/out" --no-kallsyms --secret-file "$work/secret" -e sched:sched_switch \
	--guest "web=tcp:127.0.0.1:$web_port" -- sleep 0.5 || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 3 ] || die "record: status $status"
"$TANDEM_BUILD/cli/tandem" info "$work/out/host.dat" | sed -n 's/^ *guest .*trace id [^,]*, //p' |
	grep -o 'vCPU [0-9]* on thread [0-9]*' | awk '{ print $2, $5 }' >"$work/found"
diff -u "$work/truth" "$work/found" || die "the map of vCPUs is not QEMU's"

# The name alone: there is no vsock device, and that is what is said, not that nobody is called so.
"$TANDEM_BUILD/cli/tandem" sync -o "$work/none" --guest web -- true >"$work/said" 2>&1 && die "a guest without vsock was synchronised"
cat "$work/said"
grep -qi vsock "$work/said" || die "that the guest has no vsock device is not said"
"$TANDEM_BUILD/cli/tandem" sync -o "$work/none" --guest nobody -- true >"$work/said" 2>&1 && die "a guest that is not there was synchronised"
cat "$work/said"
virsh -q -c qemu:///system destroy web
virsh -q -c qemu:///system destroy other
