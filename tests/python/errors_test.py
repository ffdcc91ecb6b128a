#!/usr/bin/env python3
"""Do failures become exceptions with code and sentence: mismatches, killed peers, refused arguments, Ctrl-C?"""
import os
import pickle
import signal
import unittest

import numpy

import ranks as testing
import tutti


def error_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except tutti.Error as error:
        return error
    raise AssertionError(f"{call.__name__} raised nothing")


def different_counts(comm):
    return error_of(comm.all_reduce, numpy.zeros(3 + comm.rank))


def different_counts_per_rank(comm):
    counts = [3 + comm.rank, 5]
    return error_of(comm.all_gather_v, numpy.zeros(counts[comm.rank]), numpy.zeros(sum(counts)), counts)


def different_collectives(comm):
    if comm.rank == 0:
        return error_of(lambda: (comm.all_reduce(numpy.zeros(3)), comm.barrier()))
    return error_of(lambda: (comm.broadcast(numpy.zeros(3)), comm.barrier()))


def refused_then_used(comm):
    """A refused call changes nothing: every rank refuses alike, and the next call works."""
    x = numpy.full(6, 1.0)
    read_only = numpy.zeros(6)
    read_only.flags.writeable = False
    big_endian = numpy.zeros(6, dtype=">f8")
    words = {
        "strided": error_of(comm.all_reduce, numpy.zeros((6, 2))[:, 0]),
        "fortran": error_of(comm.broadcast, numpy.zeros((3, 2), order="F")),
        "bool": error_of(comm.all_reduce, numpy.zeros(6, dtype=bool)),
        "order of complex": error_of(comm.all_reduce, numpy.zeros(6, dtype=complex), op="max"),
        "bits of floats": error_of(comm.all_reduce, numpy.zeros(6), op="bit_xor"),
        "negative limit": error_of(comm.set_timeout, -1),
        "read-only": error_of(comm.all_reduce, read_only),
        "byte order": error_of(comm.all_reduce, big_endian),
        "two types": error_of(comm.all_reduce, x, numpy.zeros(6, dtype="float32")),
        "two sizes": error_of(comm.all_reduce, x, numpy.zeros(5)),
        "gathered size": error_of(comm.all_gather, x, numpy.zeros(11)),
        "blocks": error_of(comm.all_to_all, numpy.zeros(5)),
        "operator": error_of(comm.all_reduce, x, op="median"),
        "dtype": error_of(comm.all_reduce, x, dtype="float16"),
        "dtype of the same size": error_of(comm.all_reduce, x, dtype="int64"),
        "dtype of another size": error_of(comm.all_reduce, numpy.zeros(6, dtype="int16"), dtype="float32"),
        "unknown dtype": error_of(comm.all_reduce, x, dtype="float99"),
        "root": error_of(comm.broadcast, x, root=2),
        "peer": error_of(comm.send, x, 7),
        "overlap": error_of(comm.all_reduce, x[:4], x[2:]),
        "counts": error_of(comm.all_gather_v, x, numpy.zeros(12), [6]),
        "negative": error_of(comm.all_gather_v, x, numpy.zeros(12), [6, -1]),
        "outside": error_of(comm.all_gather_v, x, numpy.zeros(12), [6, 6], [0, 7]),
        "none": error_of(comm.all_gather, x, None),
        "stream": error_of(comm.all_reduce, x, stream="fast"),
        "objects": error_of(comm.broadcast, numpy.array([{}, {}])),
    }
    comm.all_reduce(x)
    return words, x.tolist()


REFUSED = {
    "strided": r"all_reduce: send is not contiguous \(shape \(6,\), strides \(16,\) bytes\)",
    "fortran": r"broadcast: send is not contiguous",
    "bool": r"all_reduce: send has elements of bool, which cannot be reduced",
    "order of complex": r"op max is for types that have an order, the call is complex128",
    "bits of floats": r"op bit_xor is for integers, the call is float64",
    "negative limit": r"set_timeout: .*timeoutMs -1 is negative",
    "read-only": r"all_reduce: send is read-only",
    "byte order": r"all_reduce: send has its bytes in the other order",
    "two types": r"elements of float32.*float64|elements of float64.*float32",
    "two sizes": r"send has 6 elements, it needs 5",
    "gathered size": r"recv has 11 elements, it needs 12: 2 ranks send 6 each",
    "blocks": r"send has 5 elements, which cannot be divided into equal blocks of 2 ranks",
    "operator": r"op 'median' is none of sum, prod, max, min, avg",
    "dtype": r"send has elements of float64, and dtype says float16",
    "dtype of the same size": r"send has elements of float64, and dtype says int64",
    "dtype of another size": r"send has elements of 2 bytes \(int16\); dtype float32 needs",
    "unknown dtype": r"'float99' is not one of tutti's types",
    "root": r"broadcast: invalid argument: .*2",
    "peer": r"send: invalid argument: .*7",
    "overlap": r"all_reduce: invalid argument: .*overlap",
    "counts": r"counts is \[6\]; it needs 2 numbers",
    "negative": r"counts is \[6, -1\]",
    "outside": r"recv has 12 elements, and its blocks end at element 13",
    "none": r"recv is None; rank \d needs an array",
    "stream": r"stream is a str: give a tutti.Stream",
    "objects": r"send holds Python objects",
}


def until_it_fails(comm, pids):
    x = numpy.zeros(4)
    comm.all_reduce(x)
    pids.put(os.getpid())
    return error_of(lambda: [comm.all_reduce(x) for _ in iter(int, 1)])


