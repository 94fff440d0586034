#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# "cmake --install --prefix" puts everything below the prefix, and the commands find their parts there, also after it moved.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=0
fail() { echo "FAIL: $*"; faults=$((faults + 1)); }

DESTDIR=$work/staged cmake --install "$TANDEM_BUILD" --prefix /opt/tandem >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
outside=$(cd "$work/staged" && find . -type f ! -path './opt/tandem/*')
plugin_dir=$(sed -n 's/^TANDEM_PLUGIN_DIR:PATH=//p' "$TANDEM_BUILD/CMakeCache.txt")
if [ -n "$plugin_dir" ]; then
	# Somebody has set where the plugin goes.
	[ "$outside" = ".$plugin_dir/babeltrace-plugin-tandem.so" ] || fail "outside the prefix and TANDEM_PLUGIN_DIR: $outside"
	mkdir -p "$work/staged/opt/tandem/lib/babeltrace2/plugins"
	mv "$work/staged$plugin_dir/babeltrace-plugin-tandem.so" "$work/staged/opt/tandem/lib/babeltrace2/plugins/"
else
	[ -z "$outside" ] || fail "outside the prefix: $outside"
	grep -q 'export BABELTRACE_PLUGIN_PATH=/opt/tandem/lib' "$work/log" || fail "it is not said how babeltrace2 finds the plugin"
fi
mv "$work/staged/opt/tandem" "$work/moved"
prefix=$work/moved
unset BABELTRACE_PLUGIN_PATH

grep -q '^ExecStart=/opt/tandem/sbin/tandem-agent ' "$prefix/lib/systemd/system/tandem-agent.service" || fail "the unit starts another agent"
grep -qx 'prefix=/opt/tandem' "$prefix"/lib*/pkgconfig/tandem.pc || [ -e "$prefix"/lib/*/pkgconfig/tandem.pc ] || fail "tandem.pc names another prefix"
for file in share/bash-completion/completions/tandem share/doc/tandem/LICENSE share/doc/tandem/README.md \
	share/doc/tandem/docs/architecture.md share/doc/tandem/examples/host-and-guest.sh \
	share/doc/tandem/examples/kvm-tsc.dat share/tandem/sessions/tandem-syscalls.lttng; do
	[ -s "$prefix/$file" ] || fail "$file is not installed"
done
! grep -qE '\./(demo|check)[^`]' "$prefix/share/doc/tandem/README.md" || fail "the README that is installed names what only a clone has"
for link in $(sed -n 's/.*](\([^)]*\)).*/\1/p' "$prefix/share/doc/tandem/README.md"); do
	[ -e "$prefix/share/doc/tandem/$link" ] || fail "README links to $link, which is not installed"
done
version=$("$prefix/bin/tandem" --version | cut -d' ' -f2)
for page in "$TANDEM_SOURCE"/man/*.[1-8]; do
	name=${page##*/}
	[ "$(sed -n 's/^\.Os Tandem //p' "$prefix/share/man/man${name##*.}/$name")" = "$version" ] || fail "$name is not there, or does not say $version"
done

data=$TANDEM_SOURCE/tests/data/kvm
"$prefix/bin/tandem" view "$data/kvm-tsc.dat" "$data/kvm-tsc-l2.dat" >"$work/ours" 2>"$work/said" || { cat "$work/said"; fail "tandem view"; }
"$prefix/bin/tandem" view --run-args "$data/kvm-tsc.dat" "$data/kvm-tsc-l2.dat" | grep -q "$(realpath "$prefix")" || fail "it took another plugin than its own"
BABELTRACE_PLUGIN_PATH=$(dirname "$(find "$prefix" -name babeltrace-plugin-tandem.so)") babeltrace2 "$data/kvm-tsc.dat" "$data/kvm-tsc-l2.dat" >"$work/babeltrace"
[ -s "$work/ours" ] && [ "$(wc -l <"$work/ours")" = "$(wc -l <"$work/babeltrace")" ] || fail "tandem view and babeltrace2 differ in their events"
if [ -e "$TANDEM_BUILD/agent/ust/libtandem-syscall.so" ]; then
	# Only as far as finding its parts: recording is tests/syscalls.
	said=$("$prefix/bin/tandem" syscalls -p no-such -o "$work/trace" -- true 2>&1 || true)
	grep -q 'no profile "no-such"' <<<"$said" || fail "tandem syscalls does not find its parts: $said"
fi
exit $((faults > 0))
