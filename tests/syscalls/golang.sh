#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Go programs: a static one makes its system calls itself and is declined in one line; one that is linked with libc (cgo) is
# recorded as far as libc makes its calls, in complete mode too, and runs as without us. Needs the go command (Debian: golang-go).
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
command -v "${GO:-go}" >/dev/null || { echo "SKIP: no go command"; exit 77; }
mkdir -p "$work/go"
cat >"$work/go/static.go" <<'GO'
package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

func main() {
	var wait sync.WaitGroup
	for i := 0; i < 8; i++ {
		wait.Add(1)
		go func() { os.ReadFile("/etc/hostname"); wait.Done() }()
	}
	wait.Wait()
	out, _ := exec.Command("/bin/echo", "child").Output()
	fmt.Print("go ", string(out))
	os.Exit(3)
}
GO
sed 's|^import (|/*\n#include <unistd.h>\nstatic int group(void) { return getpgid(0) > 0; }\n*/\nimport "C"\nimport (|; s|fmt.Print("go "|fmt.Print("cgo ", C.group(), " "|' \
	"$work/go/static.go" >"$work/go/cgo.go"
build() { (cd "$work/go" && GO111MODULE=off GOCACHE=$work/gocache CGO_ENABLED=$1 timeout 250 "${GO:-go}" build -o "$2" "$3") >"$work/gosaid" 2>&1; }
build 0 static static.go || fail "go build: $(cat "$work/gosaid")"
chmod -R a+rX "$work/go"
record "$work/home/trace" "$work/go/static"
[ "$status" = 3 ] && grep -qx 'go child' "$work/out" || fail "static: status $status: $(cat "$work/err" "$work/out")"
grep -c 'go/static: statically linked' "$work/said" | grep -qx 1 || fail "static: not said once: $(cat "$work/err")"
# What it runs is recorded: the environment goes on.
"$here/counts" "$work/home/trace" >"$work/counts"
grep -qx 'write 1' "$work/counts" || fail "the child of a static program: $(cat "$work/counts")"
record "$work/home/trace" bash -c '"$1"; exit $(($? + 1))' bash "$work/go/static"
[ "$status" = 4 ] || fail "static, from a shell: status $status"
grep -c 'go/static: statically linked' "$work/said" | grep -qx 1 || fail "static, from a shell: not said once: $(cat "$work/err")"
echo "a static Go program: declined, its child recorded"
build 1 cgo cgo.go || { echo "no cgo here: $(tail -n 1 "$work/gosaid")"; exit 0; }
chmod -R a+rX "$work/go"
for options in "" --complete; do
	record "$work/home/trace" "$work/go/cgo"
	[ "$status" = 3 ] && grep -qx 'cgo 1 child' "$work/out" || fail "cgo $options: status $status: $(cat "$work/err" "$work/out")"
	nothing_lost
	"$here/counts" "$work/home/trace" >"$work/counts"
	grep -qx 'getpgid 1' "$work/counts" || fail "cgo $options: libc's call is not there: $(cat "$work/counts")"
done
# Its own calls run on stacks of 2 KiB: complete mode steps aside, and says so.
grep -c 'complete mode is not possible in a Go program' "$work/said" | grep -qx 1 || fail "cgo --complete: not said: $(cat "$work/err")"
echo "a Go program with libc: what libc calls is recorded, complete mode steps aside"
