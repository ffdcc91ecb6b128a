#!/usr/bin/env python3
"""Programs whose standard streams are closed: the same files as with all open, and nothing foreign in any.

Usage: tests/closed_stdio_test.py BUILD
Tools and perf programs of the build tree, Python where it has numpy, MPI programs where tutti was built with an MPI.
"""
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import uuid

BUILD = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).parent.parent.resolve()
LIMIT_S = 300
STREAMS = (0, 1, 2)
CLOSED = [closed for n in range(4) for closed in itertools.combinations(STREAMS, n)]
failures, checks = [], 0


def has_numpy(program):
    return subprocess.run([program, "-c", "import numpy"], capture_output=True, check=False).returncode == 0


PYTHON = next((program for program in (sys.executable, "/usr/bin/python3") if os.path.exists(program) and has_numpy(program)), None)
PYTHON_RANK = """
import numpy, sys, tutti
with tutti.Communicator.from_environment() as comm:
    own = open(sys.argv[1], "w")   # gets the number of a closed stream
    for n in (1, 10_000, 300_000):
        data = numpy.arange(n, dtype=numpy.float32)
        comm.all_reduce(data)
        own.write(f"{n} {data.sum():.0f} {(data == 2 * numpy.arange(n)).all()}\\n")
    own.close()
"""


def expect(what, got, wanted):
    global checks
    checks += 1
    if got != wanted:
        failures.append(f"{what}: {got!r}, not {wanted!r}")


def start(closed, command, **settings):
    """The streams that are not closed are pipes."""
    def close():
        for stream in closed:
            os.close(stream)
    return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=close, env={**os.environ, **settings})


def end(process):
    """Its exit status, and what it printed."""
    try:
        out, error = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, error = process.communicate()
        return "late", out + error
    return process.returncode, out + error


def with_all(what, run):
    """run(closed, folder) returns what must be the same whatever is closed."""
    wanted = None
    for closed in CLOSED:
        with tempfile.TemporaryDirectory() as folder:
            got = run(closed, pathlib.Path(folder))
        if wanted is None:
            wanted = got
            print(f"{what}: {str(got)[:300]}")
        expect(f"{what} without {closed}", got, wanted)


def content(path):
    return path.read_text(encoding="utf-8") if path.exists() else None


def topo(closed, folder):
    machine = next((SOURCE / "tests/machines").glob("*.xml"))
    command = [BUILD / "tools/tutti-topo", "--file", machine, "--dump", folder / "a.xml", "--svg", folder / "a.svg"]
    status, said = end(start(closed, command))
    return status, hash(content(folder / "a.xml")), hash(content(folder / "a.svg"))


def this_machine(closed, folder):
    status, said = end(start(closed, [BUILD / "tools/tutti-topo", "--dump", folder / "a.xml"]))
    return status, hash(content(folder / "a.xml"))


def plan(closed, folder):
    command = [BUILD / "tools/tutti-plan", "svg", "all_reduce", "--algo", "ring", "-o", folder / "a.svg"]
    status, said = end(start(closed, command))
    return status, hash(content(folder / "a.svg"))


def perf(closed, folder):
    """Times differ."""
    command = [BUILD / "perf/all_reduce_perf", "--procs", 2, "-b", 8, "-e", "64K", "-f", 16, "-n", 2, "-w", 1, "--csv",
               folder / "a.csv"]
    status, said = end(start(closed, command, TUTTI_DEBUG="TRACE", TUTTI_TRANSPORT="socket"))
    lines = (content(folder / "a.csv") or "").splitlines()
    return status, [re.sub(r"\d+\.\d+", "#", line) for line in lines]


def python(closed, folder):
    job = f"closed-{uuid.uuid4()}"
    ranks = [start(closed if rank == 0 else (), [PYTHON, "-c", PYTHON_RANK, folder / str(rank)], TUTTI_RANK=str(rank),
                   TUTTI_NRANKS="2", TUTTI_JOB_ID=job, TUTTI_DEBUG="TRACE", TUTTI_TRANSPORT="socket",
                   PYTHONPATH=str(SOURCE / "python"), LD_LIBRARY_PATH=str(BUILD / "src"))
             for rank in range(2)]
    return [end(rank)[0] for rank in ranks], [content(folder / str(rank)) for rank in range(2)]


def mpi(name):
    def run(closed, folder):
        closing = " ".join(f"{stream}>&-" for stream in closed)
        program = ["bash", "-c", f"exec {closing}; exec \"$@\"", "bash", BUILD / f"tests/mpi_rules_{name}", "communicators"]
        command = [BUILD / "tools/tutti-mpirun", f"--mpirun={shutil.which(f'mpirun.{name}')}", "-n", 2, *program]
        if name == "openmpi":
            command[2:2] = ["--allow-run-as-root", "--oversubscribe"]
        return end(start((), command, TUTTI_DEBUG="TRACE", TUTTI_MPI_STATS="1"))[0]
    return run


with_all("tutti-topo on a recorded machine", topo)
with_all("tutti-topo on this machine", this_machine)
with_all("tutti-plan", plan)
with_all("all_reduce_perf", perf)
if PYTHON:
    with_all("Python", python)
for mpi_name in ("openmpi", "mpich"):
    if (BUILD / f"tests/mpi_rules_{mpi_name}").exists() and shutil.which(f"mpirun.{mpi_name}"):
        with_all(mpi_name, mpi(mpi_name))
print("\n".join(failures) if failures else f"{checks} programs did what they do with all streams open")
sys.exit(1 if failures else 0)
