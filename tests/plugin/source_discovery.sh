#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# "babeltrace2 FILES" alone finds the source, one component sees all files, and the plugin exports nothing but its entry points.
set -euo pipefail

data=$TANDEM_SOURCE/tests/data
plugin=$TANDEM_BUILD/plugin/babeltrace-plugin-tandem.so
faults=0
fail() {
	echo "FAIL: $*"
	faults=$((faults + 1))
}

exported=$(nm -D --defined-only "$plugin" | awk '{ print $3 }' | grep -vE '^__(asan|ubsan|lsan|sanitizer)' | sort)
[ "$(grep -c '^__bt_get_' <<<"$exported")" = 8 ] || fail "not all of babeltrace2's 8 entry points are exported"
others=$(grep -v '^__bt_get_' <<<"$exported" || true)
[ -z "$others" ] || fail "these are exported too: $others"
babeltrace2 list-plugins | grep -q '^tandem:' || fail "babeltrace2 does not list the plugin"
babeltrace2 help source.tandem.tracedat >/dev/null || fail "no help for source.tandem.tracedat"

arguments=$(babeltrace2 convert --run-args "$data"/pairs/mono-interval.dat "$data"/pairs/mono-interval-guestrole.dat)
[ "$(grep -oF ':source.tandem.tracedat' <<<"$arguments" | wc -l)" = 1 ] || fail "two files are not one component: $arguments"
plain=$(babeltrace2 "$data"/pairs/mono-interval.dat "$data"/pairs/mono-interval-guestrole.dat 2>/dev/null | wc -l)
wanted=$(awk '$1 == "total" { print $2 }' "$data"/pairs/mono-interval.merged.stats)
[ "$plain" = "$wanted" ] || fail "$plain events, $wanted reported"
# A folder of traces is walked; what is none of ours is left alone.
rm -rf "$TANDEM_BUILD/discovery"
mkdir -p "$TANDEM_BUILD/discovery"
cp "$data"/single/v7-gap.dat "$TANDEM_BUILD/discovery/"
echo text >"$TANDEM_BUILD/discovery/other.txt"
[ "$(babeltrace2 "$TANDEM_BUILD/discovery" 2>/dev/null | wc -l)" = 2 ] || fail "a folder is not walked"
exit $((faults > 0))
