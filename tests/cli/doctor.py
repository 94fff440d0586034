#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem doctor on made-up machines (--root), as an ordinary user, and on this machine: each lack is told with its remedy."""
import json
import os
import shutil
import socket
import subprocess
import tempfile

BUILD = os.environ["TANDEM_BUILD"]
TANDEM = os.path.join(BUILD, "cli", "tandem")
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print("FAIL:", what)


def doctor(*arguments, program=TANDEM, prefix=(), **changes):
    environment = dict(os.environ, **{k: v for k, v in changes.items() if v is not None})
    for name in (k for k, v in changes.items() if v is None):
        environment.pop(name, None)
    done = subprocess.run([*prefix, program, "doctor", *arguments], capture_output=True, text=True, timeout=60, env=environment)
    return done.returncode, done.stdout, done.stderr


def findings(*arguments, **more):
    status, out, errors = doctor("--json", *arguments, **more)
    found = {}
    for item in json.loads(out)["checks"]:
        found.setdefault(item["check"], []).append(item)
    levels = {item["level"] for items in found.values() for item in items}
    check(levels <= {"ok", "note", "bad"}, f"levels {levels}")
    check(status == (3 if "bad" in levels else 0), f"{arguments}: status {status} with levels {levels}; {errors}")
    for items in found.values():
        for item in items:
            check(item["level"] == "ok" or item["remedy"], f"{arguments}: no remedy: {item}")
    return found


def put(root, path, text=""):
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def whole_machine(root):
    """A host of KVM on which nothing is missing."""
    tracing = "sys/kernel/tracing"
    put(root, f"{tracing}/trace_clock", "[local] global counter uptime perf mono mono_raw boot tai x86-tsc\n")
    os.makedirs(os.path.join(root, tracing, "instances"))
    for event in ("sched/sched_switch", "sched/sched_waking", "irq/irq_handler_entry", "timer/hrtimer_start",
                  "irq_vectors/local_timer_entry", "raw_syscalls/sys_enter", "kvm/kvm_entry", "kvm/kvm_exit"):
        put(root, f"{tracing}/events/{event}/format")
    put(root, "proc/filesystems", "nodev\tsysfs\nnodev\ttracefs\n")
    put(root, "proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n")
    put(root, "sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n")
    put(root, "sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm \n")
    put(root, "dev/kvm")
    put(root, "dev/vhost-vsock")
    put(root, "dev/shm/x")
    put(root, "etc/lttng/sessions/tandem-syscalls.lttng")
    for vcpu in (0, 1):
        vm = f"sys/kernel/debug/kvm/4711-12/vcpu{vcpu}"
        put(root, f"{vm}/tsc-offset", "-123456789\n")
        put(root, f"{vm}/tsc-scaling-ratio", "281474976710656\n")
        put(root, f"{vm}/tsc-scaling-ratio-frac-bits", "48\n")
    put(root, "proc/4711/cmdline", "\0".join(["/usr/bin/qemu-system-x86_64", "-name", "guest=web", "-device",
                                                "vhost-vsock-pci,guest-cid=33", ""]))
    put(root, "proc/4711/comm", "qemu-system-x86\n")
    put(root, "proc/sys/kernel/perf_event_paranoid", "2\n")
    put(root, "proc/sys/kernel/kptr_restrict", "1\n")


def remove(root, path):
    path = os.path.join(root, path)
    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


CLOCKSOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"
# What is done to the machine, the check that must notice, its level, and what it must say or advise.
LACKS = [
    (lambda r: remove(r, "sys/kernel/tracing"), "tracefs", {"note"}, "mount -t tracefs"),
    (lambda r: (remove(r, "sys/kernel/tracing"), put(r, "proc/filesystems", "nodev\tsysfs\n")), "tracefs", {"bad"}, "CONFIG_"),
    (lambda r: (remove(r, "sys/kernel/tracing"), put(r, "sys/kernel/security/lockdown", "none integrity [confidentiality]\n")),
     "tracefs", {"bad"}, "lockdown"),
    (lambda r: remove(r, "sys/kernel/tracing/events/sched/sched_switch"), "events", {"bad"}, "sched_switch"),
    (lambda r: remove(r, "sys/kernel/tracing/events/raw_syscalls"), "events", {"note"}, "raw_syscalls/sys_enter"),
    (lambda r: remove(r, "sys/kernel/tracing/events/kvm"), "kvm-events", {"note"}, "kvm_intel"),
    (lambda r: put(r, "sys/kernel/tracing/trace_clock", "[local] global mono boot\n"), "clocks", {"note"}, "mono_raw"),
    (lambda r: put(r, CLOCKSOURCE, "hpet\n"), "clocksource", {"note"}, "hpet"),
    (lambda r: remove(r, CLOCKSOURCE), "clocksource", {"note"}, "sysfs"),
    (lambda r: put(r, "proc/cpuinfo", "flags\t\t: fpu tsc\n"), "clocksource", {"note"}, "not with -C x86-tsc"),
    (lambda r: put(r, CLOCKSOURCE, "kvm-clock\n"), "clocksource", {"ok"}, "guest of KVM"),
    (lambda r: remove(r, "sys/kernel/debug"), "tsc-offset", {"note"}, "debugfs"),
    (lambda r: remove(r, "sys/kernel/debug/kvm/4711-12"), "tsc-offset", {"note"}, "while a guest runs"),
    (lambda r: remove(r, "dev/kvm"), "kvm", {"note"}, "modprobe"),
    (lambda r: (remove(r, "dev/vhost-vsock"), put(r, "dev/vsock")), "vsock", {"note"}, "vhost_vsock"),
    (lambda r: remove(r, "dev/vhost-vsock"), "vsock", {"note"}, "tcp:"),
    (lambda r: remove(r, "etc/lttng/sessions"), "sessions", {"note"}, "lttng load -i"),
    (lambda r: remove(r, "dev/shm"), "shm", {"note"}, "tmpfs"),
    (lambda r: put(r, "proc/sys/kernel/kptr_restrict", "2\n"), "symbols", {"note"}, "kptr_restrict"),
]


def made_up(work):
    root = os.path.join(work, "whole")
    whole_machine(root)
    whole = findings("--root", root)
    for name in ("tracefs", "events", "kvm-events", "clocks", "clocksource", "kvm", "tsc-offset", "vsock"):
        check(whole.get(name, [{}])[0].get("level") == "ok", f"nothing is missing, but {name}: {whole.get(name)}")
    check("1 VM, 2 vCPUs" in whole["tsc-offset"][0]["text"], whole["tsc-offset"])
    check("web (process 4711, vsock:33)" in whole.get("guests", [{"text": ""}])[0]["text"], whole.get("guests"))
    check("symbols" not in whole and "sessions" not in whole, f"told without need: {sorted(whole)}")

    for number, (change, name, levels, words) in enumerate(LACKS):
        root = os.path.join(work, f"machine{number}")
        whole_machine(root)
        change(root)
        items = findings("--root", root).get(name, [])
        check(len(items) == 1 and items[0]["level"] in levels, f"lack {number}: {name}: {items}")
        check(items and words in items[0]["text"] + (items[0]["remedy"] or ""), f"lack {number}: {words} is not in {items}")

    # Bytes that are no text, and files without an end, are no reason to stop.
    put(root, "sys/kernel/tracing/trace_clock", "[" * 100_000)
    put(root, "proc/cpuinfo", "flags\t" + "x" * 1_000_000)
    put(root, CLOCKSOURCE, "\x01\x02" * 5000)
    put(root, "sys/kernel/debug/kvm/4711-12/vcpu0/tsc-offset", "nonsense")
    findings("--root", root)


