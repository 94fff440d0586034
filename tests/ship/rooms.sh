#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The dependency picture is enforced: an include or a link against it is refused, in every direction, and named.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

mkdir "$work/tree"
cp -r "$TANDEM_SOURCE"/{core,plugin,converters,agent,cli,docs,cmake,sessions,man,packaging,CMakeLists.txt,README.md,LICENSE,CHANGELOG.md,examples} "$work/tree"
cd "$work/tree"
"$TANDEM_SOURCE/scripts/rooms" . || fail "the tree itself breaks the picture"
# refused FILE LINE WORDS: the file with the line before it is refused
refused() {
	cp "$1" "$work/kept"
	{ echo "$2"; cat "$work/kept"; } >"$1"
	if "$TANDEM_SOURCE/scripts/rooms" . >"$work/said"; then fail "$2 in $1 is not refused"; fi
	grep -q "$1.*$3" "$work/said" || fail "$2 in $1: $(cat "$work/said")"
	cp "$work/kept" "$1"
}
refused core/base/status.c '#include <tandem/socket.h>' 'core/base may not use core/io'
refused core/clock/fit.c '#include <tandem/sync_link.h>' 'core/clock may not use core/sync'
refused core/include/tandem/timeline.h '#include <tandem/trace.h>' 'core/clock may not use core/decode'
refused core/decode/probe.c '#include <tandem/names.h>' 'core/decode may not use core/names'
refused agent/agent_loop.c '#include <tandem/trace.h>' 'agent may not use core/decode'
refused converters/tsdl.c '#include "ir/ir_plan.h"' 'converters may not include ir/ir_plan.h of plugin'
refused plugin/params.c '#include "options.h"' 'plugin may not include options.h of cli'

# refused_link FILE TARGET LIBRARY
refused_link() {
	cp "$1" "$work/kept"
	echo "target_link_libraries($2 PRIVATE $3)" >>"$1"
	if cmake -S . -B "$work/build" -DTANDEM_TESTS=OFF -DTANDEM_BENCHES=OFF >"$work/said" 2>&1; then fail "$2 may link $3"; fi
	tr -s '\n ' ' ' <"$work/said" | grep -q "links $3 of" || fail "$2 with $3: $(cat "$work/said")"
	cp "$work/kept" "$1"
}
refused_link core/clock/CMakeLists.txt tandem-clock tandem-io
refused_link agent/CMakeLists.txt tandem-agent tandem-decode
refused_link converters/CMakeLists.txt tandem-converters tandem-ctf-clock
cmake -S . -B "$work/build" -DTANDEM_TESTS=OFF -DTANDEM_BENCHES=OFF >"$work/said" 2>&1 || { cat "$work/said"; fail "the tree itself does not configure"; }
