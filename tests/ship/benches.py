#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""benches/run: medians, spreads and ratios of what benches print; one that cannot run, hangs or dies is in the table as that."""
import os
import shutil
import subprocess
import tempfile

SOURCE = os.environ["TANDEM_SOURCE"]
BUILD = os.environ["TANDEM_BUILD"]

LIST = """
[[bench]]
name = "good"
run = ["bench_good"]
[[bench.figure]]
what = "work"
unit = "M/s"
better = "higher"
main = true
ours = '^ours ([0-9.]+)'
[bench.figure.rivals]
"slow one" = '^rival ([0-9.]+)'
"absent one" = '^absent ([0-9.]+)'
[[bench]]
name = "refuses"
run = ["bench_refuses"]
[[bench]]
name = "hangs"
run = ["bench_hangs"]
limit_s = 1
[[bench]]
name = "not-built"
run = ["bench_nowhere"]
"""


def main():
    with tempfile.TemporaryDirectory(prefix="tandem-benches-") as folder:
        os.makedirs(f"{folder}/benches")
        os.makedirs(f"{folder}/build/benches")
        shutil.copy(f"{SOURCE}/benches/run", f"{folder}/benches/run")
        with open(f"{folder}/benches/figures.toml", "w") as file:
            file.write(LIST)
        for name, text in (
                # 10, 20 and 30 in its three rounds; the rival 4.
                ("good", f'n=$(cat {folder}/n 2>/dev/null || echo 1); echo $((n + 1)) >{folder}/n; echo "ours ${{n}}0"; echo "rival 4"'),
                ("refuses", 'echo "this machine has no such thing" >&2; exit 1'), ("hangs", "sleep 60"),
                ("silent", "exit 1"), ("unlisted", 'echo "its own words"')):
            with open(f"{folder}/benches/bench_{name}", "w") as file:
                file.write(f"#!/bin/bash\n{text}\n")
            os.chmod(f"{folder}/benches/bench_{name}", 0o755)
        with open(f"{folder}/README.md", "w") as file:
            file.write("before\n<!-- benches/run: begin -->\nold\n<!-- benches/run: end -->\nafter\n")

        def run(*arguments):
            return subprocess.run([f"{folder}/benches/run", "--build", f"{folder}/build", *arguments], capture_output=True,
                                  text=True, timeout=100)

        done = run("--list")
        assert done.stdout.split() == ["good", "refuses", "hangs", "not-built", "silent", "unlisted"], done
        done = run("--output", f"{folder}/out.md", "--update", f"{folder}/README.md")
        assert done.returncode == 1, done  # for the silent one
        report, readme = open(f"{folder}/out.md").read(), open(f"{folder}/README.md").read()
        for row in ("| work | M/s | 20 ±50 % | slow one | 4 ±0 % | 5 |", "| work | M/s | 20 ±50 % | absent one | cannot run here |  |",
                    "| refuses |  | cannot run here: this machine has no such thing |", "| hangs |  | cannot run here: not done within 1 s |",
                    "| not-built |  | cannot run here: bench_nowhere is not built |", "| silent |  | cannot run here: exit status 1, without a word |",
                    "its own words"):
            assert row in report, (row, report)
        assert readme.startswith("before\n") and readme.endswith("after\n") and "old" not in readme, readme
        assert "| work | M/s | 20 ±50 % | slow one | 4 ±0 % | 5 |" in readme and "refuses" not in readme, readme
        assert run("good", "--quick").returncode == 0
        assert "no bench" in run("no-such").stderr

    # The real list: everything in it is there, and every bench of the tree is in it or found.
    done = subprocess.run([f"{SOURCE}/benches/run", "--build", BUILD, "--quick", "timeline"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and "| one stamp put on the host's clock, exactly | ns | " in done.stdout, done
    assert "not printed" not in done.stdout, done.stdout


main()
