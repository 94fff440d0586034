#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The same calls as strace sees, the same output, the same exit status. usage: completeness.sh NAME...
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1

# same ALLOWED COMMAND...: ALLOWED names calls whose number is not fixed by the program.
same() {
	local allowed=$1 untraced
	shift
	record "$work/home/trace" "$@"
	local recorded=$status
	nothing_lost
	(cd "$work/home" && as_user timeout -k 5 100 strace -f -o "$work/home/strace" "$@") >"$work/out.strace" 2>"$work/err.strace" </dev/null
	untraced=$?
	sed -i '/^strace: /d' "$work/err.strace" # its own words
	[ "$recorded" = "$untraced" ] || fail "$*: exit status $recorded, without us $untraced"
	cmp "$work/out" "$work/out.strace" || fail "$*: another output"
	cmp "$work/err.own" "$work/err.strace" || fail "$*: other errors: $(cat "$work/err.own")"
	"$here/counts" "$work/home/trace" "$work/home/strace" --allow "none${allowed:+,$allowed}" >"$work/counts" ||
		fail "$*: $(cat "$work/counts")"
	echo "same: $*: $(tail -n 1 "$work/counts")"
}

for name; do
	case $name in
	pipelines)
		same '' bash -c 'ls / | sort | head -3; echo one two | wc -w | cat; (exit 3)'
		# How often md5sum reads depends on cat. xargs looks at each descriptor up to the highest open one, and LTTng's are above 700.
		same poll,fcntl,read bash -c 'for i in 1 2 3; do echo $i | tr 1-3 a-c; done; find /usr/lib/tmpfiles.d -type f | xargs cat | md5sum'
		;;
	python)
		cat >"$work/home/program.py" <<'EOF'
import os, subprocess, threading
def work(i):
    for k in range(20):
        with open("file%d" % i, "w") as f: f.write("x" * 100)
        os.stat("file%d" % i); os.getppid()
    said[i] = subprocess.run(["echo", "thread %d" % i], capture_output=True, text=True).stdout.strip()
said = {}
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(*(said[i] for i in range(4)), sep="\n", flush=True)
print(subprocess.check_output("ls /usr | wc -l", shell=True, text=True).strip(), flush=True)
os.posix_spawn("/bin/true", ["true"], os.environ); os.wait()
pid = os.fork()
if pid == 0:
    os.getuid(); os._exit(3)
print(os.waitpid(pid, 0)[1])
EOF
		# How often a pipe is polled and read depends on how its writer writes; a byte code cache may be written.
		same poll,read /usr/bin/python3 -B "$work/home/program.py"
		;;
	compiler)
		printf '#include <stdio.h>\nint main(void) { puts("x"); return 0; }\n' >"$work/home/hello.c"
		chmod a+r "$work/home/hello.c"
		# Names of temporary files are made until one is free.
		same newfstatat,unlink,stat gcc -O2 -o hello hello.c
		;;
	network) same '' "$work/workload" network 300 ;;
	forks) same '' "$work/workload" forks "${FORKS:-1000}" ;;
	spawns) same '' "$work/workload" spawns 3 ;;
	threads) same '' "$work/workload" threads 5 ;;
	restart) same '' "$work/workload" restart 2 ;;
	cancel)
		# How far a spinning thread gets is not fixed, nor whether a cancellation needs its signal.
		same poll,read,getpid,tgkill,rt_sigprocmask "$work/workload" cancel 60
		;;
	uring) same '' "$work/workload" uring 100 ;;
	sigsys) same '' "$work/workload" sigsys 50 ;;
	badptr) same '' "$work/workload" badptr 20 ;;
	fds) same '' "$work/workload" fds 1 ;;
	*) fail "no such case: $name" ;;
	esac
done
