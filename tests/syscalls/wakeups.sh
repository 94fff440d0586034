#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No recording thread wakes anybody: the wakeup's own call (rt_sigpending) counted by strace, with the shipped profiles and
# with the one that shows the problem.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
# strace's own attach makes it slow: 20000 calls are many sub-buffers of 4 KiB, and a full one of the small profile.
wakeups() {
	options="--profile $1"
	record "$work/home/trace" strace -f -e trace=rt_sigpending -o "$work/home/strace" "$work/workload" count 20000
	[ "$status" = 0 ] || fail "$1: $(cat "$work/err")"
	grep -c rt_sigpending "$work/home/strace"
}
for profile in tandem-syscalls tandem-syscalls-small tandem-syscalls-flight; do
	count=$(wakeups $profile)
	[ "$count" = 0 ] || fail "$profile: $count wakeups by recording threads"
done
count=$(wakeups tandem-syscalls-wakeup)
[ "$count" -gt 50 ] || fail "the bad example has only $count wakeups: this test would not see any"
echo "wakeups: 0 with the shipped profiles, $count with tandem-syscalls-wakeup"
# At its start a program tells the daemon of some 200 events and waits for an answer to each: one write each, not three.
options=
record "$work/home/trace" strace -f -e trace=sendmsg,sendto,recvmsg -o "$work/home/strace" /bin/true
[ "$status" = 0 ] || fail "true: $(cat "$work/err")"
nothing_lost
sends=$(grep -c ' send[a-z]*(' "$work/home/strace") answers=$(grep -c ' recvmsg(' "$work/home/strace")
[ "$answers" -gt 200 ] || fail "only $answers answers of the daemon: this test would not see the writes"
[ "$sends" -lt $((answers + answers / 4)) ] || fail "$sends writes for $answers answers"
echo "registration: $sends writes for $answers answers"
