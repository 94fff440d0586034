# SPDX-License-Identifier: MIT
# For tests that need a real guest: builds it once a build tree, starts it, and sees to it that it ends.
rig=$TANDEM_SOURCE/tests/rig
cache=$TANDEM_BUILD/rig
work=$(mktemp -d)
guests=()
rig_end() {
	[ ${#guests[@]} -eq 0 ] || "$rig/run-guest" stop "${guests[@]}"
	rm -rf "$work"
}
trap rig_end EXIT
die() { echo "$*" >&2; exit 1; }

for tool in qemu-system-x86_64 busybox cpio trace-cmd; do
	command -v "$tool" >/dev/null || { echo "SKIP: $tool is not installed"; exit 77; }
done

# make_guest NAME OPTION...: an initramfs of its own, the kernel shared.
make_guest() {
	local name=$1
	shift
	mkdir -p "$cache"
	"$rig/make-guest" -o "$cache" --name "$name" "$@" >"$work/make.log" 2>&1 || {
		cat "$work/make.log"
		grep -q 'cannot download' "$work/make.log" && { echo "SKIP: the guest's kernel cannot be downloaded"; exit 77; }
		exit 1
	}
}

# start_guest NAME OPTION...: sets ctl, and fwd[GUESTPORT].
declare -A fwd
start_guest() {
	local name=$1 key a b
	shift
	"$rig/run-guest" start -d "$cache" --initrd "$name" --run "$work" --timeout 180 "$@" >"$work/state" ||
		die "the guest did not start"
	while read -r key a b; do
		case $key in
		pid) guests+=("$a") ;;
		ctl) ctl=$a ;;
		fwd) fwd[$b]=$a ;;
		boot) echo "booted in $a s" ;;
		esac
	done <"$work/state"
}

in_guest() { "$rig/run-guest" exec "$ctl" "$@"; }
