"""Ranks for tests: forked processes that run a function each. The process that forks them never makes a
communicator."""
import multiprocessing
import multiprocessing.connection
import os
import time
import traceback
import uuid

import tutti

LIMIT_S = 300  # against hangs alone
_fork = multiprocessing.get_context("fork")


class Outcome:
    """How a rank ended: `value` of its function, or `trace` of the exception; neither if it was killed."""

    value = trace = exitcode = None


def _work(connection, rank, ranks, job, function, arguments):
    os.environ.update(TUTTI_RANK=str(rank), TUTTI_NRANKS=str(ranks), TUTTI_JOB_ID=job)
    try:
        said = (function(*arguments), None)
    except BaseException:  # also KeyboardInterrupt: what a rank ends by is for the test to judge
        said = (None, traceback.format_exc())
    connection.send(said)
    connection.close()


class Job:
    """Processes that are the ranks of one job. Leaving the `with` block ends those that still run."""

    def __init__(self, ranks, function, *arguments):
        job = f"test-{uuid.uuid4()}"
        self.processes, self.connections = [], []
        for rank in range(ranks):
            ours, theirs = _fork.Pipe(duplex=False)
            process = _fork.Process(target=_work, args=(theirs, rank, ranks, job, function, arguments))
            process.start()
            theirs.close()
            self.processes.append(process)
            self.connections.append(ours)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()

    def outcomes(self):
        """Of all ranks, once they have ended. AssertionError: some have not within the limit."""
        all_of_them, end = [], time.monotonic() + LIMIT_S
        for rank, (process, connection) in enumerate(zip(self.processes, self.connections)):
            outcome = Outcome()
            if not connection.poll(max(0, end - time.monotonic())):
                raise AssertionError(f"rank {rank} of {len(self.processes)} has not ended within {LIMIT_S} s")
            try:
                outcome.value, outcome.trace = connection.recv()
            except EOFError:
                pass
            process.join(LIMIT_S)
            outcome.exitcode = process.exitcode
            all_of_them.append(outcome)
        return all_of_them


def start(ranks, function, *arguments):
    """Results of `function(*arguments)` on each rank; AssertionError with the traces of all ranks that failed: the
    one that is wrong may well make a lower rank fail too, which then tells only that the other aborted."""
    with Job(ranks, function, *arguments) as job:
        outcomes = job.outcomes()
    failures = [
        f"rank {rank} of {ranks} ended with {outcome.exitcode}\n{outcome.trace}"
        for rank, outcome in enumerate(outcomes)
        if outcome.trace or outcome.exitcode != 0
    ]
    if failures:
        raise AssertionError("\n".join(failures))
    return [outcome.value for outcome in outcomes]


def _with_communicator(function, arguments):
    with tutti.Communicator.from_environment() as comm:
        return function(comm, *arguments)


def run(ranks, function, *arguments):
    """As start, for functions whose first argument is the communicator of all ranks."""
    return start(ranks, _with_communicator, function, arguments)


def wait_until(is_so, what):
    """Waits for a condition, with a distant limit."""
    end = time.monotonic() + LIMIT_S
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"waited {LIMIT_S} s for {what}")
        os.sched_yield()

