#!/usr/bin/env python3
"""MPI programs under tutti-mpirun: do they get MPI's results, and from whom?

Usage: mpi_test.py PART MPI BUILD      PART: same between progress mixed communicators errors
                                            callbacks late off programs;  MPI: openmpi mpich
Exit status 77: the launcher is not installed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
LIMIT_S = 240
ATTEMPTS = 3


def lost_at_the_end(output):
    """Whether all of the program is right and Open MPI's launcher alone complains.

    On a machine that stands still for seconds a rank of Open MPI 4 gives up before mpirun has answered its MPI_Finalize, and
    mpirun then takes the rank's end for a crash (open-mpi/ompi #7833, #10117).
    """
    return re.search("^(kept|all alike)$", output, re.M) and "exiting improperly" in output


def run(mpi, build, ranks, command, options=(), environment=()):
    """Output of a program that has to succeed."""
    launcher = shutil.which(f"mpirun.{mpi}")
    if launcher is None:
        print(f"skipped: mpirun.{mpi} is not installed")
        sys.exit(SKIPPED)
    started = [str(build / "tools/tutti-mpirun"), f"--mpirun={launcher}", *options, "-n", str(ranks), *map(str, command)]
    if mpi == "openmpi":
        started[2:2] = ["--allow-run-as-root", "--oversubscribe"]
    for _ in range(ATTEMPTS):
        ended = subprocess.run(started, env=os.environ | {"TUTTI_MPI_STATS": "1"} | dict(environment), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
        if ended.returncode == 0 or not lost_at_the_end(ended.stdout):
            break
    if ended.returncode != 0:
        sys.exit(f"{' '.join(started)}\nexit status {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def expect(output, pattern):
    if not re.search(pattern, output, re.M):
        sys.exit(f"no {pattern!r} in\n{output}")


def served(output):
    """The share of calls that tutti served, in percent."""
    expect(output, r"^all .* ([\d.]+) % by tutti$")
    return float(re.search(r"([\d.]+) % by tutti$", output, re.M).group(1))


def same(mpi, build):
    # MPICH's ranks never yield: with more of them than cores each of its own calls takes milliseconds.
    for ranks in (2, 3) if mpi == "openmpi" else (2,):
        output = run(mpi, build, ranks, [build / f"tests/mpi_same_{mpi}"], environment={"TUTTI_MPI_START": "early"}.items())
        expect(output, "^all alike$")
        expect(output, r"^MPI_Iscatterv +\d+ +0 ")
        # What is moved is always served; of reductions, those by operators that tutti lacks are left out, if long.
        expect(output, r"^MPI_Allreduce +\d+ +\d+ .*operator, too long")
        if served(output) < 95:
            sys.exit(output)


def between(mpi, build):
    for ranks in (2, 3, 4) if mpi == "openmpi" else (2,):
        output = run(mpi, build, ranks, [build / f"tests/mpi_between_{mpi}"])
        expect(output, "^all alike$")
        expect(output, r"^MPI_Reduce +\d+ +\d+ .*operator, too long")
        if served(output) < 98:
            sys.exit(output)


def rules(part, mpi, build, ranks=(2, 3), options=(), environment=()):
    output = ""
    for number in ranks if mpi == "openmpi" else (2,):
        output = run(mpi, build, number, [build / f"tests/mpi_rules_{mpi}", part], options, environment)
        expect(output, "^kept$")
    return output


def progress(mpi, build):
    # Over TCP, MPI sends long messages only while it is asked to.
    tcp = ["--mca", "btl", "tcp,self"] if mpi == "openmpi" else []
    served(rules("progress", mpi, build, options=tcp))
    rules("progress", mpi, build, ranks=(2,))


def mixed(mpi, build):
    expect(rules("mixed", mpi, build), r"^MPI_Iallreduce +[1-9]\d* +0 ")
    rules("mixed", mpi, build, ranks=(2,), environment={"TUTTI_TRANSPORT": "socket"}.items())


def communicators(mpi, build):
    expect(rules("communicators", mpi, build), r"^MPI_Iallreduce +\d+ +\d+ .*before the first blocking call")
    early = {"TUTTI_MPI_START": "early"}.items()
    expect(rules("communicators", mpi, build, environment=early), r"100\.0 % by tutti")


def errors(mpi, build):
    expect(rules("errors", mpi, build), "collective mismatch")


def callbacks(mpi, build):
    rules("callbacks", mpi, build)
    if mpi == "openmpi":  # MPICH 4.0.2 forgets the failure where another callback comes after it
        rules("callbacks", mpi, build, environment={"TUTTI_MPI_START": "early"}.items())


def late(mpi, build):
    output = rules("late", mpi, build, ranks=(2,), environment={"TUTTI_INIT_TIMEOUT_MS": "1500"}.items())
    if served(output) < 100:
        sys.exit(output)


def off(mpi, build):
    """Where one rank wants MPI to do it all, no rank differs."""
    program = [build / f"tests/mpi_rules_{mpi}", "mixed"]
    output = run(mpi, build, 2, ["sh", "-c", f'[ "${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}" = 1 ] && export TUTTI_MPI=off; exec {program[0]} mixed'])
    expect(output, "^kept$")
    if "by tutti" in output:
        sys.exit(output)


def programs(mpi, build):
    """Two programs of one MPI_COMM_WORLD: both are served."""
    program = [build / f"tests/mpi_rules_{mpi}", "communicators"]
    output = run(mpi, build, 1, [*program, ":", "-n", "1", *program])
    expect(output, "^kept$")
    expect(output, "collective calls of 2 ranks")


if __name__ == "__main__":
    part, mpi, build = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    {"same": same, "between": between, "progress": progress, "mixed": mixed, "communicators": communicators, "errors": errors,
     "callbacks": callbacks, "late": late, "off": off, "programs": programs}[part](mpi, build)
