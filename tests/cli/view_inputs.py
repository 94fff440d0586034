#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem view, info and convert with inputs that are not a plain file under a plain name."""
import bz2
import gzip
import json
import lzma
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "convert"))
from convert_case import SOURCE, TANDEM, main, run, view_lines
from tracedat_maker import SWITCH, Maker, switch_body

DATA = os.path.join(SOURCE, "tests", "data")


def a_folder_of_perf_record_threads_is_viewed(directory):
    # Such a folder holds "data" and, beside it, the records of each thread: here all are in the first.
    name = os.path.join(DATA, "perf", "guest-mono-sched.data")
    folder = os.path.join(directory, "perf.data")
    os.mkdir(folder)
    shutil.copy(name, os.path.join(folder, "data"))
    wanted = view_lines(name)
    assert len(wanted) == 521 and view_lines(folder) == wanted
    assert view_lines("host=" + folder) == wanted


def names_neither_break_lines_nor_speak_to_the_terminal(directory):
    maker = Maker()
    maker.hostname = "h\x1b[2Jn"
    maker.format("sched", "sched_switch", 300, SWITCH)
    body = bytearray(switch_body(maker, ("x", 1), ("b", 2)))
    body[0:16] = b"\x1b[31mred\n\t\x07z".ljust(16, b"\0")
    maker.format("ftrace", "print", 5, [("unsigned long ip", 8, 8, 0), ("char buf[]", 16, 0, 0)])
    maker.ftrace[0] = maker.ftrace[0].replace(b'print fmt: ""', b'print fmt: "%s", REC->buf')
    maker.add_cpu(0, [(1000, maker.record(300, 1, bytes(body))),
                      (1001, maker.record(5, 1, bytes(8) + b"one\n\ttwo\x1b[2J\n\0"))])
    path = os.path.join(directory, "a\n\x1b[31mb.dat")
    maker.write(path)
    name = "\\x1b[31mred\\x0a\\x09\\x07z"
    lines = view_lines(path)
    # A text may have lines of its own, set in below the event's.
    assert [line for line in lines if not line.startswith(" " * 8)] == [line for line in lines if line.startswith("[0.")]
    heads = [line for line in lines if line.startswith("[0.")]
    assert len(heads) == 2 and all(name + "-1" in line for line in heads), lines
    assert lines[-1] == " " * 8 + "\ttwo\\x1b[2J", lines
    for arguments in (("view",), ("info",), ("view", "--no-print")):
        done = run(TANDEM, *arguments, path)
        assert done.code == 0 and not set(done.out + done.err) & set("\x1b\x07"), done
    assert run(TANDEM, "info", path).out.splitlines()[0].endswith("a\\x0a\\x1b[31mb.dat")


def a_name_with_an_equals_sign_is_a_file_where_there_is_one(directory):
    shutil.copy(os.path.join(DATA, "single", "v7-gap.dat"), os.path.join(directory, "run=3.dat"))
    wanted = view_lines(os.path.join(directory, "run=3.dat"))
    assert len(wanted) == 2
    for arguments in (("view", "run=3.dat"), ("view", "host=run=3.dat"), ("info", "run=3.dat"),
                      ("convert", "-o", "out", "run=3.dat")):
        done = run(TANDEM, *arguments, cwd=directory)
        assert done.code == 0, done
    # Where both could be meant the machine's name is.
    os.mkdir(os.path.join(directory, "both"))
    for name in ("run=3.dat", "3.dat"):
        shutil.copy(os.path.join(directory, "run=3.dat"), os.path.join(directory, "both", name))
    done = run(TANDEM, "info", "run=3.dat", cwd=os.path.join(directory, "both"))
    assert done.out.startswith("run "), done


