#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Nothing half done appears under a final name: disk full, killed, stopped, refused; and what is there is not lost.
# usage: failures.sh DATA-DIRECTORY
set -uo pipefail
tandem=$TANDEM_BUILD/cli/tandem
data=$1/kvm
work=$(mktemp -d)
small=
cleanup() {
	[ -z "$small" ] || umount "$small" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
failed=0
fail() { echo "FAIL: $*"; failed=1; }
no_traces() { [ -z "$(ls -A "$1" 2>/dev/null)" ] || fail "$2: left $(ls "$1")"; }

# A file that takes some time, and more room than the small disk has.
/usr/bin/python3 - "$TANDEM_SOURCE" "$work/big.dat" <<'PY'
import sys
sys.path.insert(0, sys.argv[1] + "/tests/support")
from tracedat_maker import SWITCH, Maker, switch_body
maker = Maker()
maker.format("sched", "sched_switch", 300, SWITCH)
body = maker.record(300, 1, switch_body(maker, ("first thread", 1), ("second thread", 2)))
pages = maker.ring([(100 + i, body) for i in range(56)])
maker.cpus = {cpu: pages * 6000 for cpu in range(4)}
maker.write(sys.argv[2])
PY

# Disk full.
small=$work/small
mkdir "$small"
if mount -t tmpfs -o size=4m none "$small" 2>/dev/null; then
	"$tandem" convert -q -o "$small/out" "$work/big.dat" >"$work/said" 2>&1
	[ $? -eq 1 ] || fail "disk full: exit not 1"
	grep -q 'No space left' "$work/said" || fail "disk full: no reason given: $(cat "$work/said")"
	no_traces "$small/out" "disk full"
	umount "$small"
else
	echo "note: no tmpfs can be mounted here; disk full was not tried"
fi
small=

# Killed in the middle: no final name; the next run takes the leftover over.
"$tandem" convert -q --threads 1 -o "$work/killed" "$work/big.dat" &
pid=$!
for _ in $(seq 500); do
	[ -s "$work/killed/host.partial/cpu0" ] && break
	sleep 0.01
done
kill -9 $pid
wait $pid 2>/dev/null
[ ! -e "$work/killed/host" ] || fail "killed: host is there"
[ -d "$work/killed/host.partial" ] || fail "killed: nothing was left, so nothing was tried"
"$tandem" convert -q -o "$work/killed" "$data/kvm-tsc.dat" || fail "killed: the next run fails"
[ -f "$work/killed/host/metadata" ] && [ ! -e "$work/killed/host.partial" ] || fail "killed: leftover not taken over"
"$tandem" check-ctf -q "$work/killed/host" || fail "killed: check-ctf"

# Stopped by a signal: exit 1, nothing left.
"$tandem" convert -q --threads 1 -o "$work/stopped" "$work/big.dat" 2>"$work/said" &
pid=$!
for _ in $(seq 500); do
	[ -s "$work/stopped/host.partial/cpu0" ] && break
	sleep 0.01
done
kill -TERM $pid
wait $pid
[ $? -eq 1 ] || fail "stopped: exit not 1"
grep -q 'nothing was written' "$work/said" || fail "stopped: $(cat "$work/said")"
no_traces "$work/stopped" "stopped"

# Two at once into one directory: one is told so.
"$tandem" convert -q --threads 1 -o "$work/two" "$work/big.dat" &
pid=$!
for _ in $(seq 500); do
	[ -d "$work/two/host.partial" ] && break
	sleep 0.01
done
"$tandem" convert -q -o "$work/two" "$data/kvm-tsc.dat" 2>"$work/said" && fail "two at once: both went on"
grep -q 'another conversion\|exists' "$work/said" || fail "two at once: $(cat "$work/said")"
wait $pid || fail "two at once: the first failed"

# What is there stays, without --force; with it, only a trace is replaced.
"$tandem" convert -q -o "$work/two" "$data/kvm-tsc.dat" 2>"$work/said" && fail "overwrote without --force"
grep -q -- '--force' "$work/said" || fail "no word of --force: $(cat "$work/said")"
"$tandem" convert -q --force -o "$work/two" "$data/kvm-tsc.dat" || fail "--force fails"
grep -q kvm_x86_entry "$work/two/host/metadata" || fail "--force did not replace"
mkdir -p "$work/mine/host"
echo precious >"$work/mine/host/file"
"$tandem" convert -q --force -o "$work/mine" "$data/kvm-tsc.dat" 2>/dev/null && fail "--force replaced what is no trace"
[ "$(cat "$work/mine/host/file")" = precious ] || fail "--force removed a file"

# An input cut short: what is readable comes, exit 3, and it is said.
head -c 100000 "$data/kvm-tsc.dat" >"$work/cut.dat"
"$tandem" convert -o "$work/cut" "$work/cut.dat" >"$work/out" 2>"$work/said"
code=$?
[ $code -eq 3 ] || [ $code -eq 1 ] || fail "cut short: exit $code"
[ -s "$work/said" ] || fail "cut short: nothing said"
[ $code -ne 3 ] || "$tandem" check-ctf -q "$work/cut/host" || fail "cut short: check-ctf"

# Inputs that are none, and usage.
"$tandem" convert -o "$work/none" /dev/null 2>/dev/null; [ $? -eq 1 ] || fail "/dev/null: exit not 1"
[ ! -e "$work/none" ] || fail "/dev/null: a directory was made"
"$tandem" convert 2>/dev/null; [ $? -eq 2 ] || fail "no input: exit not 2"
"$tandem" convert --names other x 2>/dev/null; [ $? -eq 2 ] || fail "--names other: exit not 2"
"$tandem" convert --help | grep -q Example || fail "--help has no example"
"$tandem" check-ctf --help | grep -q Example || fail "check-ctf --help has no example"
exit $failed
