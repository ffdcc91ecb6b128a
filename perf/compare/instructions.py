"""What compare --check does: it counts the instructions of six small calls, which differ less between runs than times.

instructions.csv holds the counts that were last accepted. They are those of Debian 12's compiler and of the processor
that valgrind emulates, which has AVX2.
"""
import csv
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ACCEPTED = HERE / "instructions.csv"
FIELDS = ["call", "instructions"]
CALLS = 24  # of a batch, as in counted.c
COUNTED = 6  # calls there
GROWTH_MAX = 0.05
LIMIT_S = 300


def counts(library, include):
    """Call → instructions on rank 0, of the batch with the fewest. Exits where a program fails."""
    with tempfile.TemporaryDirectory(prefix="counted.") as name:
        folder = pathlib.Path(name)
        run(["cc", "-O2", "-std=gnu99", "-I", str(include), str(HERE / "counted.c"), str(library), f"-Wl,-rpath,{library.parent}",
             "-o", str(folder / "counted")])
        run(["valgrind", "--quiet", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/out.%p",
             str(folder / "counted")])
        found = {}
        for out in folder.glob("out.*"):
            text = out.read_text(encoding="utf-8", errors="replace")
            call = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            if call and total and int(total[1]) > 0:  # rank 1 counts nothing
                found[call[1]] = min(round(int(total[1]) / CALLS), found.get(call[1], sys.maxsize))
    if len(found) != COUNTED:
        sys.exit(f"compare --check: counted {len(found)} of {COUNTED} calls; does this valgrind write its results in another way?")
    return found


def run(command):
    if shutil.which(command[0]) is None:
        sys.exit(f"compare --check needs {command[0]} (Debian: {'valgrind' if command[0] == 'valgrind' else 'gcc'})")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TUTTI_")}
    environment["TUTTI_TUNE"] = "off"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
                          start_new_session=True) as started:
        try:
            output, _ = started.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)  # with the other rank
            sys.exit(f"compare --check: {command[0]} did not end within {LIMIT_S} s")
    if started.returncode != 0:
        sys.exit(f"compare --check: {' '.join(command)} failed:\n{output}")


def accepted():
    with ACCEPTED.open(newline="", encoding="utf-8") as file:
        return {row["call"]: int(row["instructions"]) for row in csv.DictReader(file)}


def accept(found):
    with ACCEPTED.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([FIELDS, *sorted(found.items())])


def check(library, include, write):
    """Prints the counts beside the accepted ones. True if no call takes more than 5 % more, and all were counted."""
    found = counts(library, include)
    if write:
        accept(found)
    before = accepted()
    good = True
    print("| call | instructions | accepted | |\n|---|---|---|---|")
    for call in [*before, *(call for call in found if call not in before)]:
        now, then = found.get(call), before.get(call)
        grown = now is None or then is None or now > then * (1 + GROWTH_MAX)
        good = good and not grown
        change = "NOT COUNTED" if now is None else "NEW" if then is None else f"{(now - then) / then:+.1%}{' MORE' if grown else ''}"
        print(f"| {call} | {now} | {then} | {change} |")
    if not good:
        print(f"\nA call takes over {GROWTH_MAX:.0%} more instructions than accepted. If there is a good reason: perf/compare/compare "
              "--check --accept, and give the reason in the commit.")
    return good