def what_comes_through_a_pipe_is_read_as_a_file_is(directory):
    host, guest = (os.path.join(DATA, "kvm", name) for name in ("kvm-tsc.dat", "kvm-tsc-l2.dat"))
    perf = os.path.join(DATA, "perf", "guest-mono-sched.data")
    for path in (host, perf):
        wanted = view_lines(path)
        for command in ("cat '%s' | '%s' view -", "'%s' view - <'%s'", "cat '%s' | '%s' view /dev/stdin"):
            words = (TANDEM, path) if command.endswith("<'%s'") else (path, TANDEM)
            done = run("bash", "-c", command % words)
            assert done.code == 0 and done.out.splitlines() == wanted, (command, done.code, done.err)
    # Two at once, each opened more than once: to be looked at, and to be read.
    done = run("bash", "-c", "'%s' view <(cat '%s') <(cat '%s')" % (TANDEM, host, guest))
    assert done.code == 0 and done.out.splitlines() == view_lines(host, guest), done.err
    done = run("bash", "-c", "'%s' info <(cat '%s') web=<(cat '%s')" % (TANDEM, host, guest))
    assert "time shift in the file" in done.out and "22285" in done.out, done
    out = os.path.join(directory, "out")
    done = run("bash", "-c", "cat '%s' | '%s' convert -o '%s' -" % (host, TANDEM, out))
    assert done.code == 0 and "22285 events" in done.out, done
    done = run("bash", "-c", "cat '%s' | babeltrace2 -c source.tandem.tracedat -p 'inputs=[\"-\"]'" % host)
    assert done.code == 0 and done.out == run("babeltrace2", host).out, done.err
    # What cannot be kept, or is nothing to read.
    done = run("bash", "-c", "cat '%s' | (ulimit -f 8; '%s' view -)" % (host, TANDEM))
    assert done.code != 0 and not done.out, done
    assert "neither a file nor a pipe" in run(TANDEM, "view", "-").err
    done = run("bash", "-c", "true | '%s' view -" % TANDEM)
    assert done.code == 1 and "the file is empty" in done.err, done


def what_users_take_for_a_trace_is_named(directory):
    name = os.path.join(DATA, "single", "v7-gap.dat")
    with open(name, "rb") as file:
        trace = file.read()
    metadata = os.path.join(DATA, "lttng", "ust-basic", "ust", "uid", "65534", "64-bit", "metadata")
    with open(metadata, "rb") as file:
        packed = file.read()
    for file_name, content, words in (
            ("t.dat.gz", gzip.compress(trace), "gzip packed: unpack it"), ("t.dat.xz", lzma.compress(trace), "xz packed"),
            ("t.dat.bz2", bz2.compress(trace), "bzip2 packed"),
            ("report", b"cpus=2\n   sh-406 [000] 89.676820: sched_process_exec: x\n", "a tracer printed"),
            ("trace", b"# tracer: nop\n#\n", "a tracer printed"), ("trace.dat.cpu1", bytes(4096), "trace-cmd restore"),
            ("metadata", packed, "the directory that it is in"), ("x.corrections", b"tandem-corrections 1\n", "--corrections"),
            ("t.txt", b"hello", "not known")):
        path = os.path.join(directory, file_name)
        with open(path, "wb") as file:
            file.write(content)
        for arguments in (("view",), ("convert", "-o", directory + "/out")):
            done = run(TANDEM, *arguments, path)
            assert done.code == 1 and words in done.err and done.err.count("\n") == 1, (file_name, done)


def what_a_directory_has_in_place_of_a_trace_is_told(directory):
    host = os.path.join(DATA, "single", "v7-gap.dat")
    for name, inside, words in (("none", None, "a directory without traces"), ("killed", "host.recording", "tandem record --finish"),
                                ("files", "host.dat", "with .dat files")):
        path = os.path.join(directory, name)
        os.mkdir(path)
        if inside == "host.recording":
            os.mkdir(os.path.join(path, inside))
        elif inside:
            shutil.copy(host, os.path.join(path, inside))
        for arguments in (["view"], ["info", "-q"], ["info", "--causality"], ["convert", "-o", directory + "/out"]):
            # A name is one machine's; without one such a directory stands for its files.
            done = run(TANDEM, *arguments, "name=" + path)
            assert done.code == 1 and words in done.err and done.err.count("\n") == 1 and done.err.count(path) == 1, (name, done)
        done = run(TANDEM, "check-ctf", path)
        assert done.code == 1 and words in done.out and "tandem convert" in done.out and "1 error, 0 warnings" in done.out, done
    assert run(TANDEM, "view", path).code == run(TANDEM, "view", host).code
    for command in ("view", "info", "convert"):
        for argument in ("", "web="):
            done = run(TANDEM, command, argument)
            assert done.code == 2 and '"%s": no file is named' % argument in done.err and not done.out, done


