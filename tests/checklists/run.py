#!/usr/bin/env python3
"""Does CONTRIBUTING.md name every file that a new part touches, and does the part then work?

Follows rows of its table "Adding a part" in copies of the repository: makes the change (changes/<row>.py), compares the
files that it touched with those that the row names, builds what the change needs with warnings as errors, and runs the
commands by which the part shows that it works.

Usage: run.py SOURCE [--only ROW]... [--keep FOLDER] [-j N]
Exit status: 0 all changes are as their rows say and work; 1 some are not.
"""
import argparse
import fnmatch
import importlib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
ROWS = ["algorithm", "data_type", "collective", "transport", "kernel_body"]
LIMIT_S = 3 * 3600  # against hangs


class Failed(Exception):
    """What is wrong with a change, for people."""


class Tree:
    """A copy of the repository, in which a change is made."""

    def __init__(self, root):
        self.root = root
        self.touched = set()

    def new(self, path, text):
        """A new file."""
        at = self.root / path
        if at.exists():
            raise Failed(f"{path} is there already")
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(text, encoding="utf-8")
        self.touched.add(path)

    def change(self, path, anchor, text, count=1):
        """Replaces the first line that begins with or contains `anchor` by `text`, in which {} stands for that line."""
        at = self.root / path
        lines = at.read_text(encoding="utf-8").splitlines(keepends=True)
        found = [i for i, line in enumerate(lines) if anchor in line][:count]
        if len(found) < count:
            raise Failed(f"{path} has no line with {anchor!r}: the change has to follow the code")
        for i in reversed(found):
            lines[i] = text.replace("{}", lines[i].rstrip("\n")) + "\n"
        at.write_text("".join(lines), encoding="utf-8")
        self.touched.add(path)


def named_files(source, row, name):
    """The patterns of paths in a row of CONTRIBUTING.md's table; <name> is the name of the new part."""
    page = (source / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\| {row} \|(.*?)\|", page, re.M)
    paths = re.findall(r"`((?:[\w<>*.-]+/)+[\w<>*./-]+)`|\]\(([\w/.-]+)\)", line)
    return {(code or link).replace("<name>", name) for code, link in paths}


def compare(named, touched):
    missing = sorted(path for path in touched if not any(fnmatch.fnmatch(path, pattern) for pattern in named))
    idle = sorted(pattern for pattern in named if not any(fnmatch.fnmatch(path, pattern) for path in touched))
    if missing or idle:
        raise Failed("".join([f"\n  touched, but not named: {path}" for path in missing] +
                             [f"\n  named, but not touched: {path}" for path in idle]))


def copy(source, to):
    """Tracked files and new ones that git does not ignore, as they are now."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True).stdout
    to.mkdir(parents=True)
    for path in filter(None, listed.decode().split("\0")):
        if (source / path).is_file():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            (to / path).write_bytes((source / path).read_bytes())
            (to / path).chmod((source / path).stat().st_mode)


def must(root, command):
    print(f"  $ {command}", flush=True)
    environment = os.environ | {"TUTTI_TUNE": "off", "CTEST_OUTPUT_ON_FAILURE": "1"}
    ended = subprocess.run(command, shell=True, cwd=root, env=environment, stdout=subprocess.PIPE, text=True,
                           stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    if ended.returncode != 0:
        raise Failed(f"exit status {ended.returncode} of: {command}\n{ended.stdout[-6000:]}")


def follow(row, source, folder, jobs):
    """Returns the number of files and lines that the change took."""
    change = importlib.import_module(f"changes.{row}")
    tree = Tree(folder / row)
    copy(source, tree.root)
    must(tree.root, "git init -q . && git add -A && git -c user.name=x -c user.email=x@x commit -qm copy")
    change.make(tree)
    compare(named_files(source, row.replace("_", " "), change.NAME), tree.touched)
    options = "-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DTUTTI_WERROR=ON " + getattr(
        change, "OPTIONS", "-DTUTTI_CUDA=OFF")
    must(tree.root, f"cmake -G Ninja -S . -B build {options}")
    must(tree.root, f"cmake --build build -j {jobs} --target {' '.join(map(shlex.quote, change.TARGETS))}")
    for command in change.COMMANDS:
        must(tree.root, command)
    counted = subprocess.run("git add -A -N . && git diff --numstat", shell=True, cwd=tree.root, check=True,
                             capture_output=True, text=True).stdout
    return len(tree.touched), sum(int(line.split()[0]) for line in counted.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="a new folder, in which the copies stay")
    parser.add_argument("-j", type=int, default=os.cpu_count(), metavar="N", help="jobs of the build")
    arguments = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or pathlib.Path(temporary)).resolve()
        for row in arguments.only or ROWS:
            began = time.monotonic()
            print(f"{row}:", flush=True)
            try:
                files, lines = follow(row, arguments.source.resolve(), folder, arguments.j)
                print(f"{row}: {files} files, {lines} lines, {time.monotonic() - began:.0f} s", flush=True)
            except Failed as failed:
                print(f"{row}: {failed}", flush=True)
                wrong.append(row)
    print(f"not as CONTRIBUTING.md says: {', '.join(wrong)}" if wrong else "all as CONTRIBUTING.md says")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
