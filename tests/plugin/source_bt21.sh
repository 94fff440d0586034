#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the plugin against babeltrace2 2.1 and runs it there, with message interchange protocols 0 and 1; and runs the
# plugin that was built against 2.0 there.
set -euo pipefail

beside=$TANDEM_BUILD/debian13-babeltrace
"$TANDEM_SOURCE"/tests/support/debian13-babeltrace "$beside" || exit $?
data=$TANDEM_SOURCE/tests/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
inputs=("$data"/pairs/mono-interval.dat "$data"/pairs/mono-interval-guestrole.dat)
faults=0
fail() {
	echo "FAIL: $*"
	faults=$((faults + 1))
}

root=$beside/root/usr
library=$(dirname "$(find "$root/lib" -name libbabeltrace2.so | head -n 1)")
mkdir -p "$work/pkgconfig"
cat >"$work/pkgconfig/babeltrace2.pc" <<END
libdir=$library
includedir=$root/include
Name: Babeltrace 2
Description: Trace manipulation
Version: 2.1
Libs: -L\${libdir} -lbabeltrace2
Cflags: -I\${includedir}
END
PKG_CONFIG_PATH=$work/pkgconfig cmake -S "$TANDEM_SOURCE" -B "$TANDEM_BUILD/bt21" -G Ninja -DTANDEM_WERROR=ON \
	-DCMAKE_BUILD_TYPE=Debug -DTANDEM_TESTS=OFF -DTANDEM_BENCHES=OFF >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --build "$TANDEM_BUILD/bt21" --target babeltrace-plugin-tandem >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
for plugin in "$TANDEM_BUILD/plugin" "$TANDEM_BUILD/bt21/plugin"; do
	count=$(nm -D "$plugin/babeltrace-plugin-tandem.so" | grep -c ' T __bt_get_')
	[ "$count" = 8 ] || fail "$plugin exports $count of babeltrace2's 8 entry points"
done

babeltrace2 --clock-cycles --no-delta "${inputs[@]}" >"$work/on20" 2>/dev/null
export BABELTRACE_PLUGIN_PATH=$TANDEM_BUILD/plugin
"$beside/babeltrace2" --clock-cycles --no-delta "${inputs[@]}" >"$work/out" 2>/dev/null || fail "built for 2.0: it fails on 2.1"
cmp -s "$work/on20" "$work/out" || fail "built for 2.0: other output on 2.1"
export BABELTRACE_PLUGIN_PATH=$TANDEM_BUILD/bt21/plugin
for mip in 0 1; do
	"$beside/babeltrace2" -m $mip --clock-cycles --no-delta "${inputs[@]}" >"$work/out" 2>/dev/null ||
		fail "built for 2.1: it fails with protocol $mip"
	cmp -s "$work/on20" "$work/out" || fail "built for 2.1: other output with protocol $mip"
done
# CTF 2 needs protocol 1, CTF 1.8 is written with both.
"$beside/babeltrace2" "${inputs[@]}" -o ctf -w "$work/ctf2" >/dev/null 2>"$work/err" || { cat "$work/err"; fail "no CTF 2"; }
"$beside/babeltrace2" --clock-cycles --no-delta "$work/ctf2" >"$work/out" 2>/dev/null
cmp -s "$work/on20" "$work/out" || fail "CTF 2: what is read back differs"
"$beside/babeltrace2" run -c s:source.tandem.tracedat -p "inputs=[\"${inputs[0]}\"]" -c m:filter.utils.muxer \
	-c o:sink.ctf.fs -p "path=\"$work/ctf1\",ctf-version=\"1\"" -x s:m -x m:o >/dev/null 2>"$work/err" ||
	{ cat "$work/err"; fail "no CTF 1.8"; }
head -n 1 "$work/ctf1/host/metadata" 2>/dev/null | grep -q 'CTF 1.8' || fail "CTF 1.8 was asked for, and is not what was written"
exit $((faults > 0))