def directories_with_ctf_are_told_of_as_babeltrace2_counts_them(_directory):
    wanted = {"ust-basic": (840, 0, 1), "ust-perpid": (312, 0, 2), "ust-twochan": (1101, 339, 1)}
    for name, (events, lost, traces) in wanted.items():
        path = os.path.join(DATA, "lttng", name)
        assert run("babeltrace2", path).out.count("\n") == events
        done = run(TANDEM, "info", "--json", path)
        found = json.loads(done.out)["traces"]
        assert done.code == 0 and len(found) == traces, done
        assert sum(trace["events"] for trace in found) == events, found
        assert sum(trace["lost_events"] for trace in found) == lost, found
        done = run(TANDEM, "info", "web=" + path)
        assert done.code == 0 and done.out.count("web  ") == traces, done
    # Beside a file, and beside clocks.
    exchanges = os.path.join(DATA, "exchanges", "nested-kvm-busy.exchanges")
    told = json.loads(run(TANDEM, "info", "--json", path, exchanges, os.path.join(DATA, "single", "v7-gap.dat")).out)
    assert [len(told[key]) for key in ("machines", "clocks", "traces")] == [1, 1, 1], told
    done = run(TANDEM, "info", path, "/nonexistent")
    assert done.code == 3 and "1101 in" in done.out, done


def an_offset_by_hand_moves_any_guest(directory):
    def times(lines, machine):
        found = [line.split(" ", 2) for line in lines]
        return [int(time[1:-1].replace(".", "")) for time, name, _ in found if name == machine]

    kvm, sched = os.path.join(DATA, "kvm"), os.path.join(DATA, "perf", "guest-mono-sched.data")
    host, guest = os.path.join(kvm, "kvm-tsc.dat"), os.path.join(kvm, "kvm-tsc-l2.dat")
    for one, other in ((host, guest), (host, sched), (sched, guest)):
        moved = [times(view_lines("-q", "host=" + one, "web=" + other, "--offset", "web=%d" % ns), "web")
                 for ns in (10**9, 10**9 + 12345)]
        assert len(moved[0]) > 500 and [time + 12345 for time in moved[0]] == moved[1], (one, other, moved[0][:3])
    # The truth, which trace-cmd measured, and 100 us beside it.
    untouched, raw = (times(view_lines("-q", "host=" + host, "web=" + guest, *more), "web")
                      for more in ((), ("--offset", "web=0")))
    truth = untouched[0] - raw[0]
    for ns, wrong in ((truth, False), (truth + 100000, True), (truth - 100000, True)):
        done = run(TANDEM, "info", "--causality", "--offset", "web=%d" % ns, "host=" + host, "web=" + guest)
        said = re.search(r"contradictions: (\d+)", done.out)
        assert said and (int(said[1]) > 0) == wrong and "clock by: offset given by hand\n" in done.out, (ns, done)
    for option, words in (("nobody=5", "nobody"), ("web=5s", "no number")):
        done = run(TANDEM, "view", "--offset", option, "host=" + host, "web=" + guest)
        assert done.code in (1, 2) and words in done.err and not done.out, done


