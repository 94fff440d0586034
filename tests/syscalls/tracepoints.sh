#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The kernel's own raw_syscalls tracepoints on the same run: the same calls in the same order for each thread, and the stamps
# of both, on the same clock, within a stated distance.
. "${TANDEM_SOURCE:?}/tests/syscalls/lib.sh" || exit 1
[ "$(id -u)" = 0 ] || { echo "SKIP: the kernel's tracepoints need root"; exit 77; }
tracing=/sys/kernel/tracing
[ -e $tracing/instances ] || mount -t tracefs tracefs $tracing 2>/dev/null || { echo "SKIP: no tracefs"; exit 77; }
instance=$tracing/instances/tandem-test-$$
mkdir "$instance" 2>/dev/null || { echo "SKIP: no tracefs instance"; exit 77; }
cleanup="echo 0 >$instance/tracing_on; echo 0 >$instance/events/enable; sleep 0.1; rmdir $instance"
echo mono >"$instance/trace_clock"
echo 8192 >"$instance/buffer_size_kb"
echo 1 >"$instance/events/raw_syscalls/enable"
record "$work/home/trace" "$work/workload" threads 2
echo 0 >"$instance/tracing_on"
cat "$instance/trace" >"$work/kernel"
[ "$status" = 0 ] || fail "status $status: $(cat "$work/err")"
nothing_lost
/usr/bin/python3 - "$work/home/trace" "$work/kernel" <<'EOF' || fail "the two do not agree"
import collections, re, sys, bt2
ours, stamps = collections.defaultdict(list), collections.defaultdict(list)
names = {}
for line in open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", encoding="ascii"):
    match = re.match(r"#define __NR_(\w+)\s+(\d+)", line)
    if match:
        names[match.group(1)] = int(match.group(2))
for old, new in (("newstat", "stat"), ("newfstat", "fstat"), ("newlstat", "lstat"), ("newuname", "uname"), ("sendfile64", "sendfile")):
    names[old] = names[new]
for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(message) is not bt2._EventMessageConst:
        continue
    match = re.match(r"tandem:syscall_(entry|exit)_(.*)", message.event.name)
    if not match:
        continue
    name = match.group(2)
    nr = int(message.event.payload_field["id"]) if name == "unknown" else names[name]
    tid = int(message.event.common_context_field["vtid"])
    ours[tid].append((match.group(1), nr))
    stamps[tid].append(message.default_clock_snapshot.value)
kernel, times = collections.defaultdict(list), collections.defaultdict(list)
for line in open(sys.argv[2], encoding="utf-8", errors="replace"):
    match = re.match(r".*-(\d+)\s+\[\d+\].*?\s(\d+)\.(\d+): sys_(enter|exit): NR (-?\d+)", line)
    if match and int(match.group(1)) in ours:
        tid = int(match.group(1))
        kernel[tid].append(("entry" if match.group(4) == "enter" else "exit", int(match.group(5))))
        times[tid].append(int(match.group(2)) * 10**9 + int(match.group(3)) * 1000)
bad, distances = 0, []
for tid, sequence in ours.items():
    # The kernel's sequence has more: the loader's calls before ours begin and lttng-ust's own in between. A thread of the
    # program has none of lttng-ust's, so there ours must be the kernel's tail; a child's own clone exit is the kernel's only.
    theirs, when = kernel[tid], times[tid]
    at, picked = 0, []
    for step in sequence:
        while at < len(theirs) and theirs[at] != step:
            at += 1
        if at == len(theirs):
            print(f"thread {tid}: {step} is not in the kernel's sequence at its place")
            bad += 1
            break
        picked.append(at)
        at += 1
    if tid != min(ours) and len(picked) == len(sequence):
        extra = [theirs[i] for i in range(picked[0], picked[-1]) if i not in set(picked)]
        # lttng-ust registers and forgets a thread with signals blocked: its own calls, which we must not have.
        extra = [step for step in extra if step[1] != names["rt_sigprocmask"]]
        if extra:
            print(f"thread {tid}: calls that we do not have: {extra[:5]} of {len(extra)}")
            bad += 1
    replayed = True
    for index, i in enumerate(picked):
        late = stamps[tid][index] - when[i]
        # Calls of other objects' constructors, before LTTng knows the process: kept, recorded a little later.
        replayed = replayed and late > 2000
        if replayed:
            continue
        # An entry is stamped before the kernel's, an exit after it: microseconds, unless somebody else ran in between.
        distances.append(when[i] - stamps[tid][index] if sequence[index][0] == "entry" else stamps[tid][index] - when[i])
distances.sort()
median, high = distances[len(distances) // 2], distances[len(distances) * 99 // 100]
early = sum(1 for d in distances if d < -2000)
print(f"{len(distances)} stamps of {len(ours)} threads: median {median} ns, p99 {high} ns from the kernel's, {early} out of order")
# The text of tracefs has microseconds; entry before, exit after, within 20 us in the middle.
sys.exit(1 if bad or early or not 0 <= median + 1000 <= 21000 or len(ours) < 17 else 0)
EOF
