#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# examples/host-and-guest.sh prints what tandem view prints: the same events at the same times, each in its own words.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pair=$TANDEM_SOURCE/tests/data/lttng-kernel/pair1
"$TANDEM_SOURCE/examples/host-and-guest.sh" "$pair/host/kernel" "$pair/guest/kernel" "$pair/truth.corrections" >"$work/example"
"$TANDEM_BUILD/cli/tandem" view "$pair/host" "$pair/guest" --corrections "$pair/truth.corrections" >"$work/view"
[ "$(wc -l <"$work/example")" -eq 38200 ] || { echo "FAIL: $(wc -l <"$work/example") events"; exit 1; }
# Time, machine and event of each line: the two sinks write the rest in ways of their own.
essence() { sed -E 's/^\[([0-9.]+)\] (\(\S+\) )?(\S+) +(cpu[0-9]+ +)?([^ :]+):.*/\1 \3 \5/' "$1"; }
essence "$work/example" >"$work/example.essence"
essence "$work/view" | cmp - "$work/example.essence"
grep -q '^1796040692.746870013 l1 syscall_exit_socket$' "$work/example.essence"

# NAME.corrections beside the inputs is found.
mkdir "$work/pair"
cp -r "$pair/host" "$pair/guest" "$work/pair"
cp "$pair/truth.corrections" "$work/pair/guest.corrections"
"$TANDEM_BUILD/cli/tandem" view "$work/pair/host" "$work/pair/guest" >"$work/beside"
cmp "$work/view" "$work/beside"
rm "$work/pair/guest.corrections"
"$TANDEM_BUILD/cli/tandem" view "$work/pair/host" "$work/pair/guest" >"$work/alone" 2>"$work/warning"
cmp -s "$work/view" "$work/alone" && { echo "FAIL: no correction, and the same times"; exit 1; }
grep -q 'Nothing relates the clock of "guest"' "$work/warning"
# A mixture: an LTTng host and a trace.dat.
"$TANDEM_BUILD/cli/tandem" view "$pair/host" "other=$TANDEM_SOURCE/tests/data/pairs/mono-nosync.dat" >"$work/mixed" 2>/dev/null
[ "$(wc -l <"$work/mixed")" -gt 26943 ] || { echo "FAIL: a mixture shows $(wc -l <"$work/mixed") events"; exit 1; }
