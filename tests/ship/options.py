#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each command and component class has a man page; the page and --help (or the class's own parameters) know the same options."""
import os
import re
import subprocess

BUILD, SOURCE = os.environ["TANDEM_BUILD"], os.environ["TANDEM_SOURCE"]
COMMON = {"--help", "-h", "--version", "--quiet", "-q"}  # told in tandem(1)
failures = 0


def check(good, what):
    global failures
    if not good:
        failures += 1
        print("FAIL:", what)


def of_help(program, *command):
    """Options in the left column of --help."""
    text = subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True, timeout=20).stdout
    found = set()
    for line in text.split("\n"):
        column = re.match(r" {1,8}(-\S.*?)(?:  |$)", line)
        if column:
            found |= set(re.findall(r"(?:^|[ ,])(--?[a-zA-Z][a-z-]*)", column[1]))
    return found


def of_page(page):
    """Options that have an entry (.It Fl) in the page."""
    return set().union(*entries_of_page(page))


def entries_of_page(page):
    """The same, entry by entry: those that stand together are one option's letter and name, or a pair."""
    entries = []
    for line in open(os.path.join(SOURCE, "man", page)).read().split("\n"):
        if line.startswith(".It ") and " Fl " in line:
            found = set()
            # "Fl -guest" and "Fl \-guest" are --guest, "Fl g" is -g; "Fl g , -guest" is both.
            is_flag = False
            for word in line.replace("\\-", "-").replace("\\&", "").split()[1:]:
                if word == "Fl":
                    is_flag = True
                elif re.fullmatch(r"[A-Z][a-z]", word):
                    is_flag = False
                elif is_flag and word not in ",|":
                    found.add("-" + word.rstrip(","))
            if found:
                entries.append(found)
    return entries


def of_source(command):
    """Options that the program takes: the rows of its table."""
    name = command.replace("-", "_")
    paths = ["agent/agent_options.c"] if command == "tandem-agent" else [f"cli/{name}.c", f"cli/{name}_options.c"]
    texts = [open(os.path.join(SOURCE, path)).read() for path in paths if os.path.exists(os.path.join(SOURCE, path))]
    return {"--" + option for text in texts for option in
            re.findall(r'\{ "([a-z-]+)", (?:no|required|optional)_argument,', text)}


def of_synopsis(page):
    """(long, short) options that the synopsis names."""
    text = open(os.path.join(SOURCE, "man", page)).read().replace("\\-", "-")
    flags = re.findall(r"\bFl (-?[a-zA-Z][a-z-]*)", text.split(".Sh SYNOPSIS")[1].split(".Sh ")[0])
    return {"-" + flag for flag in flags}


def parameters():
    """Parameters of component classes: as the sources check them, and as the pages tell them."""
    for name, path in (("source.tandem.tracedat", "source/src_tracedat.c"), ("source.tandem.perf", "source/src_perf.c"),
                       ("source.tandem.live", "source/src_live.c"), ("filter.tandem.clock", "clock/flt_component.c")):
        text = open(os.path.join(SOURCE, "plugin", path)).read()
        taken = set(re.findall(r'\{ (?:\.name = )?"([a-z-]+)", (?:\.kinds = )?PARAM_', text))
        page = open(os.path.join(SOURCE, "man", f"babeltrace2-{name}.7")).read()
        told = set(re.findall(r"^\.It Cm ([a-z-]+)", page, re.M)) | set(re.findall(r"^\.It Cm [a-z-]+ , Cm ([a-z-]+)", page, re.M))
        check(len(taken) >= 4, f"{path}: parameters {taken}")
        check(taken == told, f"babeltrace2-{name}.7 lacks {sorted(taken - told)}, has {sorted(told - taken)} too much")


