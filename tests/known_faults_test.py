#!/usr/bin/env python3
"""Programs that once showed a fault, built against this tree and run many times: none may show it again.

Usage: tests/known_faults_test.py BUILD CASES [--times N] [--only NAME]... [--list]
CASES is the folder of the programs; which of them run how, and what is right, is the table in known_faults.py.
Exit status 1: a run was wrong, and its output was printed. 77: nothing can be run here; the reason is said.
"""
import argparse
import fnmatch
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

import known_faults

SKIPPED = 77
SOURCE = pathlib.Path(__file__).resolve().parent.parent
PROGRESS_S = 10
END_S = 5  # for what was killed to be gone
SAID_MAX = 6000


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="build tree whose library the programs get")
    parser.add_argument("cases", type=pathlib.Path, help="folder of the programs; it is copied")
    parser.add_argument("--times", type=int, default=20, metavar="N", help="runs of each case (20)")
    parser.add_argument("--only", action="append", metavar="NAME", help="this case alone; may be repeated; 'cgroup_*' are several")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    given = parser.parse_args()
    if given.times < 1:
        parser.error("--times: at least once")
    return given


def selected(names):
    chosen = [case for case in known_faults.CASES if not names or any(fnmatch.fnmatch(case.name, name) for name in names)]
    for name in names or ():
        if not any(fnmatch.fnmatch(case.name, name) for case in chosen):
            sys.exit(f"--only {name}: no such case; --list prints them")
    return chosen


def clean_environment():
    """Nothing of a launcher, and no setting of the user's, reaches a case. Python's would change when it writes lines."""
    prefixes = ("TUTTI_", "PYTHON", "OMPI_", "PMIX_", "PMI_", "SLURM_", "MPI_LOCAL")
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "LD_PRELOAD")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes) and name not in names}


def python_with_numpy():
    for program in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(program) and subprocess.run([program, "-c", "import numpy"], env=clean_environment(), capture_output=True,
                                                      check=False).returncode == 0:
            return program
    return None


def build(cases, folder, build_tree):
    """By the folders' own scripts. A case whose program is missing afterwards is wrong, not left out."""
    settings = {"TUTTI_SOURCE": str(SOURCE), "TUTTI_BUILD": str(build_tree)}
    for room in sorted({program.split("/")[0] for case in cases for program in case.programs}):
        names = sorted({program.split("/")[1] for case in cases for program in case.programs if program.startswith(room + "/")})
        subprocess.run(["bash", "./mk", *names], cwd=folder / room, env=clean_environment() | settings, check=False)


def descended_from(leader):
    """Processes that have not ended and whose sid, see setsid(2), is this one. Their groups may be others: `timeout` makes
    one of its own."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, sid = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it has ended meanwhile
        if int(sid) == leader and state not in "ZX":
            found.append(int(entry.name))
    return found


def end_all(leader):
    """The leader must not have been waited for, so that its number is nobody else's."""
    limit = time.monotonic() + END_S
    while (left := descended_from(leader)) and time.monotonic() < limit:
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


class Run:
    """One run of a case, whose processes can be found, with a folder for temporary files of its own."""

    def __init__(self, case, cases_folder, environment):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="run", dir=cases_folder))
        self.folder.chmod(0o755)  # for ranks that give up their rights
        own = {"CASES": str(cases_folder), "TMPDIR": str(self.folder), "TUTTI_CACHE_DIR": str(self.folder / "cache"),
               "TUTTI_JOB_ID": f"known-fault-{uuid.uuid4()}"}  # other jobs start at the same time
        self.began = time.monotonic()
        self.limit = self.began + case.limit_s
        with open(self.folder / "said", "wb") as said:
            self.process = subprocess.Popen(["bash", "-c", case.command], cwd=cases_folder / case.folder, stdin=subprocess.DEVNULL,
                                            stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
                                            env=environment | {"TUTTI_TUNE": "off"} | own | case.settings)
        self.ended = os.pidfd_open(self.process.pid)  # readable once it has ended, though nobody has waited for it

    def stop(self):
        """Ends what is left of it; returns the exit status."""
        end_all(self.process.pid)
        os.close(self.ended)
        return self.process.wait()

    def outcome(self):
        late = not select.select([self.ended], [], [], 0)[0]
        seconds = time.monotonic() - self.began
        status = self.stop()
        said = (self.folder / "said").read_text(encoding="utf-8", errors="replace")
        shutil.rmtree(self.folder, ignore_errors=True)
        return known_faults.Outcome("late" if late else status, said, seconds)


