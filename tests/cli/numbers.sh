#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Numbers in options: what is none is refused with the option's name, and no number is read as another one.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"

# refused OPTION VALUE COMMAND...: with status 2
refused() {
	local option=$1 value=$2 status=0
	shift 2
	timeout 20 "$@" "$option" "$value" >/dev/null 2>"$work/err" </dev/null || status=$?
	[ $status = 2 ] && grep -q -e "${option#--}" "$work/err" || fail "$* $option '$value': status $status, $(cat "$work/err")"
}
for value in "" " 5" "5 " $'5\n' 1e9 0x 5.0 five 99999999999999999999 --5 "- 5"; do
	refused --offset "g=$value" "$tandem" view "host=$trace" "g=$trace"
	for option in --threads --clock-hz --target-bound; do
		refused $option "$value" "$tandem" convert -o "$work/out" "$trace"
	done
	for option in --time --size-mib -b --pid --target-bound; do
		refused $option "$value" "$tandem" record -o "$work/out"
	done
	refused --max-buffer-kib "$value" "$agent" --listen "unix:$work/socket"
done
for value in -1 -18446744073709551608 +5; do
	refused --threads "$value" "$tandem" convert -o "$work/out" "$trace"
	refused --time "$value" "$tandem" record -o "$work/out"
	refused --max-buffer-kib "$value" "$agent" --listen "unix:$work/socket"
done
[ ! -e "$work/out" ] || fail "a directory was made"

# A leading zero is no other base; hexadecimal is said by 0x.
clock_of() { "$tandem" view --run-args "$trace" --clock-hz "$1" | grep -o 'clock-hz=[0-9]*'; }
[ "$(clock_of 010)" = clock-hz=10 ] || fail "--clock-hz 010 is $(clock_of 010)"
[ "$(clock_of 0x10)" = clock-hz=16 ] || fail "--clock-hz 0x10 is $(clock_of 0x10)"
exit $failed
