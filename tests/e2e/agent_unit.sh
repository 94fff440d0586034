#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The agent's systemd unit, under a real systemd in a real guest: it starts as hardened as it is, serves what it has to
# (exchanges, traces, trace-cmd's port), leaves nothing in the kernel when it is stopped or killed.
set -euo pipefail

unit=$TANDEM_SOURCE/packaging/tandem-agent.service.in
command -v systemd-analyze >/dev/null || { echo "SKIP: systemd is not here"; exit 77; }
[ -x /usr/lib/systemd/systemd ] || [ -x /lib/systemd/systemd ] || { echo "SKIP: systemd is not here"; exit 77; }
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"

# What systemd says of the file itself: nothing but that the program is not installed here.
sed "s|^ExecStart=[^ ]*|ExecStart=$TANDEM_BUILD/agent/tandem-agent|; /^Documentation/d" "$unit" >"$work/tandem-agent.service"
out=$(systemd-analyze verify "$work/tandem-agent.service" 2>&1) || true
[ -z "$out" ] || die "systemd-analyze verify: $out"
systemd-analyze security --offline=true --threshold=35 "$work/tandem-agent.service" >"$work/security" 2>&1 ||
	die "exposed more than 3.5: $(tail -n 1 "$work/security")"
grep -v '✓' "$work/security" | tail -n 1

sed "s|^ExecStart=[^ ]*|ExecStart=/usr/local/bin/tandem-agent|" "$unit" >"$work/guest.service"
units=/usr/lib/systemd/system
adds=()
for name in sysinit.target basic.target shutdown.target network.target sockets.target timers.target paths.target slices.target \
	local-fs.target local-fs-pre.target swap.target umount.target rescue.target emergency.target system.slice; do
	[ ! -e "$units/$name" ] || adds+=(--add "$units/$name:$units/$name")
done
printf '[Unit]\nDescription=test\n' >"$work/default.target"
printf 'AGENT_OPTIONS=--trace-cmd --allow raw_syscalls:* --listen unix:/run/tandem --listen tcp:127.0.0.1\n' >"$work/defaults"
make_guest unit.img --add "$TANDEM_BUILD/agent/tandem-agent" --add "$TANDEM_BUILD/cli/tandem" \
	--add /usr/lib/systemd/systemd:/usr/lib/systemd/systemd --add "$(command -v systemctl):/usr/bin/systemctl" "${adds[@]}" \
	--add "$work/guest.service:/etc/systemd/system/tandem-agent.service" --add "$work/default.target:/etc/systemd/system/default.target" \
	--add "$work/defaults:/etc/default/tandem-agent"
start_guest unit.img --smp 2 --mem 900

# systemd in a PID namespace of the guest, whose init is another; systemctl has to be in it.
cat >"$work/boot" <<'END'
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount --bind /run /run
echo root:x:0:0::/root:/bin/sh >/etc/passwd
echo root:x:0: >/etc/group
echo 1234567890abcdef1234567890abcdef >/etc/machine-id
(env container=test unshare -m -p -f --mount-proc /usr/lib/systemd/systemd --system --log-target=console >/tmp/systemd.log 2>&1 </dev/null &)
cat >/usr/bin/sc <<'SC'
#!/bin/sh
for p in /proc/[0-9]*; do
	[ "$(readlink "$p/exe")" != /usr/lib/systemd/systemd ] || exec timeout 60 nsenter -t "${p#/proc/}" -m -p systemctl --no-pager "$@"
done
exit 1
SC
chmod +x /usr/bin/sc
i=0; until sc is-active default.target; do sleep 1; i=$((i + 1)); [ $i -lt 60 ] || { cat /tmp/systemd.log; exit 1; }; done
END
in_guest <"$work/boot" >"$work/boot.out" 2>&1 || die "systemd does not start: $(cat "$work/boot.out")"

# 1. It starts, and has given up what it can.
cat >"$work/start" <<'END'
sc start tandem-agent || exit 1
i=0; until grep -q ':0337 0*:0000 0A' /proc/net/tcp; do sleep 0.2; i=$((i + 1)); [ $i -lt 100 ] || exit 2; done
[ "$(sc is-active tandem-agent)" = active ] || exit 3
grep -E '^(CapEff|NoNewPrivs|Seccomp):' "/proc/$(pidof tandem-agent)/status"
END
in_guest <"$work/start" >"$work/start.out" 2>&1 || die "the unit does not start ($?): $(cat "$work/start.out" "$work/guest.log")"
grep -q '^CapEff:.0*$' "$work/start.out" || die "it kept capabilities: $(cat "$work/start.out")"
grep -q '^NoNewPrivs:.1' "$work/start.out" || die "it may gain privileges: $(cat "$work/start.out")"
grep -q '^Seccomp:.2' "$work/start.out" || die "its system calls are not filtered: $(cat "$work/start.out")"

# 2. It does its work from in there: time exchanges, and traces by trace-cmd's protocol.
cat >"$work/use" <<'END'
cd /tmp
tandem record -o out --no-kallsyms -e raw_syscalls --guest me=trace-cmd:127.0.0.1 -- dd if=/dev/zero of=/dev/null bs=1 count=500; echo record $?
tandem sync -o clocks --guest me=tcp:127.0.0.1 -- sleep 1; echo sync $?
trace-cmd report -i out/me.dat 2>/dev/null | grep -c 'sys_enter: *NR 1 '
END
in_guest <"$work/use" >"$work/use.out" 2>&1 || true
grep -Eq '^record [03]' "$work/use.out" && grep -Eq '^sync [03]' "$work/use.out" || die "it does not serve: $(cat "$work/use.out")"
writes=$(grep -Ex '[0-9]+' "$work/use.out" | tail -n 1)
[ "${writes:-0}" -ge 500 ] || die "500 writes were made, ${writes:-none} came: $(cat "$work/use.out")"

# 3. Killed in a session it is started again and removes what it left; stopped, it leaves nothing.
cat >"$work/end" <<'END'
cd /tmp
left() { ls /sys/kernel/tracing/instances | grep -q -- -trace-cmd-; }
(tandem record -o killed --no-kallsyms -e raw_syscalls --guest me=trace-cmd:127.0.0.1 --time 60 >/dev/null 2>&1 </dev/null &)
i=0; until left; do sleep 0.2; i=$((i + 1)); [ $i -lt 150 ] || exit 1; done
sc kill -s KILL tandem-agent
i=0; while left; do sleep 0.2; i=$((i + 1)); [ $i -lt 150 ] || exit 2; done
i=0; until [ "$(sc is-active tandem-agent)" = active ]; do sleep 0.2; i=$((i + 1)); [ $i -lt 150 ] || exit 3; done
sc show tandem-agent -p NRestarts
sc stop tandem-agent || exit 4
! pidof tandem-agent || exit 5
! left || exit 6
sc show tandem-agent -p Result
END
in_guest <"$work/end" >"$work/end.out" 2>&1 || die "its end ($?): $(cat "$work/end.out")"
grep -q '^NRestarts=1' "$work/end.out" && grep -q '^Result=success' "$work/end.out" || die "its end: $(cat "$work/end.out")"
echo "ok"
