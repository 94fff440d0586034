#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem view, info and convert with inputs that are not a plain file under a plain name."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.environ["TANDEM_SOURCE"], "tests", "convert"))
from convert_case import SOURCE, TANDEM, main, run

DATA = os.path.join(SOURCE, "tests", "data")


def lines_of(*arguments, code=0):
    done = run(TANDEM, "view", *arguments)
    assert done.code == code, done
    return done.out.splitlines()


def a_folder_of_perf_record_threads_is_viewed(directory):
    # Such a folder holds "data" and, beside it, the records of each thread: here all are in the first.
    name = os.path.join(DATA, "perf", "guest-mono-sched.data")
    folder = os.path.join(directory, "perf.data")
    os.mkdir(folder)
    shutil.copy(name, os.path.join(folder, "data"))
    wanted = lines_of(name)
    assert len(wanted) == 521 and lines_of(folder) == wanted
    assert lines_of("host=" + folder) == wanted


main([a_folder_of_perf_record_threads_is_viewed])
