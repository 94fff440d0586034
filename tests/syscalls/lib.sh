# SPDX-License-Identifier: MIT
# lib.sh - for the script tests of "tandem syscalls": an ordinary user, a copy of the programs that it can read.
set -u # no pipefail: "grep -q" ends its writers early
here=$TANDEM_SOURCE/tests/syscalls

work=$(mktemp -d /tmp/tandem-test-XXXXXX) # short: sockets are made below it
cleanup=
finish() {
	eval "$cleanup"
	rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }

stage=$work/stage
mkdir -p "$stage/cli" "$stage/agent/ust" "$stage/sessions" "$work/home"
cp "$TANDEM_BUILD/cli/tandem" "$stage/cli/"
cp "$TANDEM_BUILD"/agent/ust/libtandem-*.so "$stage/agent/ust/"
cp "$TANDEM_SOURCE"/sessions/*.lttng "$stage/sessions/"
cp "$TANDEM_BUILD"/tests/syscalls/{workload,registers,vectors,no_exec,masks} "$work/"
tandem=$stage/cli/tandem
chmod -R a+rX "$work"

# LTTng's daemon of root lies at a fixed place, so the tests are somebody else: user 65534, or one of its own for each test
# that runs beside others.
uid=${TEST_UID:-$((61000 + RANDOM % 3000))}
export LC_ALL=C HOME=$work/home PATH=/usr/sbin:/usr/bin:/sbin:/bin
unset XDG_RUNTIME_DIR LTTNG_HOME LD_PRELOAD
if [ "$(id -u)" = 0 ]; then
	chown -R "$uid:$uid" "$work"
	as_user() { setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"; }
	exec_as_user() { exec setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"; }
else
	as_user() { "$@"; }
	exec_as_user() { exec "$@"; }
fi

for need in lttng-sessiond strace; do
	command -v "$need" >/dev/null || { echo "SKIP: $need is not installed"; exit 77; }
done

# record DIR COMMAND...: its output in out, err; its status in $status. Options of ours in $options.
options=
record() {
	local dir=$1
	shift
	rm -rf "$dir"
	# shellcheck disable=SC2086
	(cd "$work/home" && as_user timeout -k 5 "${limit:-100}" "$tandem" syscalls $options -o "$dir" -- "$@") \
		>"$work/out" 2>"$work/err" </dev/null
	status=$?
	grep '^tandem syscalls: \|^[0-9]* system calls\|^lost: \|^check: \|were killed or\|of them' "$work/err" >"$work/said"
	grep -v '^tandem syscalls: \|^[0-9]* system calls\|^lost: \|^check: \|were killed or\|^  *[0-9]*  .* events' \
		"$work/err" >"$work/err.own"
}

# nothing_lost: the summary of the last record says that nothing was, and that the counts add up.
nothing_lost() {
	grep -q '^lost: 0 events discarded by LTTng, 0 packets overwritten, 0 calls not recorded' "$work/said" ||
		fail "something was lost: $(cat "$work/said")"
	if grep -q 'DOES NOT ADD UP' "$work/said"; then
		fail "the counts do not add up: $(cat "$work/said")"
	fi
}
