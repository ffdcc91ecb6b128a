"""Messages with tags: they come to the receives that they fit, and requests behave as documented."""
import gc
import unittest

import numpy
import tutti

import ranks


def neighbours(comm):
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def last_tag_first(count, dtype):
    """Received in the other order than sent, while a collective is under way on every rank."""
    with tutti.Communicator.from_environment() as comm:
        after, before = neighbours(comm)
        tags = range(5)
        sent = [numpy.full(count, 10 * comm.rank + tag, dtype) for tag in tags]
        requests = [comm.isend(array, after, tag) for tag, array in zip(tags, sent)]
        comm.barrier()
        for tag in reversed(tags):
            got = numpy.zeros(count + 3, dtype)
            status = comm.irecv(got, before, tag).wait()
            assert (status.source, status.tag, status.cancelled) == (before, tag, False), status
            assert status.count * status.dtype.itemsize == count * got.itemsize, status
            assert (got[:count] == numpy.full(count, 10 * before + tag, dtype)).all()
            assert (got[count:] == numpy.zeros(3, dtype)).all(), "written behind the message"
        for request in requests:
            assert request.wait().count == status.count
            assert request.ended and request.wait() == request.test()


def any_source(rounds):
    with tutti.Communicator.from_environment() as comm:
        for number in range(rounds):
            if comm.rank == 0:
                got = [numpy.zeros(1, "int64") for _ in range(comm.size - 1)]
                requests = [comm.irecv(array, tutti.ANY_SOURCE, tag=number) for array in got]
                sources = set()
                for array, request in zip(got, requests):
                    status = None
                    while status is None:
                        status = request.test()
                    assert array[0] == 1000 * status.source + number
                    sources.add(status.source)
                assert sources == set(range(1, comm.size))
            else:
                comm.isend(numpy.array([1000 * comm.rank + number]), 0, number).wait()


def peek():
    with tutti.Communicator.from_environment() as comm:
        after, before = neighbours(comm)
        assert comm.iprobe() is None
        comm.barrier()
        request = comm.isend(numpy.arange(20_000, dtype="float32"), after, 7)
        status = comm.probe(tag=7)
        assert (status.source, status.tag, status.count, status.dtype) == (before, 7, 20_000, tutti.DataType.FLOAT32)
        assert comm.iprobe(before) == status and comm.iprobe(tag=8) is None
        got = numpy.zeros(status.count, "float32")
        comm.irecv(got, status.source, status.tag).wait()
        assert (got == numpy.arange(20_000)).all()
        request.wait()
        comm.barrier()


def cancel_and_misfit():
    """Neither is an error of the communicator."""
    with tutti.Communicator.from_environment() as comm:
        after, before = neighbours(comm)
        lost = comm.irecv(bytearray(4), tag=1)
        assert lost.cancel() and lost.wait().cancelled
        comm.barrier()
        requests = [comm.isend(numpy.arange(8, dtype="int32"), after, 1) for _ in range(3)]
        small, other, fits = numpy.zeros(7, "int32"), numpy.zeros(8, "float32"), numpy.zeros(8, "int32")
        said = []
        for array in (small, other):
            request = comm.irecv(array, before, 1)
            try:
                request.wait()
            except tutti.InvalidUsageError as error:
                said.append(str(error))
            assert request.ended and not array.any()
        comm.irecv(fits, before, 1).wait()
        assert (fits == numpy.arange(8)).all() and comm.async_error() == tutti.Result.SUCCESS
        for request in requests:
            request.wait()
        return said


def dropped():
    """What nobody asks for any more still comes, and its memory lives until then."""
    with tutti.Communicator.from_environment() as comm:
        after, before = neighbours(comm)
        got = numpy.zeros(300_000)
        comm.isend(numpy.full(300_000, comm.rank + 1.0), after)  # longer than what is sent ahead
        gc.collect()
        assert len(comm._dropped) == 1
        comm.irecv(got, before).wait()
        assert (got == before + 1).all()
        comm.barrier()
        while comm._dropped:
            comm._end_dropped()


def refused():
    with tutti.Communicator.from_environment() as comm:
        said = []
        for call in (lambda: comm.isend(numpy.zeros(3), comm.size), lambda: comm.isend(numpy.zeros(3), 0, -1),
                     lambda: comm.irecv(b"read-only", 0), lambda: comm.irecv(numpy.zeros(3), -2),
                     lambda: comm.probe(tag=-5), lambda: comm.isend(None, 0)):
            try:
                call()
            except tutti.InvalidArgumentError as error:
                said.append(str(error))
        late = comm.irecv(numpy.zeros(1))
    try:
        late.wait()
    except tutti.InvalidUsageError as error:
        said.append(str(error))
    return said


class Messages(unittest.TestCase):
    def test_come_by_source_and_tag(self):
        for size in (1, 2, 3):
            for count, dtype in ((1, "int32"), (5000, "bool"), (100_000, "complex128"), (10, "datetime64[s]")):
                with self.subTest(size=size, dtype=dtype):
                    ranks.start(size, last_tag_first, count, dtype)

    def test_come_from_any_source(self):
        ranks.start(4, any_source, 20)

    def test_are_peeked_at(self):
        ranks.start(2, peek)

    def test_that_do_not_fit_or_are_cancelled_are_no_error_of_the_communicator(self):
        for too_long, other in ranks.start(2, cancel_and_misfit):
            self.assertIn("receives at most 7 x int32", too_long)
            self.assertIn("float32", other)

    def test_that_are_dropped_still_come(self):
        ranks.start(2, dropped)

    def test_are_refused_with_the_reason(self):
        for said in ranks.start(2, refused):
            for words, part in zip(said, ("peer 2", "tag -1", "read-only", "source -2", "tag -5", "None", "destroyed")):
                self.assertIn(part, words)
            self.assertEqual(len(said), 7)


if __name__ == "__main__":
    unittest.main()
