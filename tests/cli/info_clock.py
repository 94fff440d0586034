#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tandem info on exchange logs and corrections files: words, JSON and the picture; also of hostile files."""
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TANDEM = os.path.join(os.environ.get("TANDEM_BUILD") or sys.argv[1], "cli", "tandem")
S = 10**9
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print("FAIL:", what)


def tandem(*arguments):
    return subprocess.run([TANDEM, *arguments], capture_output=True, timeout=120)


def stepping(path, head=b"", rows=None):
    """Bursts each second; the host goes on by 3 ms after the 20th."""
    rows = rows or []
    if not rows:
        for burst in range(40):
            for i in range(16):
                guest = 5000 * S + burst * S + i * 40_000
                host = 100 * S + burst * S + i * 40_000 + (3_000_000 if burst >= 20 else 0)
                wait = (i * 7919) % 900
                rows.append(f"x {len(rows)} {host - 9000 - wait} {guest} {guest + 500} {host + 9500 + (i * 104729) % 900}")
    with open(path, "wb") as file:
        file.write(b"tandem-exchanges 1\n" + head + ("\n".join(rows) + "\nend\n").encode())


def picture(path):
    """The texts and the classes of a picture that any viewer can read: well-formed, nothing from elsewhere, real numbers."""
    text = open(path, encoding="utf-8").read()
    root = xml.etree.ElementTree.fromstring(text)
    check("nan" not in text and "inf " not in text and "inf\"" not in text, f"{path}: a number is none")
    check("href" not in text and "url(" not in text and "<script" not in text, f"{path}: not self-contained")
    check("var(" not in text, f"{path}: colours that only a browser knows")
    check("prefers-color-scheme:dark" in text, f"{path}: nothing for dark screens")
    classes = [e.get("class") for e in root.iter() if e.get("class")]
    return " ".join("".join(e.itertext()) for e in root.iter() if e.tag.endswith("text")), classes


with tempfile.TemporaryDirectory() as d:
    log, fixed, svg = f"{d}/web.exchanges", f"{d}/web.corrections", f"{d}/web.svg"
    stepping(log)
    check(tandem("estimate", "-q", log, fixed).returncode == 0, "estimate")

    result = tandem("info", "--plot", svg, log)
    check(result.returncode == 0 and b"bounded" in result.stdout and b"step" in result.stdout, f"info on a log: {result}")
    texts, classes = picture(svg)
    check(classes.count("step") == 3 and classes.count("doubt") == 3, f"legend and two frames show the step and its doubt: {set(classes)}")
    check(classes.count("dot") == 2 * 640 + 2, f"{classes.count('dot')} dots for 640 exchanges in two frames")
    drawn = [float(x) for x in re.findall(r'class="dot" cx="([0-9.]+)" cy="[0-9.]+" r="1.4"', open(svg).read())]
    check(len(drawn) > 640 and min(drawn) > 92 + 5 and max(drawn) < 936 - 5, f"dots from {min(drawn)} to {max(drawn)} touch the frame")
    check("band" in classes and "line" in classes, "no bound or no estimate")
    check("guest time" in texts and "host less guest" in texts and ", us" in texts, f"axes have no labels with units: {texts}")

    result = tandem("info", "--plot", svg, fixed)
    check(result.returncode == 0 and b"corrections" in result.stdout, f"info on corrections: {result}")
    check("dot" not in picture(svg)[1], "exchanges without a log")

    result = tandem("info", "--json", "a=" + log, fixed)
    clocks = json.loads(result.stdout)["clocks"]
    check([c["kind"] for c in clocks] == ["exchanges", "corrections"] and clocks[0]["name"] == "a", f"JSON: {result.stdout}")
    check(len(clocks[1]["segments"]) == 2 and len(clocks[1]["doubts"]) == 1, "segments in JSON")

    # Names that would be markup, or no UTF-8.
    stepping(log, head=b"guest a\"<b>\xff&\\ clock <script>x</script> unit-hz 1000000000\n")
    result = tandem("info", "--json", "--plot", svg, log)
    check(json.loads(result.stdout)["clocks"][0]["grade"] == "bounded", "JSON of odd names")
    picture(svg)

    # A single exchange, and readings at the ends of what there is.
    for rows in (["x 0 100 200 300 400"], [f"x 0 {2**62 - 3} {2**62 - 2} {2**62 - 1} {2**62}"],
                 ["x 0 100 200 300 400", f"x 1 {2**62 - 1000} {2**62 - 900} {2**62 - 800} {2**62 - 100}"]):
        stepping(log, rows=rows)
        result = tandem("info", "--plot", svg, log)
        check(result.returncode == 0, f"{rows}: {result}")
        picture(svg)

    # What cannot be read or written.
    os.remove(svg)
    with open(f"{d}/cut", "w") as file:
        file.write("tandem-corrections 1\nsegment start 0 2\nk 1 2 3 4\n")
    result = tandem("info", "--plot", svg, f"{d}/cut")
    check(result.returncode == 1 and b"cut" in result.stderr and not os.path.exists(svg), f"corrections cut short: {result}")
    result = tandem("info", "--json", f"{d}/cut", fixed)
    check(result.returncode == 3 and len(json.loads(result.stdout)["clocks"]) == 2, f"one of two unreadable: {result}")
    result = tandem("info", "--plot", f"{d}/no/such.svg", fixed)
    check(result.returncode == 3 and b"such.svg" in result.stderr, f"a picture that cannot be written: {result}")
    check(tandem("info", "--plot", svg, f"{d}/web.svg").returncode == 2, "--plot without anything to draw")

sys.exit(1 if failures else 0)