def waits_for_a_message(comm, pids, where):
    if comm.rank == 0:
        comm.barrier()
        pids.put(os.getpid())
        if where == "recv":
            comm.recv(numpy.zeros(1), 1)
        elif where == "stream":
            stream = tutti.Stream()
            comm.recv(numpy.zeros(1), 1, stream=stream)
            stream.synchronize()
        else:
            with tutti.group():
                comm.recv(numpy.zeros(1), 1)
    # The other rank may still be in the first when this one is interrupted.
    return error_of(lambda: [comm.barrier() for _ in range(2)])


def waits_to_start(pids):
    started = tutti._interrupt.threading.Thread.start

    def start(thread):
        started(thread)
        if thread.name == "tutti-init":
            pids.put(os.getpid())

    tutti._interrupt.threading.Thread.start = start  # the main thread waits for that one
    tutti.Communicator.from_environment()


def is_asleep(pid):
    """Whether the main thread of a process waits in the kernel: here, in the call under test."""
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"


class Failures(unittest.TestCase):
    def test_refused_calls_change_nothing(self):
        for words, x in testing.run(2, refused_then_used):
            self.assertEqual(x, [2.0] * 6)
            self.assertEqual(words.keys(), REFUSED.keys())
            for name, error in words.items():
                with self.subTest(name):
                    self.assertRegex(str(error), REFUSED[name])
                    self.assertIsInstance(error, tutti.InvalidArgumentError)
                    self.assertIsInstance(error, ValueError)
                    self.assertEqual(error.code, tutti.Result.INVALID_ARGUMENT)

    def test_mismatches_carry_code_and_sentence(self):
        for function, sentence in ((different_counts, "AllReduce.*3.*4|AllReduce.*4.*3"),
                                   (different_counts_per_rank, "(?s)AllGatherV float64.*sends [34] .*wants [34]"),
                                   (different_collectives, "(?s)AllReduce.*Broadcast|Broadcast.*AllReduce")):
            with self.subTest(function.__name__):
                errors = [outcome.value for outcome in self.outcomes(2, function)]
                for rank, error in enumerate(errors):
                    self.assertEqual((type(error), error.code), (tutti.InvalidUsageError, tutti.Result.INVALID_USAGE))
                    self.assertRegex(error.message, sentence)
                    self.assertIn(error.rank, (rank, None))

    def outcomes(self, ranks, function, *arguments):
        with testing.Job(ranks, open_communicator, function, arguments) as job:
            return job.outcomes()

    def test_a_killed_peer_raises_on_all_others(self):
        for ranks in (2, 3, 4):
            with self.subTest(ranks=ranks):
                pids = testing._fork.SimpleQueue()
                with testing.Job(ranks, open_communicator, until_it_fails, (pids,)) as job:
                    ready = {pids.get() for _ in range(ranks)}
                    self.assertEqual(ready, {process.pid for process in job.processes})
                    job.processes[-1].kill()
                    outcomes = job.outcomes()
                self.assertEqual(outcomes[-1].exitcode, -signal.SIGKILL)
                for outcome in outcomes[:-1]:
                    self.assertIsInstance(outcome.value, tutti.RemoteError, outcome.trace)
                    self.assertEqual(outcome.value.code, tutti.Result.REMOTE_ERROR)
                    self.assertEqual(outcome.value.peer, ranks - 1, str(outcome.value))

    def test_interrupt_ends_a_call_that_waits(self):
        for where in ("recv", "stream", "group"):
            with self.subTest(where):
                pids = testing._fork.SimpleQueue()
                with testing.Job(2, testing._with_communicator, waits_for_a_message, (pids, where)) as job:
                    pid = pids.get()
                    testing.wait_until(lambda: is_asleep(pid), "the rank to wait")
                    os.kill(pid, signal.SIGINT)
                    interrupted, other = job.outcomes()
                self.assertIn("KeyboardInterrupt", interrupted.trace)
                self.assertIn("waits_for_a_message", interrupted.trace)
                self.assertIsInstance(other.value, tutti.Error, other.trace)

    def test_interrupt_ends_a_start_that_waits(self):
        pids = testing._fork.SimpleQueue()
        with testing.Job(1, alone_of_two, waits_to_start, (pids,)) as job:
            pid = pids.get()
            testing.wait_until(lambda: is_asleep(pid), "the rank to wait")
            os.kill(pid, signal.SIGINT)
            trace = job.outcomes()[0].trace
        self.assertIn("KeyboardInterrupt", trace)
        self.assertIn("waits_to_start", trace)

    def test_errors_can_be_pickled(self):
        error = pickle.loads(pickle.dumps(tutti.RemoteError("rank 3 was killed [peer 3]", "barrier", 1, 3)))
        self.assertEqual((error.message, error.call, error.rank, error.peer), ("rank 3 was killed [peer 3]", "barrier", 1, 3))
        self.assertEqual(str(error), "barrier: rank 3 was killed [peer 3]")

    def test_every_result_has_its_exception(self):
        for code in set(tutti.Result) - {tutti.Result.SUCCESS, tutti.Result.IN_PROGRESS}:
            with self.assertRaises(tutti.Error) as caught:
                tutti._errors.raise_error(code, "call", "")
            self.assertEqual(caught.exception.code, code)


def open_communicator(function, arguments):
    """Without the end of a `with` block, which would abort or compare once more."""
    return function(tutti.Communicator.from_environment(), *arguments)


def alone_of_two(function, arguments):
    os.environ["TUTTI_NRANKS"] = "2"
    return function(*arguments)


if __name__ == "__main__":
    unittest.main()
