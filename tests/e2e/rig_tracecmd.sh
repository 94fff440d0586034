#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# An unmodified "trace-cmd record -A" against our agent, both in a real guest, where trace-cmd can record: "host" and "guest"
# are one kernel, so that each write is in both files and, after trace-cmd's own correction, at the same time. Then the other
# way round: tandem record with an unmodified "trace-cmd agent".
# usage: rig_tracecmd.sh [VERSION]   of the files, default 7
set -euo pipefail
. "$TANDEM_SOURCE/tests/sync/rig_lib.sh"
version=${1:-7}

static=$TANDEM_BUILD/agent/tandem-agent-static
[ -x "$static" ] || { echo "SKIP: no static agent in this build"; exit 77; }
make_guest tracecmd.img --add "$static" --add "$TANDEM_BUILD/cli/tandem"
start_guest tracecmd.img --smp 2 --mem 900

in_guest 'tandem-agent-static --trace-cmd --allow "raw_syscalls:*" --allow ftrace:function >/tmp/agent.log 2>&1 </dev/null &
i=0; until grep -q Ready /tmp/agent.log; do usleep 50000; i=$((i + 1)); [ $i -lt 200 ] || exit 1; done' ||
	die "the agent does not start: $(in_guest 'cat /tmp/agent.log')"

# What it does not allow, trace-cmd reports and ends.
in_guest 'cd /tmp; timeout 60 trace-cmd record -o r.dat -C mono -e raw_syscalls -A 127.0.0.1:823 -e sched true; echo status $?' \
	>"$work/refused" 2>&1 || true
grep -q 'Failed to receive trace response' "$work/refused" || die "not refused: $(cat "$work/refused")"

in_guest 'cd /tmp; timeout 300 trace-cmd record -o k.dat -C mono --file-version '"$version"' -e raw_syscalls -f "id == 1" -b 4000 \
	-A 127.0.0.1:823 --file-version '"$version"' -e raw_syscalls -f "id == 1" -b 4000 -p function -l do_nanosleep \
	sh -c "dd if=/dev/zero of=/dev/null bs=1 count=500; sleep 0.1"; echo status $?; cat agent.log; ls /sys/kernel/tracing/instances' \
	>"$work/record" 2>&1 || die "record: $(cat "$work/record")"
grep -q '^status 0' "$work/record" || die "record: $(cat "$work/record")"
! grep -q '^tandem-[0-9]' "$work/record" || die "an instance was left behind: $(cat "$work/record")"
for name in k.dat k-127.0.0.1.dat; do
	"$rig/run-guest" get "$ctl" "/tmp/$name" "$work/$name"
done
cat >"$work/judge" <<'END'
#!/usr/bin/python3
import re, subprocess, sys
work, tandem, version = sys.argv[1:]
host, guest = f"{work}/k.dat", f"{work}/k-127.0.0.1.dat"
for path in (host, guest):
    assert open(path, "rb").read(12)[10:] == version.encode() + b"\0", f"{path} is of another version"
report = subprocess.run(["trace-cmd", "report", "-t", "-i", host, "-i", guest], capture_output=True, text=True).stdout
line = re.compile(r"^ *(\S+): +\S+-(\d+) +\[(\d+)\] +(\d+)\.(\d+): (sys_enter: +NR 1 \(1,|function: )")
times = {}
for text in report.splitlines():
    found = line.match(text)
    if found:
        times.setdefault((found[1], found[6][:8], found[2]), []).append(int(found[4]) * 10**9 + int(found[5]))
writers = {key[2]: len(stamps) for key, stamps in times.items() if key[0] == "k.dat" and len(stamps) >= 500}
pairs = [(times[("k.dat", "sys_ente", tid)], times.get(("k-127.0.0.1.dat", "sys_ente", tid), [])) for tid in writers]
apart = [g - h for one, two in pairs if len(one) == len(two) for h, g in zip(one, two)]
assert len(apart) >= 500, f"writes of dd in both: {[(len(a), len(b)) for a, b in pairs]}"
apart.sort()
print(f"version {version}: {len(apart)} writes in both, corrected guest less host: median {apart[len(apart) // 2]} ns, "
      f"least {apart[0]}, most {apart[-1]}")
# Emulated, with a scheduler between: not a measure, but a clock that is off by Nagle's 40 ms shows.
assert abs(apart[len(apart) // 2]) < 10_000_000, "the clocks are apart"
assert any(key[0] == "k-127.0.0.1.dat" and key[1] == "function" for key in times), "no function was traced"
out = subprocess.run([tandem, "info", host, guest], capture_output=True, text=True)
assert out.returncode == 0, out.stderr
END
/usr/bin/python3 "$work/judge" "$work" "$TANDEM_BUILD/cli/tandem" "$version"

[ "$version" = 7 ] || exit 0
# What that agent loses it prints on its own terminal, and unasked it records into 7 KiB: all 500 writes are there by default, and
# with buffers that are too small the loss is said, with the count that both programs find in the file.
in_guest 'cd /tmp; trace-cmd agent -N 127.0.0.1 -p 8230 >tc.log 2>&1 </dev/null &
i=0; until netstat -ltn | grep -q ":8230 "; do usleep 100000; i=$((i + 1)); [ $i -lt 200 ] || exit 1; done; cd /tmp
timeout 200 tandem record -o whole --no-kallsyms -e raw_syscalls -f "id == 1" --guest me=trace-cmd:127.0.0.1:8230 -- \
	dd if=/dev/zero of=/dev/null bs=1 count=500 2>&1; echo whole $?
timeout 200 tandem record -o small --no-kallsyms -b 8 -e raw_syscalls --guest me=trace-cmd:127.0.0.1:8230 -- \
	dd if=/dev/zero of=/dev/null bs=1 count=5000 2>&1; echo small $?; cat tc.log' >"$work/agent" 2>&1 || die "trace-cmd agent: $(cat "$work/agent")"
grep -qx 'whole 0' "$work/agent" && grep -qx 'small 3' "$work/agent" || die "with trace-cmd's agent: $(cat "$work/agent")"
for name in whole/me.dat whole/host.dat whole/me.exchanges small/me.dat; do
	"$rig/run-guest" get "$ctl" "/tmp/$name" "$work/${name/\//-}"
done
[ "$(grep -c '^x ' "$work/whole-me.exchanges")" -ge 6 ] || die "exchanges: $(cat "$work/whole-me.exchanges")"
writes=$(trace-cmd report -i "$work/whole-me.dat" 2>/dev/null | grep -c 'sys_enter: *NR 1 (1,') || true
[ "$writes" -ge 500 ] || die "500 writes were made, trace-cmd's agent has $writes: $(cat "$work/agent")"
said=$(sed -n 's/.*guest "me": \(more than \)\?\([0-9]*\) events lost.*/\2/p' "$work/agent")
found=$("$TANDEM_BUILD/cli/tandem" info "$work/small-me.dat" | sed -n 's/.*lost by the tracer \([0-9]*\).*/\1/p')
theirs=$(trace-cmd report -i "$work/small-me.dat" 2>/dev/null | sed -n 's/.*\[\([0-9]*\) EVENTS DROPPED\].*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
echo "tandem record with trace-cmd's agent: $writes writes; of 8 KiB $said lost, tandem info finds $found, trace-cmd $theirs"
[ "${said:-0}" -gt 0 ] && [ "$said" = "$found" ] && [ "$said" = "$theirs" ] || die "losses differ: $(cat "$work/agent")"
