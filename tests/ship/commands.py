#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every command in README, docs/, man pages and --help works as it stands there.

Each document has a folder of its own with traces, programs and a secret under the names that documents use, in a network of its
own where 10.0.0.5 is a guest that answers. What needs another machine is marked in the document (see documents.py), with
the test that does it or the reason why none does; both are printed.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import documents

BUILD, SOURCE = os.environ["TANDEM_BUILD"], os.environ["TANDEM_SOURCE"]
DATA = os.path.join(SOURCE, "tests/data")
TANDEM = os.path.join(BUILD, "cli/tandem")
LIMIT_S = 90
# What a document may say that cannot be here: an installation's file, a guest behind vsock (an agent that needs no secret).
STANDS_FOR = {"/etc/tandem/secret": "./secret", "vsock:3": "unix:guest.sock"}
OUTPUTS = ("out", "ctf", "merged", "trace", "web.svg")


def fixtures(folder):
    """Every name that documents use for an input."""
    for name in ("kvm-tsc.dat", "host.dat", "trace.dat", "A"):
        shutil.copy(f"{DATA}/kvm/kvm-tsc.dat", f"{folder}/{name}")
    for name in ("kvm-tsc-l2.dat", "guest.dat", "trace-guest.dat", "trace-web.dat", "web.dat", "B"):
        shutil.copy(f"{DATA}/kvm/kvm-tsc-l2.dat", f"{folder}/{name}")
    for name, part in (("lttng-host", "host"), ("lttng-web1", "guest"), ("lttng-guest", "guest"), ("host", "host"), ("guest", "guest")):
        shutil.copytree(f"{DATA}/lttng-kernel/pair1/{part}", f"{folder}/{name}")
    log = next(f"{DATA}/exchanges/{name}" for name in sorted(os.listdir(f"{DATA}/exchanges")) if name.endswith(".exchanges"))
    for name in ("web", "guest"):
        shutil.copy(log, f"{folder}/{name}.exchanges")
    for name in ("web1", "web", "guest", "lttng-guest"):
        with open(f"{folder}/{name}.corrections", "w") as file:
            file.write("tandem-corrections 1\n"
                       # Of another clock than the files here: taken where it is named, not because it lies there.
                       "host - clock mono unit-hz 1000000000\nguest - clock mono unit-hz 1000000000\n"
                       "segment start 0 2\nk 0 0 10 10\nk 4000000000 4000000000 10 10\nend\n")
    perf = sorted(name for name in os.listdir(f"{DATA}/perf") if name.endswith(".data"))[0]
    for name in ("perf.data", "host.data", "web.data"):
        shutil.copy(f"{DATA}/perf/{perf}", f"{folder}/{name}")
    subprocess.run([TANDEM, "convert", "-q", "-o", f"{folder}/out", f"{folder}/host.dat", f"web={folder}/web.dat"], check=True, timeout=60)
    for name in ("secret", "s", "key"):
        with open(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("a secret of the documents\n")
    for name in ("job", "benchmark", "program", "lttng-session.sh"):
        with open(f"{folder}/{name}", "w") as file:
            file.write("#!/bin/sh\nls / >/dev/null\nsleep 0.3\n")
        os.chmod(f"{folder}/{name}", 0o755)
    shutil.copy(f"{folder}/lttng-session.sh", f"{folder}/tools/lttng-session.sh")
    with open(f"{folder}/Makefile", "w") as file:
        file.write("all:\n\t@ls / >/dev/null\n")
    # What a clone has.
    for name in ("examples", "scripts", "packaging", "tests"):
        os.symlink(f"{SOURCE}/{name}", f"{folder}/{name}")
    os.makedirs(f"{folder}/build")
    os.symlink(BUILD, f"{folder}/build/main")


def tools(folder):
    """Programs of this build, and stand-ins for those that would wait for a user."""
    os.makedirs(folder)
    for name, path in (("tandem", TANDEM), ("tandem-agent", f"{BUILD}/agent/tandem-agent")):
        os.symlink(path, f"{folder}/{name}")
    for name, text in (("sudo", 'exec "$@"'), ("less", "exec cat >/dev/null")):
        with open(f"{folder}/{name}", "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(f"{folder}/{name}", 0o755)


class Guest:
    """The agent at 10.0.0.5 that documents speak of."""

    def __init__(self, folder):
        self.folder, self.children = folder, []

    def start(self):
        for options in (["-l", "tcp:10.0.0.5", "-s", f"{self.folder}/secret", "--allow", "*"],
                        ["-l", "tcp:10.0.0.6", "-s", f"{self.folder}/secret", "--allow", "*"],
                        ["-l", f"unix:{self.folder}/guest.sock"]):
            self.children.append(subprocess.Popen([f"{BUILD}/agent/tandem-agent", "-q", *options], stderr=subprocess.DEVNULL))

    def stop(self):
        for child in self.children:
            child.terminate()
            child.wait(20)
        self.children = []


def tests():
    """Names of all tests."""
    names = set()
    for folder, _, there in os.walk(os.path.join(SOURCE, "tests")):
        if "CMakeLists.txt" in there:
            text = open(os.path.join(folder, "CMakeLists.txt")).read()
            names |= set(re.findall(r"(?:_test\(|NAME )([\w.]+)", text))
    return names


def run_service(command, cwd, environment):
    """What runs until it is stopped: still there after some time, and ends well."""
    child = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(2)
    died = child.poll() is not None
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=20)
    return 1 if died or child.returncode != 0 else 0, out


class Runner:
    def __init__(self, work):
        self.work, self.known, self.faults, self.count = work, tests(), [], 0
        self.done, self.elsewhere, self.left = 0, [], []
        self.guest = None

    def fault(self, block, text):
        self.faults.append(f"{block}: {text}")
        print(f"FAIL: {block}: {text}\n    {block.script}", flush=True)

    def run(self, block, folder):
        how = block.how
        test, reason = re.fullmatch(r"test ([\w.]+)", how), re.fullmatch(r"no, (.+)", how)
        if test:
            if test[1] not in self.known and not any(name.startswith(test[1] + ".") for name in self.known):
                self.fault(block, f"there is no test \"{test[1]}\"")
            self.elsewhere.append((block, test[1]))
            return
        if reason:
            self.left.append((block, reason[1]))
            return
        status = re.fullmatch(r"status (\d+)", how)
        pairs = re.fullmatch(r"with (\S+=\S+(?: \S+=\S+)*)", how)
        if how and not status and not pairs:
            self.fault(block, f"\"{how}\" says nothing about how it is run")
            return
        script = block.script
        for old, new in [*(pair.split("=", 1) for pair in (pairs[1].split(" ") if pairs else [])), *STANDS_FOR.items()]:
            script = script.replace(old, new)
        lacks = [word for word in re.findall(r"(?:^|[|&;] *)([a-z][\w.-]+)", re.sub(r"'[^']*'|\"[^\"]*\"", "", script)) if not shutil.which(word, path=self.path)
                 and word not in ("export", "cd", "for", "umask")]
        if lacks:
            self.left.append((block, f"{lacks[0]} is not installed here"))
            return
        environment = dict(os.environ, PATH=self.path, BABELTRACE_PLUGIN_PATH=f"{BUILD}/plugin", HOME=folder, LC_ALL="C")
        # As a reader would find them: output of an earlier command is not in the way of the next one.
        for name in OUTPUTS:
            if re.search(rf"(-o|-w|--output|--plot) {name}\b", script):
                shutil.rmtree(f"{folder}/{name}", ignore_errors=True)
        lasts = re.match(r"(sudo )?tandem (sync|record) ", script) and " -- " not in script and "--time" not in script and \
            "--finish" not in script
        if lasts:
            code, out = run_service(script, folder, environment)
        elif re.match(r"(sudo )?tandem-agent ", script):
            self.guest.stop()
            code, out = run_service(script, folder, environment)
            self.guest.start()
        else:
            # What "head" does not read any more ends by SIGPIPE, as it should.
            options = "-e" if "| head" in script else "-eo pipefail"
            child = subprocess.Popen(["bash", *options.split(), "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
            try:
                out, _ = child.communicate(timeout=LIMIT_S)
                code = child.returncode
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                out, _ = child.communicate()
                code = f"none after {LIMIT_S} s"
        # "tandem doctor" says with 3 that this machine lacks something, which is no fault of the document.
        allowed = {int(status[1])} if status else {0, 3} if script.strip().split("\n")[-1].startswith("tandem doctor") else {0}
        if code not in allowed:
            self.fault(block, f"exit status {code}\n{out[-1500:]}")
        for line in block.printed:
            if line.strip() and "..." not in line and line.rstrip() not in [said.rstrip() for said in out.split("\n")]:
                self.fault(block, f"it does not print: {line}")
        self.done += 1

    def document(self, blocks):
        """All blocks of one document, in one folder, one after the other."""
        if not blocks:
            return
        self.count += 1
        folder = os.path.join(self.work, str(self.count))
        tools(os.path.join(folder, "tools"))
        fixtures(folder)
        self.path = f"{folder}/tools:" + os.environ["PATH"]
        self.guest = Guest(folder)
        self.guest.start()
        try:
            for block in blocks:
                self.run(block, folder)
        finally:
            self.guest.stop()
            shutil.rmtree(folder)


def main():
    # A network of its own, with the address that documents use.
    if os.geteuid() != 0 or subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        print("SKIP: a network of its own takes root")
        return 77
    if "--inside" not in sys.argv:
        return subprocess.run(["unshare", "-n", sys.executable, os.path.realpath(__file__), "--inside", *sys.argv[1:]]).returncode
    subprocess.run("ip link set lo up && ip addr add 10.0.0.5/32 dev lo && ip addr add 10.0.0.6/32 dev lo", shell=True, check=True)
    only = [argument for argument in sys.argv[1:] if argument != "--inside"]

    markdown, pages = documents.files(SOURCE)
    with tempfile.TemporaryDirectory(prefix="tandem-documents-") as work:
        runner = Runner(work)
        web = subprocess.Popen([sys.executable, "-m", "http.server", "80"], cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for name in markdown:
                blocks, _ = documents.of_markdown(os.path.join(SOURCE, name), name)
                if os.path.basename(name) == "README.md":
                    blocks += documents.of_table(os.path.join(SOURCE, name), name)
                if not only or name in only:
                    runner.document(blocks)
            for name in pages:
                blocks, texts = documents.of_man(os.path.join(SOURCE, name), name)
                if only and name not in only:
                    continue
                runner.document(blocks)
                for text in texts:
                    example = os.path.join(work, "example")
                    with open(example, "w") as file:
                        file.write(text)
                    done = subprocess.run([TANDEM, "info", example], capture_output=True, text=True, timeout=20)
                    if done.returncode != 0:
                        runner.faults.append(f"{name}: its example is not what it describes: {done.stdout}{done.stderr}")
                        print("FAIL:", runner.faults[-1])
            listed = subprocess.run([TANDEM, "--help"], capture_output=True, text=True, timeout=20).stdout
            commands = re.findall(r"^  ([a-z][a-z-]+) ", listed.split("Options:")[0], re.M)
            for command in ["", *commands]:
                if not only or f"--help {command}" in only:
                    runner.document(list(documents.of_help(TANDEM, command)))
        finally:
            web.terminate()
            web.wait(10)
    for block, test in runner.elsewhere:
        print(f"by {test}: {block}")
    for block, reason in runner.left:
        print(f"not run, {reason}: {block}")
    print(f"{runner.done} run, {len(runner.elsewhere)} by other tests, {len(runner.left)} not run, {len(runner.faults)} faults")
    if not only and runner.done < 25:
        print("FAIL: hardly a command was found: are documents.py and the documents of one mind?")
        return 1
    return 1 if runner.faults else 0


sys.exit(main())