def as_ordinary_user(work):
    root = os.path.join(work, "closed")
    whole_machine(root)
    os.chmod(os.path.join(root, "sys/kernel/tracing"), 0o700)
    os.chmod(os.path.join(root, "sys/kernel/debug"), 0o700)
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    found = findings("--root", root, prefix=nobody)
    check(found["tracefs"][0]["level"] == "bad" and "root" in found["tracefs"][0]["remedy"], found["tracefs"])
    check(found["tsc-offset"][0]["level"] == "note" and "root" in found["tsc-offset"][0]["remedy"], found["tsc-offset"])
    check(found["privileges"][0]["level"] == "note", found["privileges"])
    check("perf_event_paranoid" in found["perf"][0]["text"], found.get("perf"))
    os.chmod(os.path.join(root, "sys/kernel/tracing"), 0o755)
    os.chmod(os.path.join(root, "dev/vhost-vsock"), 0o600)
    found = findings("--root", root, prefix=nobody)
    check("can be reached" in found["vsock"][0]["text"] and "group kvm" in found["vsock"][0]["remedy"], found["vsock"])
    os.unlink(os.path.join(root, "dev/vhost-vsock"))
    put(root, "dev/vsock")
    os.chmod(os.path.join(root, "dev/vsock"), 0o600)
    check("by its host" in findings("--root", root, prefix=nobody)["vsock"][0]["text"], "a vsock that one has no rights on")
    # A guest behind a socket that one has no rights on.
    place = os.path.join(root, "closed.sock")
    with socket.socket(socket.AF_UNIX) as closed:
        closed.bind(place)
        closed.listen(1)
        os.chmod(place, 0o600)
        guest = findings("--root", root, "--guest", "web=unix:" + place, prefix=nobody)["guest"][0]
    check("Permission denied" in guest["text"] and "rights" in guest["remedy"], guest)
    check("no instance" in found["tracefs"][0]["text"], found["tracefs"])


def this_machine(work):
    status, out, errors = doctor(BABELTRACE_PLUGIN_PATH=os.path.join(BUILD, "plugin"))
    check(status in (0, 3) and not errors, f"status {status}: {errors}")
    check(all(line[:6] in ("ok    ", "note  ", "bad   ") for line in out.splitlines()), out)
    check(all("; remedy: " in line for line in out.splitlines() if not line.startswith("ok")), out)
    check(("bad " in out) == (status == 3), f"status {status}: {out}")
    _, quiet, _ = doctor("--quiet")
    check(quiet.count("\n") == sum(line.startswith("bad") for line in out.splitlines()), f"--quiet: {quiet}")
    for variable, level in ((os.path.join(BUILD, "plugin"), "ok"), (None, {"ok", "note"})):
        found = findings(BABELTRACE_PLUGIN_PATH=variable)["babeltrace2"][0]
        check(found["level"] in level, f"BABELTRACE_PLUGIN_PATH={variable}: {found}")
        check(found["level"] == "ok" or "BABELTRACE_PLUGIN_PATH=" in found["remedy"], found)
    # Programs that are not there are told by the package that has them.
    found = findings(PATH="/nowhere")
    for name, package in (("lttng", "lttng-tools"), ("trace-cmd", "trace-cmd")):
        check(package in (found[name][0]["remedy"] or ""), f"without programs: {found.get(name)}")
    # A small /dev/shm, as containers have.
    shm = os.path.join(work, "shm")
    os.makedirs(shm)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", shm], capture_output=True).returncode == 0:
        try:
            found = findings(TANDEM_SHM_DIR=shm)["shm"][0]
            check(found["level"] == "note" and "tandem-syscalls-small" in found["remedy"], found)
        finally:
            subprocess.run(["umount", shm], check=True)


def misuse():
    for arguments in (["word"], ["--guest", "x=nonsense:1"], ["-C", "sundial"], ["--no-such"]):
        status, _, errors = doctor(*arguments)
        check(status == 2 and errors, f"{arguments}: status {status}, {errors}")
    status, _, errors = doctor("--secret-file", "/no/such")
    check(status == 1 and "/no/such" in errors, f"status {status}, {errors}")
    with open("/dev/full", "w") as full:
        done = subprocess.run([TANDEM, "doctor"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    check(done.returncode == 1, f"output that cannot be written: {done.returncode}")


with tempfile.TemporaryDirectory(prefix="tandem-doctor-") as folder:
    os.chmod(folder, 0o755)
    made_up(folder)
    if os.geteuid() == 0:
        as_ordinary_user(folder)
    this_machine(folder)
    misuse()
raise SystemExit(failures > 0)
