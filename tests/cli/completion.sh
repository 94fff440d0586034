#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The completion offers every command of the program, and for each command every option that its source knows.
set -euo pipefail
PATH=$TANDEM_BUILD/cli:$PATH
source "$TANDEM_SOURCE/packaging/tandem.bash"
faults=0
fail() {
	echo "FAIL: $*"
	faults=$((faults + 1))
}

# offered WORD...: what is offered for the last word
offered() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_tandem
	printf '%s\n' "${COMPREPLY[@]}"
}

# offers WANTED WORD...: whether WANTED is among them
offers() {
	local wanted=$1 all
	shift
	all=$(offered "$@")
	grep -qx -- "$wanted" <<<"$all"
}

commands=$(sed -n '/commands\[\] = {/,/^};/s/.*{ "\([a-z-]*\)",.*/\1/p' "$TANDEM_SOURCE/cli/main.c")
[ -n "$commands" ] || fail "no commands found in cli/main.c"
for command in $commands; do
	offers "$command" tandem "" || fail "command $command is not offered"
	for option in --help --version --quiet; do
		offers "$option" tandem "$command" "$option" || fail "$command: $option is not offered"
	done
done
for option in --corrections --names --run-args --begin; do
	offers "$option" tandem view -- || fail "view: $option is not offered"
done
offers --json tandem info --j || fail "info: --json is not completed"
[ "$(offered tandem view --names l)" = lttng ] || fail "values of --names are not completed"
[ -z "$(offered tandem info trace)" ] || fail "a path is not left to bash"
exit $((faults > 0))
