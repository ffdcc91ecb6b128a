#!/usr/bin/env python3
"""On which core each rank of a perf program runs, by its launcher's variables.

Usage: perf/pin_test.py ALL_REDUCE_PERF
"""
import os
import re
import subprocess
import sys

PERF = sys.argv[1]
CORES = sorted(os.sched_getaffinity(0))
CALL = [PERF, "-b", "8", "-e", "8", "-n", "1", "-w", "0", "-T", "540"]
# What a launcher, or the script around the ranks, may have left in this test's own environment.
LAUNCHERS = re.compile("(LOCAL_)?RANK$|(LOCAL_)?WORLD_SIZE$|MASTER_|OMPI_|PMIX?_|MPI_LOCAL|SLURM_|TUTTI_(RANK|NRANKS)")
CLEAN = {name: value for name, value in os.environ.items() if not LAUNCHERS.match(name)}


def cores_of(ranks, *options):
    """Runs a process for each rank's variables; the core that the table names for each, or None."""
    started = [subprocess.Popen([*CALL, *options], env={**CLEAN, **variables, "TUTTI_JOB_ID": f"pin_test {os.getpid()}"},
                                stdout=subprocess.PIPE, text=True) for variables in ranks]
    text = "".join(process.communicate(timeout=560)[0] for process in started)
    rows = re.findall(r"(?m)^#  Rank +(\d+) Pid +\d+(?: Core +(\d+))?$", text)
    return [int(core) if core else None for _, core in sorted(rows, key=lambda row: int(row[0]))]


def torchrun(rank, ranks, **more):
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), **more}


def open_mpi(rank, ranks, local):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(ranks),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(local), "OMPI_COMM_WORLD_LOCAL_SIZE": str(ranks)}


def main():
    batch = {"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}  # of the script that starts the ranks
    cases = {
        "torchrun tells the local rank": ([torchrun(0, 2, LOCAL_RANK="1"), torchrun(1, 2, LOCAL_RANK="0")], [1, 0]),
        "two hosts with one rank each": ([torchrun(0, 2, LOCAL_RANK="0"), torchrun(1, 2, LOCAL_RANK="0")], [0, 0]),
        "Open MPI tells it": ([open_mpi(0, 2, 1), open_mpi(1, 2, 0)], [1, 0]),
        "nobody tells it": ([torchrun(0, 2), torchrun(1, 2)], [0, 1]),
        "it is another launcher's": ([torchrun(0, 2, **batch), torchrun(1, 2, **batch)], [0, 1]),
        "no launcher": ([{}], [0, 1]),
    }
    failures = 0
    for name, (ranks, local) in cases.items():
        got, wanted = cores_of(ranks), [CORES[nth % len(CORES)] for nth in local]
        if got != wanted:
            print(f"{name}: ranks run on cores {got}, not {wanted}")
            failures += 1
    got = cores_of([{}], "--no-pin")
    if len(CORES) > 1 and got != [None, None]:
        print(f"--no-pin: ranks run on cores {got}")
        failures += 1
    print(f"{len(cases) + 1} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
