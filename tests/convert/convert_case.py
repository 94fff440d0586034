# SPDX-License-Identifier: MIT
"""What the tests of tandem convert share."""
import collections
import os
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
BUILD = os.environ["TANDEM_BUILD"]
SOURCE = os.environ["TANDEM_SOURCE"]
TANDEM = os.path.join(BUILD, "cli", "tandem")
sys.path.insert(0, os.path.join(SOURCE, "tests", "support"))

Run = collections.namedtuple("Run", "code out err")
Event = collections.namedtuple("Event", "time name cpu context fields")


def run(*args, **options):
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, timeout=280, **options)
    return Run(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def convert(out, *args, code=0):
    done = run(TANDEM, "convert", "-o", out, *args)
    assert done.code == code, "exit %d, wanted %d: %s%s" % (done.code, code, done.out, done.err)
    return done


def check_ctf(*dirs, code=0):
    done = run(TANDEM, "check-ctf", *dirs)
    assert done.code == code, "check-ctf: exit %d, wanted %d: %s%s" % (done.code, code, done.out, done.err)
    return done.out


def view_lines(*arguments, code=0):
    done = run(TANDEM, "view", *arguments)
    assert done.code == code, done
    return done.out.splitlines()


def events(path):
    """All events of a trace as babeltrace2's own reader gives them."""
    import bt2

    def plain(field):
        if isinstance(field, bt2._StructureFieldConst):
            return {name: plain(field[name]) for name in field}
        if isinstance(field, bt2._ArrayFieldConst):
            return [plain(element) for element in field]
        if isinstance(field, bt2._StringFieldConst):
            return str(field) if len(field) else ""
        return int(field)

    found = []
    for message in bt2.TraceCollectionMessageIterator(path):
        if type(message) is bt2._EventMessageConst:
            event = message.event
            found.append(Event(message.default_clock_snapshot.ns_from_origin, event.name,
                               int(event.packet.context_field["cpu_id"]), plain(event.common_context_field),
                               plain(event.payload_field)))
    return found


def main(tests):
    """Runs functions whose names are what they show; each gets a directory of its own."""
    failed = 0
    for test in tests:
        with tempfile.TemporaryDirectory() as directory:
            try:
                test(directory)
                print("ok   ", test.__name__)
            except AssertionError as fault:
                failed += 1
                print("FAIL ", test.__name__, ":", fault)
    sys.exit(1 if failed else 0)
