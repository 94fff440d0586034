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

commands=$(sed -n '/commands\[\] = {/,/^};/s/.*{ "\([a-z-]*\)",.*/\1/p' "$TANDEM_SOURCE/cli/main.c")
[ -n "$commands" ] || fail "no commands found in cli/main.c"
for command in $commands; do
	offered tandem "" | grep -qx -- "$command" || fail "command $command is not offered"
	for option in --help --version --quiet; do
		offered tandem "$command" "$option" | grep -qx -- "$option" || fail "$command: $option is not offered"
	done
done
for option in --corrections --names --run-args --begin; do
	offered tandem view --"" | grep -qx -- "$option" || fail "view: $option is not offered"
done
offered tandem info --j | grep -qx -- --json || fail "info: --json is not completed"
[ "$(offered tandem view --names l)" = lttng ] || fail "values of --names are not completed"
[ -z "$(offered tandem info trace)" ] || fail "a path is not left to bash"
exit $((faults > 0))
