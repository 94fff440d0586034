#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The agent goes into guests of all kinds: its size and what it needs are promises.
set -euo pipefail
agent=$TANDEM_BUILD/agent/tandem-agent
static=$TANDEM_BUILD/agent/tandem-agent-static
grep -q 'CMAKE_BUILD_TYPE:STRING=Release' "$TANDEM_BUILD/CMakeCache.txt" || { echo "SKIP: not a release build"; exit 77; }

size=$(stat -c %s "$agent")
echo "dynamic: $size bytes"
[ "$size" -le $((300 * 1024)) ] || { echo "more than 300 KiB"; exit 1; }
needed=$(readelf -d "$agent" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
[ "$needed" = "libc.so.6 libsodium.so.23 " ] || { echo "needs $needed"; exit 1; }

size=$(stat -c %s "$static")
echo "static: $size bytes"
[ "$size" -le $((1536 * 1024)) ] || { echo "more than 1.5 MiB"; exit 1; }
[ -z "$(readelf -d "$static" | grep NEEDED)" ] || { echo "the static agent needs libraries"; exit 1; }
"$static" --version | grep -q '^tandem-agent '
"$agent" --help | grep -q '^Example: '
