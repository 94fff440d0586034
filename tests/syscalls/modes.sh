#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The other ways: complete mode, wrappers, and programs that must be declined in one clear line.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
trace=$work/home/trace

# Inline assembly: only the complete mode sees it. 2 x 5 calls of getppid, one of getpgrp in the forked child.
record "$trace" "$work/workload" inline 5
"$here/counts" "$trace" | grep -qx 'getppid 5' || fail "patch mode: $("$here/counts" "$trace")"
options=--complete
record "$trace" "$work/workload" inline 5
[ "$status" = 0 ] || fail "complete mode: status $status: $(cat "$work/err")"
"$here/counts" "$trace" >"$work/counts"
grep -qx 'getppid 10' "$work/counts" && grep -qx 'getpgrp 1' "$work/counts" && grep -qx 'fork 1' "$work/counts" ||
	fail "complete mode: $(cat "$work/counts") $(cat "$work/err")"
nothing_lost
for case in "sigsys 20" "threads 2" "spawns 1" "badptr 3" "restart 1"; do
	# shellcheck disable=SC2086
	record "$trace" "$work/workload" $case
	[ "$status" = 0 ] || fail "complete mode, $case: status $status: $(cat "$work/err")"
	nothing_lost
done
# Handlers that run with all signals blocked make calls, too: with SIGSYS blocked the kernel would end the program.
cat >"$work/blocked.c" <<'EOF'
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void handler(int number)
{
	long ret;
	(void)number;
	for (int i = 0; i < 3; i++) {
		__asm__ volatile("syscall" : "=a"(ret) : "0"(110L) : "rcx", "r11", "memory");
	}
}
int main(void)
{
	struct sigaction action = { .sa_handler = handler };
	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	puts("alive");
	return 4;
}
EOF
gcc -O1 -o "$work/blocked" "$work/blocked.c" || fail "compiling"
chmod a+rx "$work/blocked"
record "$trace" "$work/blocked"
[ "$status" = 4 ] && grep -qx alive "$work/out" || fail "complete mode, all signals blocked in a handler: status $status: $(cat "$work/err")"
"$here/counts" "$trace" >"$work/counts"
grep -qx 'getppid 3' "$work/counts" || fail "complete mode, all signals blocked in a handler: $(cat "$work/counts")"
for options in --complete ""; do
	record "$trace" "$work/masks"
	[ "$status" = 0 ] || fail "waiting under a mask${options:+, $options}: status $status: $(cat "$work/out" "$work/err")"
	nothing_lost
done
echo "complete mode: inline assembly seen; own SIGSYS handler, threads, spawn, restarts work"

# A sandbox that allows three calls and kills at any other: the provider makes none of its own in it.
cat >"$work/sandbox.c" <<'EOF'
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(rules) / sizeof(rules[0]), rules };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		return 1;
	}
	for (int i = 0; i < 300; i++) {
		getppid();
	}
	syscall(SYS_exit_group, 5);
}
EOF
gcc -O1 -o "$work/sandbox" "$work/sandbox.c" || fail "compiling"
chmod a+rx "$work/sandbox"
options=
record "$trace" "$work/sandbox"
[ "$status" = 5 ] || fail "a program that sandboxes itself: status $status: $(cat "$work/err")"
nothing_lost
"$here/counts" "$trace" >"$work/counts"
grep -qx 'getppid 300' "$work/counts" || fail "a program that sandboxes itself: $(cat "$work/counts")"

options="--mode wrap"
record "$trace" bash -c "$work/workload count 100; ls / >/dev/null"
[ "$status" = 0 ] && grep -q 'wrap mode' "$work/said" || fail "wrap mode: $(cat "$work/err")"
"$here/counts" "$trace" | grep -qx 'getuid 10[0-9]' || fail "wrap mode: $("$here/counts" "$trace")"
nothing_lost
options=
echo "wrap mode: announced, calls through symbols seen"