class Score:
    def __init__(self, case, of):
        self.case, self.of, self.done, self.right, self.seconds = case, of, 0, 0, 0.0
        self.first_wrong = ""

    def add(self, outcome):
        try:
            why = f"no end after {self.case.limit_s} s" if outcome.status == "late" else self.case.wrong(outcome)
        except (AttributeError, ValueError) as error:  # a line that a verdict looked for is missing
            why = f"it did not say what it should: {error}"
        self.done += 1
        self.right += not why
        if why and not self.first_wrong:
            self.first_wrong = f"{why}\nstatus {outcome.status}, {outcome.seconds:.1f} s, output:\n{outcome.said[-SAID_MAX:]}"
            print(f"  {self.case.name} WRONG: {why}", flush=True)


def play(case, times, cases_folder, environment):
    """All runs of a case, as many at a time as it says."""
    score, running, started = Score(case, times), [], 0
    began = told = time.monotonic()
    try:
        while score.done < times:
            while started < times and len(running) < case.together:
                running.append(Run(case, cases_folder, environment))
                started += 1
            next_limit = min(run.limit for run in running)
            select.select([run.ended for run in running], [], [], max(0, min(next_limit - time.monotonic(), PROGRESS_S)))
            for run in [run for run in running if time.monotonic() > run.limit or select.select([run.ended], [], [], 0)[0]]:
                running.remove(run)
                score.add(run.outcome())
            if time.monotonic() - told > PROGRESS_S and score.done < times:
                told = time.monotonic()
                print(f"  {case.name}: {score.done} of {times} done, {score.right} right", flush=True)
    finally:
        for run in running:
            run.stop()
    score.seconds = time.monotonic() - began
    return score


def unable(case):
    """Why a case cannot be run here, or nothing."""
    if case.root and os.geteuid() != 0:
        return "needs root"
    if case.python and not python_with_numpy():
        return "no Python here has numpy"
    return ""


def play_all(cases, given, folder):
    build(cases, folder, given.build)
    libraries = {"LD_LIBRARY_PATH": str(given.build / "src"), "PYTHONPATH": str(SOURCE / "python"), "PYTHONDONTWRITEBYTECODE": "1",
                 "OPENBLAS_NUM_THREADS": "1", "PYTHON": python_with_numpy() or sys.executable}
    scores = []
    for number, case in enumerate(cases, 1):
        if why := unable(case):
            print(f"[{number}/{len(cases)}] {case.name}: skipped: {why}", flush=True)
            continue
        print(f"[{number}/{len(cases)}] {case.name}: {case.right}", flush=True)
        score = play(case, given.times, folder, clean_environment() | libraries)
        print(f"  {score.right} of {score.of} right, {score.seconds:.1f} s", flush=True)
        scores.append(score)
    return scores


def report(scores):
    wrong = [score for score in scores if score.right != score.of]
    for score in wrong:
        print(f"\n=== {score.case.name}, the first wrong run: {score.first_wrong}")
    width = max((len(score.case.name) for score in scores), default=4)
    print(f"\n{'case':{width}}  right/of  seconds")
    for score in scores:
        print(f"{score.case.name:{width}}  {f'{score.right}/{score.of}':>8}  {score.seconds:7.1f}")
    print(f"{len(scores) - len(wrong)} of {len(scores)} cases right")
    return 1 if wrong else 0


def main():
    given = arguments()
    cases = selected(given.only)
    if given.list:
        for case in cases:
            print(f"{case.name}: {case.right}{' (needs root)' if case.root else ''}")
        return 0
    if not given.cases.is_dir():
        skip(f"there are no such programs here ({given.cases} is missing)")
    if not shutil.which("cc"):
        skip("there is no cc to build the programs with")
    given.build = given.build.resolve()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup and shells may have it ignored, and a case sends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what runs is ended, and the folder removed
    with tempfile.TemporaryDirectory(prefix="tutti-known-faults-") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        shutil.copytree(given.cases, folder, dirs_exist_ok=True)
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)  # the original may be read-only
        scores = play_all(cases, given, folder)
    return report(scores) if scores else SKIPPED


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
