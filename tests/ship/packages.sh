#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Debian packages in a bare Debian 12: they install with what they say they need, every part works and says the same
# version, and purging them leaves nothing.
set -euo pipefail
root=$(mktemp -d /var/tmp/tandem-ship-XXXXXX)
daemons=()
end() {
	local status=$?
	for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; done
	for mount in dev/shm proc; do mountpoint -q "$root/$mount" && umount -l "$root/$mount"; done
	rm -rf --one-file-system "$root"
	exit $status
}
trap end EXIT
faults=0
fail() { echo "FAIL: $*"; faults=$((faults + 1)); }
inside() { timeout 300 chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@" </dev/null; }
apt() { inside apt-get -y --no-install-recommends "$@" >"$root/tmp/apt.log" 2>&1 || { cat "$root/tmp/apt.log"; echo "FAIL: apt-get $*"; exit 1; }; }
# Every path but those that are apt's and dpkg's own, and what programs write while they run.
paths() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./run -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./root -o -path ./home \) -prune -o -print | LC_ALL=C sort); }

"$TANDEM_SOURCE/tests/support/debian12-root" "$root" || exit 77
TANDEM_PACKAGE_BUILD=$TANDEM_BUILD/package "$TANDEM_SOURCE/scripts/package" "$root/tmp/debs" >/dev/null
version=$("$TANDEM_BUILD/cli/tandem" --version | cut -d' ' -f2)
mount -t proc proc "$root/proc"
mkdir -p "$root/dev/shm"
mount -t tmpfs -o size=512m tmpfs "$root/dev/shm"

if command -v lintian >/dev/null; then
	lintian --fail-on error,warning --suppress-tags bogus-mail-host "$root"/tmp/debs/*.deb 2>/dev/null || fail "lintian has complaints"
fi

# What they depend on goes first, so that what they bring themselves can be told from it.
needed=$(for deb in "$root"/tmp/debs/*.deb; do dpkg-deb -f "$deb" Depends; echo; done | tr ',' '\n' | sed 's/[(|].*//; s/ //g' | grep -v '^tandem' | sort -u)
apt update
apt install $needed
paths >"$root/tmp/before"
inside sh -c 'apt-get -y --no-install-recommends install /tmp/debs/*.deb' >"$root/tmp/apt.log" 2>&1 || { cat "$root/tmp/apt.log"; exit 1; }
"$TANDEM_SOURCE/tests/support/debian12-root" --keep "$root"
for package in tandem tandem-agent tandem-syscalls; do
	inside dpkg-query -W -f '${db:Status-Status}' "$package" | grep -qx installed || fail "$package is not installed"
done

# One version everywhere.
says() { # WHAT SAID
	[ "$2" = "$version" ] || fail "$1 says version \"$2\", the build is $version"
}
for package in tandem tandem-agent tandem-syscalls; do
	says "package $package" "$(inside dpkg-query -W -f '${Version}' "$package")"
	[ -s "$root/usr/share/doc/$package/copyright" ] || fail "$package has no copyright file"
