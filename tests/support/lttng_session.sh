# SPDX-License-Identifier: MIT
# lttng_session.sh - sourced: a private LTTng session daemon of an ordinary user, in a folder of its own.
#
#   lttng_begin DIR    makes DIR the home of a session daemon (and, with LTTNG_RELAYD set, of a relay daemon) and starts it
#   as_user COMMAND    runs a command as the user that the daemon belongs to
#   lttng_end          stops what was started
#
# Root hands over to "nobody": the session daemon of root is the machine's.

# The prefix of a command: a background process started with it is the command itself, so that it can be killed.
set_user() {
	user=(env "HOME=$lttng_home" "LTTNG_HOME=$lttng_home")
	if [ "$(id -u)" = 0 ]; then
		user=(setpriv --reuid=65534 --regid=65534 --clear-groups "${user[@]}")
	fi
}

as_user() {
	"${user[@]}" "$@"
}

lttng_begin() {
	lttng_home=$1
	mkdir -p "$lttng_home"
	[ "$(id -u)" != 0 ] || chown 65534:65534 "$lttng_home"
	for tool in lttng lttng-sessiond; do
		command -v $tool >/dev/null || { echo "SKIP: $tool is not here"; exit 77; }
	done
	set_user
	"${user[@]}" lttng-sessiond --no-kernel >"$lttng_home.sessiond" 2>&1 &
	lttng_sessiond=$!
	lttng_relayd=
	if [ -n "${LTTNG_RELAYD:-}" ]; then
		"${user[@]}" lttng-relayd -o "$lttng_home/relayd" -C "tcp://127.0.0.1:$LTTNG_RELAYD" \
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
	local pid
	for pid in ${lttng_relayd:-} ${lttng_sessiond:-}; do
		kill "$pid" 2>/dev/null || continue
		for _ in $(seq 50); do
			kill -0 "$pid" 2>/dev/null || break
			sleep 0.1
		done
		kill -9 "$pid" 2>/dev/null || true
	done
}
