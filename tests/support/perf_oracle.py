# SPDX-License-Identifier: MIT
"""What perf itself reads in a perf.data: every sample with its fields, as "perf script" gives them to a script."""
import json
import os
import subprocess
import tempfile

DUMPER = '''
import json

def clean(value):
    if isinstance(value, (bytes, bytearray)):
        return "hex:" + bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(inner) for inner in value]
    return value

def trace_unhandled(name, context, fields, sample=None):
    sample = sample or {}
    inner = sample.get("sample", {})
    print(json.dumps({
        "event": sample.get("ev_name"), "cpu": inner.get("cpu"), "time": inner.get("time"), "pid": inner.get("pid"),
        "tid": inner.get("tid"), "ip": inner.get("ip"), "period": inner.get("period"), "comm": sample.get("comm"),
        "chain": [entry["ip"] for entry in sample.get("callchain", [])],
        "raw": clean(sample.get("raw_buf")),
        "fields": {key: clean(value) for key, value in fields.items() if not key.startswith("common_")}}))
'''


def samples(path, perf="perf"):
    """The samples of a file in perf's order (by time over all CPUs), as dictionaries."""
    with tempfile.TemporaryDirectory(prefix="tandem-oracle-") as folder:
        script = os.path.join(folder, "dump.py")
        with open(script, "w", encoding="ascii") as out:
            out.write(DUMPER)
        done = subprocess.run([perf, "script", "-s", script, "-i", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=300, check=False)
    text = done.stdout.decode("utf-8", "surrogateescape")
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if not found and done.returncode:
        raise RuntimeError("perf script: " + done.stderr.decode("utf-8", "replace")[-500:])
    return found


def by_cpu(found):
    """{cpu: samples in order of time; equal times keep perf's order}"""
    result = {}
    for sample in found:
        result.setdefault(sample["cpu"], []).append(sample)
    for mine in result.values():
        mine.sort(key=lambda sample: sample["time"])
    return result
