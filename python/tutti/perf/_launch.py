"""Starts ranks on this host, where no launcher has."""
from __future__ import annotations

import argparse
import os
import subprocess
import sys
import uuid
from typing import List

# The variables by which each launcher is known; docs/launchers.md.
_LAUNCHERS = (("TUTTI_RANK", "TUTTI_NRANKS"), ("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK",),
              ("PMIX_RANK", "PMIX_NAMESPACE"), ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_STEP_ID"))


def local_ranks(options: argparse.Namespace) -> int:
    """How many ranks to start; 0: this process is one."""
    if options.as_rank:
        return 0
    if options.procs is not None:
        return int(options.procs)
    launched = any(all(name in os.environ for name in names) for names in _LAUNCHERS)
    return 0 if launched else 2


def start(ranks: int, options: argparse.Namespace, arguments: List[str]) -> int:
    """Runs this program once for each rank; returns the first exit status that is not 0."""
    job = f"perf-{uuid.uuid4()}"
    cores = sorted(os.sched_getaffinity(0))
    children = {}
    for rank in range(ranks):
        environment = dict(os.environ, TUTTI_RANK=str(rank), TUTTI_NRANKS=str(ranks), TUTTI_JOB_ID=job)
        child = subprocess.Popen([sys.executable, "-m", "tutti.perf", *arguments, "--as-rank"], env=environment)
        if not options.no_pin:
            os.sched_setaffinity(child.pid, [cores[rank % len(cores)]])
        children[child.pid] = child
    status = 0
    while children:
        try:
            pid, ended = os.wait()
        except KeyboardInterrupt:  # the ranks get it too
            continue
        child = children.pop(pid)
        child.returncode = os.waitstatus_to_exitcode(ended)
        if child.returncode != 0 and status == 0:
            status = child.returncode if child.returncode > 0 else 128 - child.returncode
            for other in children.values():
                other.terminate()
    return status
