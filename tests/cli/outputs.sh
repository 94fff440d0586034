#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What cannot be written is told and is no success: a full disk, a limit of file sizes, streams that were closed at the start.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

# 1. Results and help on a full disk.
mapfile -t commands < <("$tandem" --help | awk '/^[A-Z].*:$/ { commands = /^Commands:/ } commands && /^  [a-z]/ { print $1 }')
[ ${#commands[@]} -ge 9 ] || fail "commands: ${commands[*]}"
told() {
	local status=0
	"$@" >/dev/full 2>"$work/err" </dev/null || status=$?
	[ $status = 1 ] && [ "$(grep -c 'standard output: No space left' "$work/err")" = 1 ] || fail "$* on a full disk: status $status, $(cat "$work/err")"
}
for command in "${commands[@]}"; do
	told "$tandem" "$command" --help
	told "$tandem" "$command" --version
done
told "$tandem" --help
told "$tandem" --version
told "$agent" --help
told "$agent" --version
told "$tandem" info "$trace"
told "$tandem" info --json "$trace"
told "$tandem" view --run-args "$trace"
"$tandem" convert -o "$work/full" "$trace" >/dev/full 2>"$work/err"
[ $? = 3 ] && [ -e "$work/full/host/metadata" ] || fail "convert with a summary that cannot be written"

# 2. A limit of file sizes: an error of the write, with the file, and nothing under the final name.
(ulimit -f 20; exec "$tandem" convert -q -o "$work/limit" "$trace") >/dev/null 2>"$work/err"
status=$?
[ $status = 1 ] && grep -q 'File too large' "$work/err" || fail "convert under a limit: status $status, $(cat "$work/err")"
[ -z "$(ls -A "$work/limit" 2>/dev/null)" ] || fail "convert under a limit left $(ls -R "$work/limit")"
(ulimit -f 1; exec "$tandem" view "$trace") >"$work/view" 2>"$work/err"
status=$?
[ $status != 0 ] && [ $status -lt 128 ] && [ -s "$work/err" ] || fail "view under a limit: status $status, $(cat "$work/err")"

# 3. Closed streams: files do not get their numbers, and what is written there goes nowhere.
"$tandem" convert -q -o "$work/closed" "$trace" <&- >&- 2>&-
status=$?
[ $status = 0 ] && "$tandem" check-ctf -q "$work/closed/host" || fail "convert with closed streams: status $status"
"$tandem" info "$trace" >&- 2>"$work/err"
status=$?
[ $status = 1 ] && grep -q 'standard output' "$work/err" || fail "info with a closed output: status $status, $(cat "$work/err")"

# 4. A reader that leaves ends it quietly.
{ "$tandem" view "$trace" 2>"$work/err"; echo "${PIPESTATUS[0]}" >"$work/status"; } | head -n 1 >/dev/null
[ ! -s "$work/err" ] || fail "view into a pipe that was closed: $(cat "$work/err")"
exit $failed
