#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What a newcomer types first tells its usage, refuses what it does not know, and ./check hands ctest its options.
set -euo pipefail

fail() { echo "FAIL: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Copies, with a set-up and a ctest that only tell what they were given: nothing here may build or install.
mkdir -p "$work/scripts" "$work/bin"
cp "$TANDEM_SOURCE/check" "$TANDEM_SOURCE/demo" "$work/"
cp "$TANDEM_SOURCE"/scripts/{setup,lint,package} "$work/scripts/"
for command in cmake git apt-get dpkg-query mktemp clang-format; do
	printf '#!/bin/sh\necho "%s was run" >&2\nexit 99\n' "$command" >"$work/bin/$command"
done
printf '#!/bin/sh\nprintf "<%%s>" "$@"\nexit "${CTEST_STATUS:-0}"\n' >"$work/bin/ctest"
chmod +x "$work/bin"/*

run() { (cd "$work" && PATH=$work/bin:$PATH "$@" </dev/null >"$work/out" 2>"$work/err"); }

for script in ./check ./demo scripts/setup scripts/lint scripts/package; do
	for option in --help -h; do
		run "$script" "$option" || fail "$script $option: status $?"
		grep -q "^usage: $script" "$work/out" || fail "$script $option: no usage"
	done
	status=0
	run "$script" --no-such || status=$?
	[ "$status" = 2 ] || fail "$script --no-such: status $status"
	grep -q -- "--no-such" "$work/err" || fail "$script --no-such: not named"
	grep -q "usage: $script" "$work/err" || fail "$script --no-such: no usage"
done
for wrong in "./check word" "./check -R" "./check --quik" "./check --rerun-faild" "./demo x" "scripts/setup --test" "scripts/lint x" \
	"scripts/package a b"; do
	status=0
	run $wrong || status=$?
	[ "$status" = 2 ] || fail "$wrong: status $status"
done
[ ! -e "$work/build" ] || fail "something was made"

printf '#!/bin/sh\n' >"$work/scripts/setup"
given="--repeat until-pass:3 -R ^unit -j 3 --rerun-failed -j2 -LE full"
run ./check --quick $given || fail "options of ctest: $(cat "$work/err")"
grep -qF "<-LE><full|slow>$(printf '<%s>' $given)" "$work/out" || fail "ctest was given: $(cat "$work/out")"
run ./check || fail "without options"
! grep -q -- --rerun-failed "$work/err" || fail "a rerun is offered where nothing failed"
status=0
CTEST_STATUS=8 run ./check || status=$?
[ "$status" = 8 ] || fail "failed tests: status $status"
grep -q "ctest --test-dir build/main --rerun-failed --output-on-failure" "$work/err" || fail "no rerun is offered"
