# SPDX-License-Identifier: MIT
"""What the plugin's tests share: graphs through babeltrace2's Python bindings, recorded figures, checks."""
import collections
import os
import subprocess
import sys

import bt2

SOURCE = os.environ["TANDEM_SOURCE"]
BUILD = os.environ["TANDEM_BUILD"]
DATA = os.path.join(SOURCE, "tests", "data")

Event = collections.namedtuple("Event", "ns machine buffer cpu tid name procname fields")

faults = 0


def check(good, text):
    """Counts and tells a failed expectation; the test goes on, so that all are seen."""
    global faults
    if not good:
        faults += 1
        print("FAIL:", text)
    return good


def finish():
    print("faults:", faults)
    sys.exit(1 if faults else 0)


def data(*names):
    return [os.path.join(DATA, n) for n in names]


def plain(field):
    """A field's value as plain Python."""
    if isinstance(field, bt2._StructureFieldConst):
        return {k: plain(v) for k, v in field.items()}
    if isinstance(field, bt2._ArrayFieldConst):
        return [plain(v) for v in field]
    if isinstance(field, bt2._StringFieldConst):
        return str(field)
    return int(field)


def messages(inputs, **params):
    params = {k.replace("_", "-"): v for k, v in params.items()}
    params.setdefault("names", "ftrace")
    params["inputs"] = inputs
    spec = bt2.ComponentSpec.from_named_plugin_and_component_class("tandem", "tracedat", params)
    return bt2.TraceCollectionMessageIterator([spec])


def event_of(message, with_fields=True):
    event = message.event
    machine, buffer, cpu = event.stream.name.rsplit("/", 2)
    context = event.common_context_field
    return Event(message.default_clock_snapshot.ns_from_origin, machine, buffer, int(cpu[3:]), int(context["tid"]),
                 event.name, str(context["procname"]), plain(event.payload_field) if with_fields and event.payload_field is not None else {})


def events(inputs, with_fields=True, **params):
    for message in messages(inputs, **params):
        if type(message) is bt2._EventMessageConst:
            yield event_of(message, with_fields)


def stats(path):
    """A .stats file: what trace-cmd reports for the .dat beside it."""
    found = {"count": {}, "span": {}}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            words = line.rstrip("\n").split(" ")
            if words[0] == "count":
                found["count"][tuple(words[1:-1])] = int(words[-1])
            elif words[0] == "span":
                found["span"][tuple(words[1:4])] = words[4:]
            elif words[0] in ("total", "dropped"):
                found[words[0]] = int(words[1])
            elif words[0] in ("first", "last"):
                found[words[0]] = words[1] if len(words) > 1 else None
    return found


def to_ns(text):
    """A time as "trace-cmd report -t" prints it: seconds with nine digits, or a plain count."""
    whole, _, fraction = text.partition(".")
    return int(whole) * 10**9 + int(fraction) if fraction else int(whole)


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", **options)


def has_trace_cmd():
    return run("sh", "-c", "command -v trace-cmd").returncode == 0


def report(*options):
    """Lines of "trace-cmd report" with these options."""
    return run("trace-cmd", "report", *options).stdout.splitlines()