# A policy that lets no written memory become executable: the wrappers instead, by itself, said in words.
if "$work/no_exec" true; then
	rm -rf "$trace"
	(cd "$work/home" && as_user timeout 100 "$work/no_exec" "$tandem" syscalls -o "$trace" -- "$work/workload" count 100) 2>"$work/err"
	[ $? = 0 ] || fail "where mprotect is refused: $(cat "$work/err")"
	grep -c 'Code cannot be changed here' "$work/err" | grep -qx 1 || fail "the fallback is not said once: $(cat "$work/err")"
	"$here/counts" "$trace" | grep -qx 'getuid 10[0-9]' || fail "the fallback: $("$here/counts" "$trace")"
	# Asked for the patching way all the same, or inside a sandbox of the command's own: it runs, unrecorded, and that is said.
	rm -rf "$trace"
	(cd "$work/home" && as_user timeout 100 "$work/no_exec" "$tandem" syscalls --mode patch -o "$trace" -- bash -c 'exit 9') 2>"$work/err"
	[ $? = 9 ] && grep -q "libc's code cannot be changed here, the program runs unrecorded" "$work/err" ||
		fail "--mode patch where mprotect is refused: $(cat "$work/err")"
	record "$trace" bash -c '"$@"; exit $(($? + 1))' bash "$work/no_exec" bash -c 'exit 9'
	[ "$status" = 10 ] && grep -q 'runs unrecorded' "$work/said" || fail "a sandbox of the command's own: status $status: $(cat "$work/err")"
	echo "mprotect refused: wrappers take over, a sandboxed child runs unrecorded, each said"
fi

# declined PATTERN COMMAND...: runs as without us, and is said once.
declined() {
	local pattern=$1
	shift
	record "$trace" bash -c '"$@"; "$@"; exit 4' bash "$@"
	[ "$status" = 4 ] || fail "$*: status $status: $(cat "$work/err")"
	grep -c "$pattern" "$work/said" | grep -qx 1 || fail "$*: not said once: $(cat "$work/err")"
	babeltrace2 "$trace" | grep 'tandem:declined' >/dev/null || fail "$*: not in the trace"
	# As the command itself, where nothing of ours runs before it; and complete mode, which ends at exec, says the same.
	for options in "" --complete; do
		record "$trace" "$@"
		[ "$status" = 0 ] || fail "$* as the command $options: status $status: $(cat "$work/err")"
		grep -c "$pattern" "$work/said" | grep -qx 1 || fail "$* as the command $options: not said once: $(cat "$work/err")"
	done
	options=
}
if command -v busybox >/dev/null && file -L "$(command -v busybox)" 2>/dev/null | grep -q 'statically' || [ -x /bin/busybox ]; then
	declined 'busybox: statically linked' busybox true
	declined 'busybox: statically linked' /bin/busybox sh -c 'exit 0'
fi
cat >"$work/raw.c" <<'EOF'
/* As Go programs are: no libc, no loader, system calls of its own. */
void _start(void)
{
	__asm__ volatile("mov $1,%eax; mov $1,%edi; lea text(%rip),%rsi; mov $4,%edx; syscall; mov $231,%eax; xor %edi,%edi; syscall");
}
__asm__("text: .ascii \"raw\\n\"");
EOF
gcc -static -nostdlib -fno-stack-protector -o "$work/raw" "$work/raw.c" || fail "compiling"
chmod a+rx "$work/raw"
declined 'raw: statically linked' "$work/raw"
grep -qx raw "$work/out" || fail "a static program did not run"
if [ "$(id -u)" = 0 ]; then
	cp /usr/bin/id "$work/setuid-id" && chmod 4755 "$work/setuid-id"
	declined 'setuid-id: set-user-ID' "$work/setuid-id"
fi
# Capabilities are a thread's own: lttng-ust's threads keep none over a change of the user, and glibc aborts where threads differ.
if [ "$(id -u)" = 0 ]; then
	ids=$(cd "$work/home" && LD_PRELOAD=$stage/agent/ust/libtandem-syscall.so LTTNG_UST_REGISTER_TIMEOUT=0 \
		setpriv --reuid 61555 --regid 61556 --clear-groups sh -c 'id -u; id -g; id -G' 2>&1 | tr '\n' ' ')
	[ "$ids" = "61555 61556 61556 " ] || fail "setpriv with lttng-ust's threads: $ids"
	echo "a program that gives up its identity step by step goes on"
fi
echo "declined: static, raw and set-user-ID programs run, each said in one line"

for sanitizer in address thread; do
	printf '#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void){char*p=malloc(10);p[0]=1;for(int i=0;i<50;i++)getuid();free(p);puts("fine");return 6;}\n' >"$work/s.c"
	gcc -g -fsanitize=$sanitizer -o "$work/$sanitizer" "$work/s.c" || fail "compiling with $sanitizer"
	chmod a+rx "$work/$sanitizer"
	"$work/$sanitizer" >/dev/null 2>&1
	[ $? = 6 ] || { echo "the $sanitizer sanitizer does not run here without us either"; continue; }
	record "$trace" "$work/$sanitizer"
	[ "$status" = 6 ] && grep -qx fine "$work/out" || fail "$sanitizer: status $status: $(cat "$work/err")"
	"$here/counts" "$trace" | grep -q '^getuid 5' || fail "$sanitizer: no calls"
	echo "the $sanitizer sanitizer: works"
done