def main():
    tandem, agent = os.path.join(BUILD, "cli/tandem"), os.path.join(BUILD, "agent/tandem-agent")
    listed = subprocess.run([tandem, "--help"], capture_output=True, text=True, timeout=20).stdout
    commands = re.findall(r"^  ([a-z][a-z-]+) ", listed.split("Options:")[0], re.M)
    check(len(commands) >= 9, f"commands of --help: {commands}")
    overview = open(os.path.join(SOURCE, "man/tandem.1")).read()
    for program, command, page in [(agent, [], "tandem-agent.8")] + [(tandem, [c], f"tandem-{c}.1") for c in commands]:
        if not os.path.exists(os.path.join(SOURCE, "man", page)):
            check(False, f"no page {page}")
            continue
        if command:
            check(f"Xr tandem-{command[0]} 1" in overview, f"tandem(1) does not name {page}")
        told, written = of_help(program, *command) - COMMON, of_page(page) - COMMON
        check(told or command == ["check-ctf"], f"{page}: no option in --help")
        check(told <= written, f"{page} lacks {sorted(told - written)}, which --help has")
        check(written <= told, f"{page} has {sorted(written - told)}, which --help lacks")
        taken = of_source(command[0] if command else "tandem-agent") - COMMON
        check(taken == {option for option in told if option.startswith("--")},
              f"{page}: the program takes {sorted(taken)}, --help has {sorted(told)}")
        named = of_synopsis(page) - COMMON
        check(named <= written, f"{page}: its synopsis has {sorted(named - written)}, which have no entry")
        for entry in entries_of_page(page):
            check(entry & (named | COMMON), f"{page}: its synopsis lacks {sorted(entry)}")

    # Component classes: the plugin says which there are, and the sources which parameters they take.
    plugin = subprocess.run(["babeltrace2", f"--plugin-path={BUILD}/plugin", "list-plugins"], capture_output=True, text=True, timeout=60).stdout
    own = re.search(r"^tandem:\n(?:.*\n)*?(?=^[a-z][\w-]*:|\Z)", plugin, re.M)[0]
    classes = re.findall(r"^ +'?((?:source|filter|sink)\.tandem\.\w+)'?", own, re.M)
    check(len(classes) >= 5, f"component classes: {classes}")
    for name in classes:
        check(os.path.exists(os.path.join(SOURCE, "man", f"babeltrace2-{name}.7")), f"no page babeltrace2-{name}.7")

    # No page is about something that is not there.
    for page in os.listdir(os.path.join(SOURCE, "man")):
        about = re.fullmatch(r"tandem-(\S+)\.1", page)
        check(not about or about[1] in commands, f"man/{page}: there is no such command")
        about = re.fullmatch(r"babeltrace2-(\S+)\.7", page)
        check(not about or about[1] in classes, f"man/{page}: there is no such component class")
    parameters()
    links()


def anchors(path):
    """The anchors that a Markdown file's headings have."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", open(path).read(), re.M):
        found.add(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"))
    return found


def links():
    """Links between documents lead somewhere; a page's cross references are pages of ours or well known ones."""
    listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "*.md"], capture_output=True, text=True).stdout.split()
    names = listed or [os.path.relpath(os.path.join(folder, name), SOURCE) for folder, _, there in os.walk(SOURCE) for name in there
                       if name.endswith(".md") and "/build" not in folder]
    for name in names:
        path = os.path.join(SOURCE, name)
        text = re.sub(r"```.*?```", "", open(path).read(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                check(target.startswith("https://"), f"{name}: link to {target}")
                continue
            file, _, anchor = target.partition("#")
            # This one is installed beside docs/.
            folder = SOURCE if name == "packaging/README.md" else os.path.dirname(path)
            where = os.path.normpath(os.path.join(folder, file)) if file else path
            check(os.path.exists(where), f"{name}: link to {target}, which is not there")
            if anchor and where.endswith(".md") and os.path.exists(where):
                check(anchor in anchors(where), f"{name}: link to {target}: no such heading")
        # Paths of the tree in backquotes, and man pages.
        for path_name in re.findall(r"`((?:core|cli|agent|plugin|converters|tests|benches|docs|scripts|packaging|sessions|examples|cmake)/[\w./-]+)`", text):
            check(os.path.exists(os.path.join(SOURCE, path_name)) or os.path.exists(os.path.join(BUILD, path_name)),
                  f"{name}: {path_name} is not in the tree")
    pages = set(os.listdir(os.path.join(SOURCE, "man")))
    for page in pages:
        if not re.search(r"\.[1-8]$", page):
            continue
        for other, section in re.findall(r"^\.Xr ((?:tandem|babeltrace2-\w+\.tandem)\S*) (\d)", open(os.path.join(SOURCE, "man", page)).read(), re.M):
            check(f"{other}.{section}" in pages, f"man/{page}: refers to {other}({section}), which is not there")


main()
raise SystemExit(failures > 0)
