#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every field of every sample, as perf itself reads it, against the source component and against the converted CTF.

The files are the recorded ones of tests/data/perf, and one that is recorded here with sched, raw_syscalls, irq, net,
block, task and timer events, whatever of it this machine has.

usage: fields.py BUILD-FOLDER
"""
import glob
import lzma
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import perf_oracle  # noqa: E402

BUILD = sys.argv[1]
DATA = os.path.join(HERE, "..", "data", "perf")
TRACING = "/sys/kernel/tracing"
WANTED = ["sched:sched_switch", "sched:sched_wakeup", "sched:sched_process_fork", "sched:sched_process_exec",
          "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "irq:softirq_entry", "irq:softirq_exit",
          "irq:irq_handler_entry", "net:net_dev_queue", "net:netif_receive_skb", "net:net_dev_xmit",
          "block:block_rq_issue", "block:block_rq_complete", "block:block_bio_queue", "task:task_newtask",
          "timer:hrtimer_start", "timer:hrtimer_expire_entry", "skb:consume_skb"]
CONTEXT_MARKS = 2 ** 64 - 4095
KNOWN_MARKS = {2 ** 64 - mark for mark in (32, 128, 512, 2048, 2176, 2560)}
TALK = """
import socket, threading
with socket.create_server(("127.0.0.1", 0)) as server:
    def answer():
        peer, _ = server.accept()
        with peer:
            while peer.recv(4096):
                peer.sendall(b"answer")
    thread = threading.Thread(target=answer)
    thread.start()
    with socket.create_connection(server.getsockname()) as client:
        for _ in range(20):
            client.sendall(b"question")
            client.recv(4096)
    thread.join()
"""
failed = 0
os.environ["BABELTRACE_PLUGIN_PATH"] = os.path.join(BUILD, "plugin")


def check(what, wanted, got):
    global failed
    if wanted == got:
        print("ok - " + what)
    else:
        failed += 1
        print("NOT OK - %s: wanted %.700r, got %.700r" % (what, wanted, got))


READER = '''
import json, sys
import bt2

def plain(value):
    if isinstance(value, bt2._StringFieldConst):
        return str(value)
    if isinstance(value, (bt2._ArrayFieldConst,)):
        return [plain(inner) for inner in value]
    if isinstance(value, bt2._StructureFieldConst):
        return {name: plain(inner) for name, inner in value.items()}
    return int(value)

kind, path = sys.argv[1:3]
if kind == "perf":
    source = bt2.ComponentSpec.from_named_plugin_and_component_class(
        "tandem", "perf", {"inputs": [path], "names": "ftrace"})
else:
    source = bt2.ComponentSpec.from_named_plugin_and_component_class("ctf", "fs", {"inputs": [path]})
for message in bt2.TraceCollectionMessageIterator(source):
    if type(message) is bt2._EventMessageConst:
        event = message.event
        print(json.dumps({
            "name": event.name, "time": message.default_clock_snapshot.ns_from_origin,
            "cpu": int(event.packet.context_field["cpu_id"]), "context": plain(event.common_context_field),
            "fields": plain(event.payload_field) if event.payload_field is not None else {}}))
'''


def events(kind, path):
    import json
    done = subprocess.run([sys.executable, "-c", READER, kind, path], stdout=subprocess.PIPE, timeout=280, check=True)
    return [json.loads(line) for line in done.stdout.decode("utf-8", "surrogateescape").splitlines()]


def same_value(theirs, ours):
    """perf's Python gives arrays as their bytes, texts cut at NUL, integers as they are."""
    if isinstance(ours, list):
        if not (isinstance(theirs, str) and theirs.startswith("hex:")):
            return False
        data = bytes.fromhex(theirs[4:])
        size = len(data) // len(ours) if ours else 0
        # A trailing array may be shown with the kernel's padding behind it.
        return not ours or [int.from_bytes(data[i * size:(i + 1) * size], "little") for i in range(len(ours))] == \
            [value % (1 << 8 * size) for value in ours]
    if isinstance(ours, str):
        if isinstance(theirs, str) and theirs.startswith("hex:"):
            theirs = bytes.fromhex(theirs[4:]).split(b"\0")[0].decode("utf-8", "replace")
        return theirs == ours
    # A negative int of four bytes comes out of perf's Python as an unsigned one.
    return isinstance(theirs, int) and (theirs % (1 << 64) == ours % (1 << 64) or
                                        (ours < 0 and theirs == ours % (1 << 32)))


