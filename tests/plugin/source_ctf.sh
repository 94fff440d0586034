#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What babeltrace2 writes as CTF through the source it reads back with the same events, stamps and values.
set -euo pipefail

data=$TANDEM_SOURCE/tests/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=0

# same NAME FILE...
same() {
	local name=$1
	shift
	rm -rf "$work/ctf"
	babeltrace2 "$@" -o ctf -w "$work/ctf" >/dev/null 2>"$work/err" || { cat "$work/err"; faults=$((faults + 1)); }
	babeltrace2 --clock-cycles --no-delta "$@" >"$work/direct" 2>/dev/null
	babeltrace2 --clock-cycles --no-delta "$work/ctf" >"$work/back" 2>/dev/null
	if ! cmp -s "$work/direct" "$work/back"; then
		echo "FAIL: $name: what is read back differs"
		diff "$work/direct" "$work/back" | head -n 4
		faults=$((faults + 1))
	fi
	if [ ! -s "$work/direct" ]; then
		echo "FAIL: $name: no events"
		faults=$((faults + 1))
	fi
}

same "host and guest" "$data"/pairs/mono-interval.dat "$data"/pairs/mono-interval-guestrole.dat
same "three machines" "$data"/kvm/kvm-two-guests.dat "$data"/kvm/kvm-two-guests-l2.dat "$data"/kvm/kvm-two-guests-l2b.dat
same "lost events" "$data"/pairs/mono-lost-guestrole.dat
same "buffers" "$data"/single/v7-multibuf.dat
same "stacks" "$data"/single/v7-stack.dat
same "cpumasks" "$data"/single/v7-cpumask.dat
same "a clock that counts events" "$data"/single/v7-counter.dat
same "kernel 6.18" "$data"/single/host618.dat
same "names of ftrace" "$data"/single/host618.dat -p 'names=ftrace'
if ! [ -d "$work/ctf/host" ]; then
	echo "FAIL: the trace's folder is not named by its machine"
	faults=$((faults + 1))
fi
exit $((faults > 0))
