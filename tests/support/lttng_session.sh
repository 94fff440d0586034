# SPDX-License-Identifier: MIT
# lttng_session.sh - sourced: a private LTTng session daemon of an ordinary user, in a folder of its own.
#
#   lttng_begin DIR    makes DIR the home of a session daemon (and, with LTTNG_RELAYD set, of a relay daemon) and starts it
#   as_user COMMAND    runs a command as the user that the daemon belongs to
#   lttng_end          stops what was started
#
# Root hands over to "nobody": the session daemon of root is the machine's.

as_user() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$lttng_home" LTTNG_HOME="$lttng_home" "$@"
	else
		env HOME="$lttng_home" LTTNG_HOME="$lttng_home" "$@"
	fi
}

lttng_begin() {
	lttng_home=$1
	mkdir -p "$lttng_home"
	[ "$(id -u)" != 0 ] || chown 65534:65534 "$lttng_home"
	for tool in lttng lttng-sessiond; do
		command -v $tool >/dev/null || { echo "SKIP: $tool is not here"; exit 77; }
	done
	as_user lttng-sessiond --no-kernel >"$lttng_home.sessiond" 2>&1 &
	lttng_sessiond=$!
	lttng_relayd=
	if [ -n "${LTTNG_RELAYD:-}" ]; then
		as_user lttng-relayd -o "$lttng_home/relayd" -C "tcp://127.0.0.1:$LTTNG_RELAYD" \
			-D "tcp://127.0.0.1:$((LTTNG_RELAYD + 1))" -L "tcp://127.0.0.1:$((LTTNG_RELAYD + 2))" \
			>"$lttng_home.relayd" 2>&1 &
		lttng_relayd=$!
	fi
	for _ in $(seq 100); do
		as_user lttng list >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	echo "lttng_session.sh: the session daemon does not answer" >&2
	cat "$lttng_home.sessiond" >&2
	return 1
}

lttng_end() {
	[ -z "${lttng_relayd:-}" ] || kill "$lttng_relayd" 2>/dev/null || true
	[ -z "${lttng_sessiond:-}" ] || kill "$lttng_sessiond" 2>/dev/null || true
	wait 2>/dev/null || true
}
