#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A mistyped command, option, event or system call is told with the one that is meant; what is like nothing is not."""
import os
import sys

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "convert"))
from convert_case import SOURCE, TANDEM, main, run

AGENT = os.path.join(os.environ["TANDEM_BUILD"], "agent", "tandem-agent")
HOST = os.path.join(SOURCE, "tests", "data", "kvm", "kvm-tsc.dat")


def each_command_suggests_the_option_that_is_meant(_directory):
    for command, typed, meant in (("view", "--corections", "corrections"), ("info", "--casuality", "causality"),
                                  ("convert", "--as-kernal", "as-kernel"), ("record", "--clocks-onyl", "clocks-only"),
                                  ("estimate", "--target-bond=5", "target-bound"), ("check-ctf", "--quite", "quiet"),
                                  ("syscalls", "--procnmae", "procname"), ("sync", "--secrte-file", "secret-file"),
                                  ("doctor", "--gest=x", "guest")):
        done = run(TANDEM, command, typed)
        said = 'did you mean "--%s"?' % meant
        assert done.code == 2 and not done.out and said in done.err, done
        done = run(TANDEM, command, "--nothing-like-it")
        assert done.code == 2 and "unrecognized" in done.err and "did you mean" not in done.err, done
    done = run(AGENT, "--listn")
    assert done.code == 2 and 'did you mean "--listen"?' in done.err, done
    # What begins two options is not one that is mistyped.
    done = run(TANDEM, "view", "--no")
    assert done.code == 2 and "ambiguous" in done.err and "did you mean" not in done.err, done


def a_command_is_suggested(_directory):
    for typed, meant in (("veiw", "view"), ("convrt", "convert"), ("check-cft", "check-ctf"), ("merge", None)):
        done = run(TANDEM, typed)
        assert done.code == 2 and not done.out and done.err.count("\n") == 1, done
        assert ('did you mean "%s"?' % meant in done.err) if meant else "did you mean" not in done.err, done


def help_is_a_word_too(_directory):
    for words, same in ((["help"], ["--help"]), (["help", "view"], ["view", "--help"]), (["help", "doctor", "x"], ["doctor", "--help"])):
        done = run(TANDEM, *words)
        assert done == run(TANDEM, *same) and done.code == 0 and "Usage: tandem" in done.out, done
    done = run(TANDEM, "help", "veiw")
    assert done.code == 2 and 'did you mean "view"?' in done.err, done


def events_and_calls_are_suggested(directory):
    out = os.path.join(directory, "out")
    for typed, meant in (("sched_swich", "sched_switch"), ("sched:sched_swicth", "sched:sched_switch"), ("kvm_mmio", None)):
        done = run(TANDEM, "convert", "-o", out, "--force", "--events", typed, HOST)
        assert "chose no event" in done.err, done
        assert ('did you mean "%s"?' % meant in done.err) if meant else "did you mean" not in done.err, done
    lttng = os.path.join(SOURCE, "tests", "data", "lttng-kernel", "pair1", "guest")
    done = run(TANDEM, "convert", "-o", os.path.join(directory, "ctf"), "--events", "shced_switch", "--events", "irq_*", lttng)
    assert 'did you mean "sched_switch"?' in done.err and done.err.count("did you mean") == 1, done
    for typed, meant in (("opneat", "openat"), ("%netwrok", "%network"), ("nonsense", None)):
        done = run(TANDEM, "syscalls", "-o", os.path.join(directory, "calls"), "--filter", typed, "--", "true")
        assert done.code != 0 and "no system call" in done.err, done
        assert ('did you mean "%s"?' % meant in done.err) if meant else "did you mean" not in done.err, done
    if not os.access("/sys/kernel/tracing/instances", os.W_OK):
        print("SKIP: no tracefs that may be written to, for the events of tandem record")
        return
    for typed, meant in (("shced", "sched"), ("sched_swich", "sched_switch"), ("sched:sched_swich", "sched:sched_switch"),
                         ("nothing_like_it", None)):
        done = run(TANDEM, "record", "-o", os.path.join(directory, "rec"), "-e", typed, "--", "true")
        assert done.code == 1 and "no event matches" in done.err, done
        assert ('did you mean "%s"?' % meant in done.err) if meant else "did you mean" not in done.err, done


main([each_command_suggests_the_option_that_is_meant, a_command_is_suggested, help_is_a_word_too, events_and_calls_are_suggested])