done
says "tandem" "$(inside tandem --version | cut -d' ' -f2)"
says "tandem-agent" "$(inside tandem-agent --version | cut -d' ' -f2)"
says "the plugin" "$(inside babeltrace2 list-plugins | awk '/^tandem:/ { mine = 1 } /^[a-z]/ && !/^tandem:/ { mine = 0 } mine && /[Vv]ersion/ { print $NF }')"
for page in tandem.1 tandem-record.1 tandem-agent.8 tandem-syscalls.7 babeltrace2-filter.tandem.clock.7; do
	says "$page" "$(zcat "$root/usr/share/man/man${page##*.}/$page.gz" | sed -n 's/^\.Os Tandem //p')"
done
says "tandem.pc" "$(sed -n 's/^Version: //p' "$root"/usr/lib/*/pkgconfig/tandem.pc)"

# Every part works.
[ "$(inside sh -c 'cd /usr/share/doc/tandem/examples && tandem view -q kvm-tsc.dat vm1=kvm-tsc-l2.dat' | grep -c '\] vm1 ')" -gt 1000 ] ||
	fail "the example that README shows"
cp "$TANDEM_SOURCE"/tests/data/kvm/kvm-tsc.dat "$TANDEM_SOURCE"/tests/data/kvm/kvm-tsc-l2.dat "$root/tmp/"
wanted=$("$TANDEM_BUILD/cli/tandem" view -q "$root/tmp/kvm-tsc.dat" "$root/tmp/kvm-tsc-l2.dat" | wc -l)
[ "$wanted" -gt 0 ] || fail "the build itself shows no events"
[ "$(inside babeltrace2 /tmp/kvm-tsc.dat /tmp/kvm-tsc-l2.dat 2>/dev/null | wc -l)" = "$wanted" ] || fail "babeltrace2 alone does not show the $wanted events"
[ "$(inside tandem view -q /tmp/kvm-tsc.dat /tmp/kvm-tsc-l2.dat | wc -l)" = "$wanted" ] || fail "tandem view does not show the $wanted events"
inside sh -c 'tandem convert -q -o /tmp/out /tmp/kvm-tsc.dat /tmp/kvm-tsc-l2.dat && tandem check-ctf -q /tmp/out/*' || fail "tandem convert or check-ctf"
(inside ldd /usr/sbin/tandem-agent 2>&1 || true) | grep -q "not a dynamic" || fail "the agent is not static"
grep -q '^ExecStart=/usr/sbin/tandem-agent ' "$root/usr/lib/systemd/system/tandem-agent.service" || fail "the unit does not start /usr/sbin/tandem-agent"
inside bash -c 'source /usr/share/bash-completion/completions/tandem; COMP_WORDS=(tandem vi) COMP_CWORD=1; _tandem; [ "${COMPREPLY[0]}" = view ]' || fail "bash completes nothing"

inside tandem doctor --json >"$root/tmp/doctor" || [ $? = 3 ] || fail "tandem doctor"
python3 - "$root/tmp/doctor" <<'END' || fail "tandem doctor finds a part of the packages missing"
import json, sys
found = {item["check"]: item for item in json.load(open(sys.argv[1]))["checks"]}
assert found["babeltrace2"]["level"] == found["syscalls"]["level"] == "ok" and "sessions" not in found and "plugin" not in found, found
END

# "lttng load" by name, and system calls of a program without root.
inside lttng-sessiond --no-kernel --daemonize >/dev/null 2>&1
daemons+=("$(cat "$root/run/lttng/lttng-sessiond.pid")")
inside lttng load tandem-syscalls >"$root/tmp/load" 2>&1 || { cat "$root/tmp/load"; fail "lttng load tandem-syscalls"; }
inside lttng list | grep -q ' tandem-syscalls ' || fail "the session is not there after lttng load"
inside lttng destroy tandem-syscalls >/dev/null
inside useradd -m somebody
inside su somebody -c 'cd && tandem syscalls -q -o trace -- ls /etc' >/dev/null 2>"$root/tmp/said" || { cat "$root/tmp/said"; fail "tandem syscalls as an ordinary user"; }
[ "$(inside babeltrace2 /home/somebody/trace 2>/dev/null | grep -c 'tandem:syscall_entry_getdents64')" -ge 1 ] || fail "the trace does not have the calls of ls"

# Nothing stays.
kill "${daemons[@]}"
for _ in $(seq 50); do kill -0 "${daemons[@]}" 2>/dev/null || break; sleep 0.1; done
daemons=()
paths >"$root/tmp/between"
for deb in "$root"/tmp/debs/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's,/$,,'; done | LC_ALL=C sort -u >"$root/tmp/theirs"
LC_ALL=C comm -13 "$root/tmp/before" "$root/tmp/between" | LC_ALL=C comm -23 - "$root/tmp/theirs" | grep -v '^./etc/\(passwd-\|group-\|shadow-\|gshadow-\|subuid-\|subgid-\)\|^./var/mail' >"$root/tmp/strays" || true
[ ! -s "$root/tmp/strays" ] || { fail "files that no package owns:"; cat "$root/tmp/strays"; }
inside userdel -r somebody >/dev/null 2>&1 || true
apt purge tandem tandem-agent tandem-syscalls
paths >"$root/tmp/after"
if ! diff "$root/tmp/before" "$root/tmp/after" | grep -v '^[<>] ./etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\)-\?$' | grep '^[<>]'; then :; else fail "purging changed the list of files (above)"; fi
echo "$(echo "$needed" | wc -w) packages they depend on, $(wc -l <"$root/tmp/theirs") paths of theirs, version $version"
exit $((faults > 0))
