#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Names and ids that no kernel gives: babeltrace2 ends a program that hands it a name twice, so each comes once, in the graph
and in converted CTF; and what is left out is counted for the id that it has."""
import os
import re
import struct
import sys
import tempfile

from graph import BUILD, check, finish, run

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "support"))
from tracedat_maker import Maker

TANDEM = os.path.join(BUILD, "cli", "tandem")
FIELDS = [("u32 a", 8, 4, 0)]
BODY = struct.pack("<I", 1)


def shown(directory, maker, *options):
    """The last line of the trace as the graph has it, and as its CTF has it."""
    path = os.path.join(directory, "made.dat")
    maker.write(path)
    graph = run("babeltrace2", "--plugin-path=" + os.path.join(BUILD, "plugin"), "run", "--component=s:source.tandem.tracedat",
                '--params=inputs=["%s"]%s' % (path, "".join(options)), "--component=m:filter.utils.muxer",
                "--component=k:sink.text.pretty", "--connect=s:m", "--connect=m:k")
    check(graph.returncode == 0, f"the graph ends with {graph.returncode}: {graph.stderr[-300:]}")
    done = run(TANDEM, "convert", "--force", "-o", os.path.join(directory, "ctf"), path)
    check(done.returncode in (0, 3), f"convert ends with {done.returncode}: {done.stderr[-300:]}")
    ctf = run("babeltrace2", os.path.join(directory, "ctf", "host"))
    check(ctf.returncode == 0, f"its CTF is not read: {ctf.stderr[-300:]}")
    return graph, ctf.stdout.splitlines()[-1] if ctf.stdout else ""


with tempfile.TemporaryDirectory() as work:
    maker = Maker()
    maker.format("odd", "odd", 300, FIELDS, common=[
        ("unsigned short common_type", 0, 2, 0), ("int common_pid", 4, 4, 1), ("unsigned char tid", 2, 1, 0),
        ("unsigned char common-x", 3, 1, 0)])
    maker.add_cpu(0, [(1000, maker.record(300, 7, BODY, flags=5, preempt=6))])
    graph, ctf = shown(work, maker)
    for line in (graph.stdout, ctf):
        check("{ tid = 7, procname = \"<...>\", common_type = 300, tid_2 = 5, common_x = 6 }, { a = 1 }" in line,
              f"common fields that clash with the context: {line}")

    maker, name = Maker(), "_" * 250
    maker.format("odd", "odd", 300, [("__data_loc u8[] " + name, 8, 4, 0), ("__data_loc u8[] " + name + "x", 12, 4, 0)])
    maker.add_cpu(0, [(1000, maker.record(300, 7, struct.pack("<II", 2 << 16 | 16, 2 << 16 | 16) + b"abcd"))])
    graph, ctf = shown(work, maker)
    for line in (graph.stdout, ctf):
        check(line.count("[ [0] = 97, [1] = 98 ]") == 2, f"lists with the longest names: {line}")

    for labels, wanted in ((["A", "A", "A#2"], "A#2"), (["x" * 205 + "1", "x" * 205 + "2"], "x" * 200 + "#2")):
        maker = Maker()
        maker.format("odd", "odd", 300, FIELDS)
        names = ", ".join('{ %d, "%s" }' % (i, label) for i, label in enumerate(labels))
        texts = maker.systems["odd"]
        texts[0] = texts[0].replace(b'""', b'"%s", __print_symbolic(REC->a, ' + names.encode() + b")")
        maker.add_cpu(0, [(1000, maker.record(300, 7, BODY))])
        graph, _ = shown(work, maker, ",symbols=yes")
        check('"%s"' % wanted in graph.stdout, f"labels that clash: {graph.stdout}")

    maker = Maker()
    maker.format("odd", "odd", 300, FIELDS)
    maker.add_cpu(0, [(1000 + i, maker.record(1000 + i // 2, 7, BODY)) for i in range(200)])
    graph, _ = shown(work, maker)
    counts = [int(count) for count in re.findall(r"Records left out.*records=(\d+)", graph.stderr)]
    check(sum(counts) == 200 and set(counts[:-1]) == {2}, f"left out of 100 ids, 2 records each: {counts}")

    # Instances whose names cannot stand in that of a port: too long, no UTF-8, or what such a name would be shown as.
    names = [b"x\xff", b"x\\xff", b"i" * 130 + b"1", b"i" * 130 + b"2", b"plain"]
    maker = Maker(version=6)
    maker.format("odd", "odd", 300, FIELDS)
    maker.add_cpu(0, [(1000, maker.record(300, 7, BODY))])
    maker.options = [(3, struct.pack("<Q", 0) + name + b"\0") for name in names]
    made = bytearray(maker.version6())
    for name in names:
        option = made.index(struct.pack("<HIQ", 3, 9 + len(name), 0) + name + b"\0")
        table = len(made)
        page = table + 10 + 16 + 8 + 6
        page += -page % 4096
        struct.pack_into("<Q", made, option + 6, table)
        made += b"flyrecord\0" + struct.pack("<QQ", page, 4096) + struct.pack("<Q", 6) + b"[mono]"
        made += bytes(page - len(made)) + maker.cpus[0]
    path = os.path.join(work, "instances.dat")
    with open(path, "wb") as file:
        file.write(made)
    answer = run("babeltrace2", "--plugin-path=" + os.path.join(BUILD, "plugin"), "query", "source.tandem.tracedat",
                 "babeltrace.trace-infos", '--params=inputs=["%s"]' % path)
    ports = re.findall(r"port-name: (.*)", answer.stdout)
    check(len(ports) == len(names) + 1 and len(set(ports)) == len(ports), f"each stream has a port of its own: {ports}")
    check({"host/top/cpu0", "host/plain/cpu0", "host/x\\xff~1/cpu0"} <= set(ports), f"plain names stay: {ports}")
finish()