def a_recording_is_a_directory_with_its_corrections(directory):
    folder = os.path.join(directory, "rec")
    os.mkdir(folder)
    for name, to in (("kvm-tsc", "host"), ("kvm-tsc-l2", "alpha")):
        shutil.copy(os.path.join(DATA, "kvm", name + ".dat"), os.path.join(folder, to + ".dat"))
    files = [os.path.join(folder, name) for name in ("host.dat", "alpha.dat")]
    machines = json.loads(run(TANDEM, "info", "--json", *files).out)["machines"]
    guest = machines[1]["name"]
    assert machines[1]["tie"] == "time-shift", machines
    plain = view_lines("-q", *files)
    assert view_lines("-q", folder) == plain and json.loads(run(TANDEM, "info", "--json", folder).out)["machines"] == machines
    # Corrections beside them are found for both; of another clock, or broken, they are not.
    text = ("tandem-corrections 1\nhost - clock %s unit-hz 1000000000\nguest - clock %s unit-hz 1000000000\nsegment start 0 2\n"
            "k 662000000000 %d 70 70\nk 662000001000 %d 70 70\nend\n")
    shift = 662 * 10**9 + machines[1]["sync_samples"][0]["least_offset"] + 12345
    path = os.path.join(folder, guest + ".corrections")
    clock = machines[1]["clock"]["name"]
    for content, used in ((text % ("mono", "mono", shift, shift + 1000), False), ("nonsense", False),
                          (text % (clock, clock, shift + 10**10, shift + 10**10 + 1000), False),
                          (text % (clock, clock, shift, shift + 1000), True)):
        with open(path, "w", encoding="ascii") as file:
            file.write(content)
        done = run(TANDEM, "info", folder)
        assert ("+-70 ns at worst" in done.out) == used and (path in done.err) != used, (content, done)
        assert view_lines("-q", folder) == view_lines("-q", *files, *(("--corrections", path) if used else ())), content
        assert (view_lines("-q", folder) != plain) == used
    done = run(TANDEM, "info", "--corrections", guest + "=" + path, folder)
    assert done.code == 0 and "+-70 ns" in done.out, done
    # A guest's file alone is corrected where it is named; convert takes the directory and the corrections too.
    assert view_lines("-q", guest_name(guest) + files[1]) == view_lines("-q", guest_name(guest) + files[1], "--corrections", path)
    assert view_lines("-q", files[1]) != view_lines("-q", guest_name(guest) + files[1])
    said = run(TANDEM, "info", guest_name(guest) + files[1]).out
    assert "corrections file, onto a host that is not among the inputs, " + path in said and "+-70 ns" in said, said
    assert "by the time shift" in run(TANDEM, "info", files[1]).out
    for inputs in ((folder,), files):
        done = run(TANDEM, "convert", "-o", directory + "/out", "--force", *inputs)
        assert done.code == 0 and "%s.corrections, known to" % guest in done.out and done.err == "", done
    # With CTF in it, it stays what it was.
    shutil.copytree(os.path.join(DATA, "lttng", "ust-basic"), os.path.join(folder, "lttng"))
    assert "trace.dat" not in run(TANDEM, "info", folder).out


def guest_name(name):
    return "%s=" % name


def what_causality_warns_of_is_said_once(_directory):
    for name in ("default-clock", "mono-nosync"):
        files = [os.path.join(DATA, "pairs", name + end + ".dat") for end in ("", "-guestrole")]
        done = run(TANDEM, "info", "--causality", *files)
        said = done.err.splitlines()
        assert done.code == 0 and said and len(said) == len(set(said)), done


def a_fault_is_told_in_words_alone(directory):
    maker = Maker()
    maker.format("sched", "sched_switch", 300, SWITCH)
    maker.format("odd", "again", 300, [("int x", 8, 4, 1)])
    maker.add_cpu(0, [(1000, maker.record(300, 1, switch_body(maker, ("a", 1), ("b", 2))))])
    path = os.path.join(directory, "twice.dat")
    maker.write(path)
    done = run(TANDEM, "view", path)
    assert done.code == 3 and len(done.out.splitlines()) == 1, done
    said = done.err.splitlines()
    assert len(said) == 2 and "ID 300" in said[0] and "everything else was delivered" in said[1], said


main([what_a_directory_has_in_place_of_a_trace_is_told, what_causality_warns_of_is_said_once, a_recording_is_a_directory_with_its_corrections, a_fault_is_told_in_words_alone, an_offset_by_hand_moves_any_guest, directories_with_ctf_are_told_of_as_babeltrace2_counts_them, what_comes_through_a_pipe_is_read_as_a_file_is, what_users_take_for_a_trace_is_named, names_neither_break_lines_nor_speak_to_the_terminal, a_name_with_an_equals_sign_is_a_file_where_there_is_one,
      a_folder_of_perf_record_threads_is_viewed])
