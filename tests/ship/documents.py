# SPDX-License-Identifier: MIT
"""Takes the commands out of README, CONTRIBUTING, docs/, man pages and --help.

A code block of Markdown (indented by four, or fenced) is taken for commands where its first line begins with "$ ", or with a
program of PROGRAMS. Where lines begin with "$ " only these are commands, and the others are what they print. A comment
in front of the block, or of the whole document in front of its title, says something else:

    <!-- run: test NAME -->       the test NAME (ctest) does that: NAME has to exist
    <!-- run: no, REASON -->      not run, for this reason
    <!-- run: status N -->        ends with this status
    <!-- run: with A=B [A=B]... -->   B in place of A

In man pages the same stands in a comment line in front of it: .\\" run: ...
"""
import os
import re
import subprocess

PROGRAMS = (".", "tandem", "tandem-agent", "babeltrace2", "./demo", "./check", "cmake", "ctest", "trace-cmd", "lttng", "lttng-sessiond",
            "perf", "strace", "sudo", "export", "docker", "podman", "systemctl", "apt", "apt-get", "qemu-system-x86_64", "virsh",
            "modprobe", "mount", "head", "git", "scp", "ssh", "cd", "sh", "sysctl", "umask", "kernelshark", "curl", "make",
            "BABELTRACE_PLUGIN_PATH=", "for", "scripts/", "benches/", "tests/", "build/", "examples/", "bench_")


class Block:
    """Commands that stand together: script, the lines they print, and how they are to be run."""

    def __init__(self, document, line, script, printed, how):
        self.document, self.line, self.script, self.printed, self.how = document, line, script, printed, how

    def __str__(self):
        return f"{self.document}:{self.line}"


def is_command(line):
    if line.startswith(("$ ", "# ")):
        return True
    word = line.split(" ")[0]
    return word in PROGRAMS or any(word.startswith(p) for p in PROGRAMS if p[-1] in "/=_")


def to_block(document, number, lines, how):
    """A block of commands, or None."""
    if not lines or not is_command(lines[0]):
        return None
    prompt = next((p for p in ("$ ", "# ") if lines[0].startswith(p)), None)
    if not prompt:
        return Block(document, number, "\n".join(lines), [], how)
    script, printed, goes_on = [], [], False
    for line in lines:
        if line.startswith(prompt) or goes_on:
            script.append(line[len(prompt):] if line.startswith(prompt) else line)
            goes_on = line.endswith("\\")
        else:
            printed.append(line)
    return Block(document, number, "\n".join(script), printed, how)


def of_markdown(path, name):
    """(blocks, number of code blocks that are no commands)"""
    blocks, others = [], 0
    lines = open(path).read().split("\n")
    whole = re.match(r"<!-- run: (.*) -->", lines[0]) if lines else None
    how = None
    number = 0
    while number < len(lines):
        line = lines[number]
        comment = re.fullmatch(r"<!-- run: (.*) -->", line)
        if comment and number > 0:
            how = comment[1]
            number += 1
            continue
        start = number
        code = []
        if line.startswith("```"):
            number += 1
            while number < len(lines) and not lines[number].startswith("```"):
                code.append(lines[number])
                number += 1
            number += 1
        elif re.match(r" {4}\S", line) and (number == 0 or lines[number - 1] == "" or lines[number - 1].startswith("<!-- run:")):
            while number < len(lines) and (lines[number].startswith("    ") or
                                           lines[number] == "" and number + 1 < len(lines) and lines[number + 1].startswith("    ")):
                code.append(lines[number][4:])
                number += 1
        else:
            number += 1
            if line:
                how = None
            continue
        block = to_block(name, start + 1, code, how or (whole[1] if whole else ""))
        if block:
            blocks.append(block)
        else:
            others += 1
        how = None
    return blocks, others


def of_table(path, name):
    """What README's table says to type: the second cell of its rows."""
    for number, line in enumerate(open(path).read().split("\n"), 1):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        for script in re.findall(r"`([^`]+)`", cells[1]) if len(cells) == 3 else []:
            if is_command(script):
                yield Block(name, number, script, [], "")


def roff(text):
    return text.replace("\\e", "\\").replace("\\-", "-").replace("\\&", "").replace("\\(aq", "'").replace("\\(dq", '"')


def of_man(path, name):
    """(blocks of EXAMPLES, literal texts that are no commands)"""
    blocks, texts = [], []
    inside, how, literal, start = False, "", None, 0
    for number, line in enumerate(open(path).read().split("\n"), 1):
        comment = re.fullmatch(r'\.\\" run: (.*)', line)
        if line.startswith(".Sh"):
            inside = line.strip() == ".Sh EXAMPLES"
        elif not inside:
            continue
        elif comment:
            how = comment[1]
        elif line.startswith(".Bd -literal"):
            literal, start = [], number + 1
        elif line.startswith(".Ed") and literal is not None:
            block = to_block(name, start, literal, how)
            if block:
                blocks.append(block)
            else:
                texts.append("\n".join(literal) + "\n")
            literal, how = None, ""
        elif literal is not None:
            literal.append(roff(line))
        elif line.startswith(".Dl "):
            text = line[4:]
            if text.startswith('"'):
                text = text[1:].rstrip('"').replace('""', '"')
            block = to_block(name, number, [roff(text)], how)
            if not block:
                raise SystemExit(f"{name}:{number}: an example that begins with no known program: {text}")
            blocks.append(block)
            how = ""
    return blocks, texts


def of_help(tandem, command):
    """The examples of --help."""
    name = f"tandem {command} --help" if command else "tandem --help"
    text = subprocess.run([tandem, *([command] if command else []), "--help"], capture_output=True, text=True, timeout=20, check=True).stdout
    found = re.search(r"^Examples?: (.*(?:\n +.*)*)", text, re.M)
    for script in (found[1].split("\n") if found else []):
        yield Block(name, 0, script.strip(), [], "")


def files(source):
    """Documents by their paths below the source folder."""
    markdown = [name for name in ("README.md", "CONTRIBUTING.md", "packaging/README.md") if os.path.exists(os.path.join(source, name))]
    for folder in ("docs", "docs/recipes"):
        path = os.path.join(source, folder)
        markdown += sorted(f"{folder}/{name}" for name in (os.listdir(path) if os.path.isdir(path) else []) if name.endswith(".md"))
    pages = sorted(f"man/{name}" for name in os.listdir(os.path.join(source, "man")) if re.search(r"\.[1-8]$", name))
    return markdown, pages