def difference(theirs, ours):
    name = theirs["event"].split(":", 1)[1]
    if (name, theirs["cpu"]) != (ours["name"], ours["cpu"]):
        return "event"
    context = ours["context"]
    tid = theirs["tid"]
    if tid != 2 ** 32 - 1:  # perf does not know a task that is being released
        if (tid, theirs["pid"]) != (context["tid"], context["pid"]):
            return "tid"
        if not theirs["comm"].startswith(":") and theirs["comm"][:15] != context["procname"]:
            return "procname"
    chain = [ip for ip in context.get("callchain", []) if ip < CONTEXT_MARKS]
    strange = [ip for ip in context.get("callchain", []) if ip >= CONTEXT_MARKS and ip not in KNOWN_MARKS]
    if theirs["chain"] != chain and not strange:  # at a mark that it does not know perf drops the whole chain
        return "callchain"
    for field, value in theirs["fields"].items():
        if field not in ours["fields"]:
            return "no field " + field
        if not same_value(value, ours["fields"][field]):
            return "field " + field
    more = [field for field in ours["fields"] if field not in theirs["fields"] and not field.startswith("_")]
    return "more fields " + ",".join(more) if more else None


def compare(path, name):
    theirs = perf_oracle.by_cpu(perf_oracle.samples(path))
    out = tempfile.mkdtemp(prefix="tandem-fields-")
    subprocess.run([os.path.join(BUILD, "cli", "tandem"), "convert", "--quiet", "--no-synthetic", "--names", "ftrace",
                    "-o", os.path.join(out, "ctf"), path], check=True, timeout=120)
    seen = {}
    for kind, where in (("perf", path), ("ctf", os.path.join(out, "ctf", "host"))):
        ours = perf_oracle.by_cpu(events(kind, where))
        check("%s, %s: samples on each CPU" % (name, kind), {cpu: len(found) for cpu, found in theirs.items()},
              {cpu: len(found) for cpu, found in ours.items()})
        offset = {found[0]["time"] - theirs[cpu][0]["time"] for cpu, found in ours.items()}
        check("%s, %s: one offset from perf's times to those shown" % (name, kind), 1, len(offset))
        wrong = []
        for cpu, found in ours.items():
            for one, other in zip(theirs.get(cpu, []), found):
                why = difference(one, other)
                if other["time"] - one["time"] not in offset:
                    why = "time"
                if why:
                    wrong.append((why, one, other))
                seen.setdefault(one["event"], 0)
                seen[one["event"]] += 1
        check("%s, %s: every field of every sample as perf reads it" % (name, kind), [], wrong[:1])
    shutil.rmtree(out)
    return seen


def record(path):
    """Records this machine. @return The events asked for, or a reason why that does not work here."""
    if not os.path.isdir(TRACING + "/events"):
        subprocess.run(["mount", "-t", "tracefs", "tracefs", TRACING], stderr=subprocess.DEVNULL, check=False)
    there = [event for event in WANTED if os.path.isdir("%s/events/%s" % (TRACING, event.replace(":", "/")))]
    if not there:
        return [], "no tracepoints to be seen here"
    scratch = os.path.join(os.path.dirname(path), "scratch")
    talk = os.path.join(os.path.dirname(path), "talk.py")
    with open(talk, "w", encoding="ascii") as out:
        out.write(TALK)
    command = ["perf", "record", "-q", "-g", "-m", "4M", "-k", "mono", "-o", path]
    for event in there:
        command += ["-e", event]
    recorder = subprocess.run(command + ["--", "sh", "-c", "dd if=/dev/zero of=%s bs=64k count=8 conv=fsync; "
                                         "for i in 1 2 3; do true | cat; sleep 0.05; done; /usr/bin/python3 %s"
                                         % (scratch, talk)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100, check=False)
    said = recorder.stdout.decode("utf-8", "replace")
    return there, None if recorder.returncode == 0 and os.path.exists(path) else said


def main():
    if not shutil.which("perf"):
        print("SKIP: perf is not installed")
        sys.exit(77)
    work = tempfile.mkdtemp(prefix="tandem-fields-")
    for source in sorted(glob.glob(os.path.join(DATA, "*.data*"))):
        name = os.path.basename(source).replace(".xz", "")
        path = os.path.join(work, name)
        if source.endswith(".xz"):
            with lzma.open(source) as packed, open(path, "wb") as out:
                shutil.copyfileobj(packed, out)
        else:
            shutil.copy(source, path)
        compare(path, name)
    fresh = os.path.join(work, "fresh.data")
    there, why_not = record(fresh)
    if why_not:
        print("SKIP: nothing recorded here: " + why_not.strip()[-200:])
    else:
        seen = compare(fresh, "recorded now")
        print("compared: " + ", ".join("%s %d" % item for item in sorted(seen.items())))
        check("recorded now: the main kinds of events are among them", [],
              [event for event in there if event.startswith(("sched:sched_switch", "raw_syscalls:")) and
               event not in seen])
    shutil.rmtree(work)
    sys.exit(1 if failed else 77 if why_not else 0)


main()
