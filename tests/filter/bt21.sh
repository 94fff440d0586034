#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The filter built against babeltrace2 2.1: the identity over the rich trace, with protocol versions 0 and 1.
set -euo pipefail

beside=$TANDEM_BUILD/debian13-babeltrace
"$TANDEM_SOURCE"/tests/support/debian13-babeltrace "$beside" || exit $?
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAIL: $*"
	exit 1
}

# The plugin and the test's classes once more, with the newer headers; what lies below them does not know babeltrace2.
build=$TANDEM_BUILD/bt21-filter
lib=$(dirname "$(ls "$beside"/root/usr/lib/*/libbabeltrace2.so)")
mkdir -p "$build/pkgconfig"
cat >"$build/pkgconfig/babeltrace2.pc" <<END
libdir=$lib
Name: Babeltrace2
Description: babeltrace2 2.1, unpacked
Version: 2.1
Libs: -L$lib -lbabeltrace2
Cflags: -I$beside/root/usr/include
END
PKG_CONFIG_PATH=$build/pkgconfig cmake -S "$TANDEM_SOURCE" -B "$build" -G Ninja -DTANDEM_WERROR=ON -DTANDEM_BENCHES=OFF \
	>"$build/log" 2>&1 || { tail -20 "$build/log"; fail "cmake"; }
PKG_CONFIG_PATH=$build/pkgconfig cmake --build "$build" -j2 --target babeltrace-plugin-tandem babeltrace-plugin-tandemtest \
	>"$build/log" 2>&1 || { tail -20 "$build/log"; fail "the plugin does not build against 2.1"; }

export BABELTRACE_PLUGIN_PATH=$build/plugin:$build/tests/filter

# run VERSION OUT SINK [FILTER...]
run() {
	local version=$1 out=$2 sink=$3 last=in args=()
	shift 3
	for f in "$@"; do
		if [ "$f" = clock ]; then
			args+=(-c fix:filter.tandem.clock
				-p "corrections=\"$TANDEM_SOURCE/tests/filter/identity.corrections\",host-clock=1700000000000000123" -x "$last:fix")
			last=fix
		else
			args+=(-c "check:$f" -x "$last:check")
			last=check
		fi
	done
	timeout 60 "$beside/babeltrace2" run --allowed-mip-versions="$version" -c in:source.tandemtest.rich "${args[@]}" \
		-c "out:$sink" -x "$last:out" >"$out" 2>"$out.err" || { head -30 "$out.err"; fail "version $version, $sink $*"; }
}

without_marks() {
	grep -v '^ *tandem_[a-z_]*: ' "$1" | sed -E 's/(Environment) \([0-9]+ entries\)/\1/'
}

for version in 0 1; do
	run $version "$work/plain" sink.text.details filter.tandemtest.check
	run $version "$work/fixed" sink.text.details clock filter.tandemtest.check
	[ -s "$work/plain" ] || fail "version $version: no output"
	diff <(without_marks "$work/plain") <(without_marks "$work/fixed") >"$work/diff" ||
		{ head -30 "$work/diff"; fail "version $version: the details differ"; }
	run $version "$work/plain" sink.text.pretty
	run $version "$work/fixed" sink.text.pretty clock
	cmp "$work/plain" "$work/fixed" || fail "version $version: the text differs"
	echo "protocol version $version: nothing differs"
done
grep -q 'media\|blob' "$work/plain" || fail "protocol version 1 was not spoken"

# CTF 2, which 2.1 writes by default and which wants version 1; and CTF 1.8.
data=$TANDEM_SOURCE/tests/data/lttng-kernel/pair1
for ctf in 1 2; do
	timeout 60 "$beside/babeltrace2" run -c in:source.ctf.fs -p "inputs=[\"$data/guest/kernel\"]" -c mux:filter.utils.muxer \
		-c fix:filter.tandem.clock -p "corrections=\"$data/truth.corrections\",host-clock=\"$data/host\"" \
		-c out:sink.ctf.fs -p "path=\"$work/ctf$ctf\",ctf-version=\"$ctf\",quiet=yes" -x in:mux -x mux:fix -x fix:out \
		2>"$work/err" || { head -20 "$work/err"; fail "sink.ctf.fs with CTF $ctf"; }
	trace=$(dirname "$(find "$work/ctf$ctf" -name metadata)")
	timeout 60 "$beside/babeltrace2" "$trace" >"$work/ctf$ctf.txt"
	[ "$(wc -l <"$work/ctf$ctf.txt")" -eq 11257 ] || fail "CTF $ctf: $(wc -l <"$work/ctf$ctf.txt") events"
done
cmp "$work/ctf1.txt" "$work/ctf2.txt" || fail "CTF 1.8 and CTF 2 differ"
echo "CTF 1.8 and CTF 2 through the filter: 11257 events each"
