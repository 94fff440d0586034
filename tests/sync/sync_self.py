#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A machine synchronised with itself: the bound holds the truth over every transport, clock and kind of stamp."""
import os
import subprocess
import sys
import tempfile
import time

import tandem_wire as t


def check(name, address, out, *options, want=0):
    directory = os.path.join(out, name)
    status, told, errors, _ = t.sync(directory, "--guest", f"web={address}", *options, "--", "sleep", "2.2")
    assert status == want, f"{name}: status {status}\n{told}{errors}"
    corrections = t.Corrections(os.path.join(directory, "web.corrections"))
    corrections.check_identity()
    log = open(os.path.join(directory, "web.exchanges")).read().splitlines()
    assert log[0] == "tandem-exchanges 1" and log[-1] == "end"
    count = sum(line.startswith("x ") for line in log)
    assert count >= 64, f"{name}: {count} exchanges"
    t.say(f"{name}: " + told.splitlines()[0])
    # A pure function of the log: the estimator gives the same bytes again.
    again = os.path.join(directory, "again.corrections")
    subprocess.run([t.TANDEM, "estimate", os.path.join(directory, "web.exchanges"), again],
                   check=True, stdout=subprocess.DEVNULL)
    assert open(again).read() == "\n".join(corrections.lines) + "\n" or "cpu " in "\n".join(corrections.lines)
    return log, told


def two_namespaces(out):
    """TCP between two network namespaces of the test's own, joined by a veth pair."""
    tag = f"tdm{os.getpid()}"
    ip = ["ip"]
    if subprocess.run([*ip, "netns", "add", tag], capture_output=True).returncode != 0:
        t.say("namespaces: not allowed here")
        return False
    try:
        for command in (f"link add {tag}a type veth peer name {tag}b", f"link set {tag}b netns {tag}",
                        f"addr add 10.213.7.1/30 dev {tag}a", f"link set {tag}a up",
                        f"-n {tag} addr add 10.213.7.2/30 dev {tag}b", f"-n {tag} link set {tag}b up",
                        f"-n {tag} link set lo up"):
            subprocess.run([*ip, *command.split()], check=True)
        agent = t.Agent("--listen", "tcp:10.213.7.2:8991", secret=b"between two spaces",
                        prefix=["ip", "netns", "exec", tag])
        try:
            key = os.path.join(agent.dir.name, "secret")
            check("namespaces", "tcp:10.213.7.2:8991", out, "--secret-file", key)
            log, _ = check("namespaces-kernel", "tcp:10.213.7.2:8991", out, "--secret-file", key,
                           "--stamps", "kernel")
            assert any(line.startswith("t ") for line in log), "no kernel stamps between the namespaces"
        finally:
            assert agent.stop() == 0
    finally:
        subprocess.run([*ip, "netns", "del", tag])
        subprocess.run([*ip, "link", "del", f"{tag}a"], capture_output=True)
    return True


def main():
    with tempfile.TemporaryDirectory(prefix="tandem-self-") as out:
        agent = t.Agent()
        unix = "unix:" + agent.path
        check("unix", unix, out)
        check("tcp", agent.tcp(), out)
        check("raw", agent.tcp(), out, "-C", "mono_raw")
        check("boot", unix, out, "-C", "boot")
        if os.uname().machine == "x86_64":
            check("tsc", unix, out, "-C", "x86-tsc", "--no-kvm")
        if os.path.exists("/sys/kernel/tracing/trace_marker"):
            for clock in ("local", "global", "perf", "uptime"):
                log, told = check(clock, unix, out, "-C", clock)
                assert sum(line.startswith("l g ") for line in log) >= 3, f"{clock}: the agent wrote no markers"
                assert sum(line.startswith("l h ") for line in log) >= 3, f"{clock}: no markers here"
                assert "through raw clocks" in told, told
            # Counts ticks of 10 ms: the relation is in them, and known to some of them.
            corrections = t.Corrections(os.path.join(out, "uptime", "web.corrections"))
            hz = os.sysconf("SC_CLK_TCK")
            assert any(line.startswith("host ") and line.endswith(f" clock uptime unit-hz {hz}") for line in corrections.lines)
            assert all(0 < minus < 20 and 0 < plus < 20 for _, _, minus, plus in corrections.knots()), corrections.lines
            with open("/proc/uptime") as f:
                now = float(f.read().split()[0]) * hz
            assert all(now - 100 * hz < knot[0] <= now + 300 for knot in corrections.knots()), (now, corrections.knots())
            assert not [i for i in os.listdir("/sys/kernel/tracing/instances") if i.endswith("-clock")], \
                "an instance for markers was left behind"
        log, _ = check("kernel", agent.tcp(), out, "--stamps", "kernel")
        stamped = [list(map(int, line.split()[2:6])) for line in log if line.startswith("t ")]
        assert len(stamped) > 50, "no kernel stamps"
        assert all(k1 <= k2 <= k3 <= k4 for k1, k2, k3, k4 in stamped)
        # Where they give nothing they are not taken, and that is said.
        _, told = check("unix-kernel", unix, out, "--stamps", "kernel", want=3)

        # Two guests at once, one of them twice as a name.
        status, told, errors, _ = t.sync(os.path.join(out, "two"), "--guest", f"a={unix}", "--guest",
                                         f"b={agent.tcp()}", "--", "sleep", "1")
        assert status == 0, errors
        for name in "ab":
            t.Corrections(os.path.join(out, "two", f"{name}.corrections")).check_identity()

        # What is there is not overwritten unasked.
        status, _, errors, _ = t.sync(os.path.join(out, "two"), "--guest", f"a={unix}", "--", "true")
        assert status == 1 and "--force" in errors
        # What no run could ever do is a matter of usage.
        for wrong in (["--guest", "a=foo:1"], ["--guest", "a=tcp:127.0.0.1:99999"],
                      ["--guest", f"a={unix}", "-C", "counter"]):
            status, _, errors, _ = t.sync(os.path.join(out, "usage"), *wrong, "--", "true")
            assert status == 2 and "--help" in errors, (wrong, status, errors)
            assert not os.path.exists(os.path.join(out, "usage")), "a directory in spite of wrong usage"
        # A target that is missed is said by the exit status.
        status, _, errors, _ = t.sync(os.path.join(out, "target"), "--guest", f"a={unix}", "--target-bound", "1",
                                      "--", "sleep", "1")
        assert status == 3 and "misses the target" in errors, errors

        # Ctrl-C completes what was begun.
        process = subprocess.Popen([t.TANDEM, "sync", "-o", os.path.join(out, "ctrl-c"), "--guest", f"a={unix}"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 20
        while not os.path.exists(os.path.join(out, "ctrl-c", "a.corrections")) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1.5)
        process.send_signal(2)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
        t.Corrections(os.path.join(out, "ctrl-c", "a.corrections")).check_identity()
        assert not [n for n in os.listdir(os.path.join(out, "ctrl-c")) if n.endswith(".part")]
        assert agent.stop() == 0
        if not two_namespaces(out):
            sys.exit(77)


main()
