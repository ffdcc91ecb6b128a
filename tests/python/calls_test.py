#!/usr/bin/env python3
"""Communicators, groups, streams, messages and memory, on 1 to 4 ranks."""
import ctypes
import gc
import os
import sys
import threading
import unittest
import warnings
import weakref

import numpy

import ranks as testing
import tutti


def ring(comm):
    """Each rank sends to its right and receives from its left: without a group that could block."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    mine, theirs = numpy.full(1001, comm.rank, dtype="int16"), numpy.zeros(1001, dtype="int16")
    with tutti.group():
        comm.send(mine, right)
        with tutti.group():
            comm.recv(theirs, left)
        assert not theirs.any(), "a group's calls begin at its end"
    assert (theirs == left).all()


def group_that_fails(comm):
    """Calls of a block that raises are not submitted, and the communicator can be used further."""
    x = numpy.full(4, 1.0)
    for refuse in (lambda: 1 // 0, lambda: comm.all_reduce(x, dtype="int8"), lambda: comm.send(x, 99)):
        try:
            with tutti.group():
                comm.all_reduce(x)
                refuse()
            raise AssertionError("the block raised nothing")
        except (ZeroDivisionError, tutti.InvalidArgumentError):
            pass
        assert (x == 1).all()
    comm.all_reduce(x)
    assert (x == comm.size).all()


def several_collectives(comm):
    a, b = numpy.full(3, 1.0), numpy.full(5, comm.rank)
    with tutti.group():
        comm.all_reduce(a)
        comm.broadcast(b, root=comm.size - 1)
    assert (a == comm.size).all() and (b == comm.size - 1).all()


def queue(comm):
    """Calls on a stream run in order; a blocking call comes behind those that are queued."""
    x = numpy.full(9, 1.0)
    with tutti.Stream() as stream:
        for _ in range(5):
            comm.all_reduce(x, stream=stream)
        stream.synchronize()
        assert stream.idle
        assert (x == comm.size**5).all()
        comm.all_reduce(x, stream=stream)
        comm.barrier()
        assert (x == comm.size**6).all()
        comm.barrier(stream=stream)
    try:
        comm.all_reduce(x, stream=stream)
        raise AssertionError("the stream was closed")
    except tutti.InvalidArgumentError as error:
        assert "the stream was closed" in str(error)


class Noted(numpy.ndarray):
    """An array that can be watched."""


def buffers_live(comm):
    """The array of a queued call lives until the call is done, and no longer."""
    looked = comm.split(0)
    if comm.rank != 0:
        looked.barrier()
        if comm.rank == comm.size - 1:
            comm.send(numpy.zeros(1), 0)
        comm.broadcast(numpy.zeros(1000))
        return looked.destroy()
    stream, received, array = tutti.Stream(), numpy.zeros(1).view(Noted), numpy.zeros(1000).view(Noted)
    watches = [weakref.ref(received), weakref.ref(array)]
    with tutti.group():
        comm.recv(received, comm.size - 1, stream=stream)
    comm.broadcast(array, stream=stream)
    del received, array
    gc.collect()
    assert all(watch() is not None for watch in watches) and not stream.idle, "the calls wait for the other ranks"
    looked.barrier()
    stream.synchronize()
    gc.collect()
    assert all(watch() is None for watch in watches), "the calls are done"
    stream.close()
    stream.close()
    looked.destroy()


def a_stream_that_is_dropped(comm):
    """It neither waits nor frees what its calls use."""
    looked = comm.split(0)
    if comm.rank == 0:
        stream, array = tutti.Stream(), numpy.zeros(1000).view(Noted)
        watch = weakref.ref(array)
        comm.broadcast(array, root=1, stream=stream)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            del stream, array
            gc.collect()
        assert [one.category for one in said] == [ResourceWarning], [str(one.message) for one in said]
        assert watch() is not None, "the other rank has not come yet"
    looked.barrier()
    if comm.rank == 1:
        comm.broadcast(numpy.zeros(1000), root=1)
    looked.destroy()


def a_group_that_fails_after_it_began(comm):
    """A call on a stream is under way, while a call without one in the same group fails: the array of the first
    lives."""
    first, second, looked = comm.split(0), comm.split(0), comm.split(0)
    if comm.rank == 0:
        stream, array = tutti.Stream(), numpy.zeros(1000).view(Noted)
        watch = weakref.ref(array)
        try:
            with tutti.group():
                first.broadcast(array, root=1, stream=stream)
                second.all_reduce(numpy.zeros(3))
            raise AssertionError("different counts passed")
        except tutti.InvalidUsageError:
            pass
        del array
        gc.collect()
        assert watch() is not None and not stream.idle
        looked.barrier()
        stream.synchronize()
    else:
        try:
            second.all_reduce(numpy.zeros(4))
        except tutti.InvalidUsageError:
            pass
        looked.barrier()
        first.broadcast(numpy.zeros(1000), root=1)
    second.abort()
    first.destroy()
    looked.destroy()


def dropped_where_warnings_are_errors(comm):
    """A stream frees nothing that its calls use, and a communicator neither waits nor stays."""
    part, looked = comm.split(0), comm.split(0)
    if comm.rank == 0:
        stream, array, raised = tutti.Stream(), numpy.zeros(1000).view(Noted), []
        watch = weakref.ref(array)
        part.broadcast(array, root=1, stream=stream)
        sys.unraisablehook = lambda error: raised.append(error.exc_type)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            del stream, array
            gc.collect()
            assert watch() is not None, "the other rank has not come"
            del part
            gc.collect()
        assert raised == [ResourceWarning] * 2
    looked.barrier()
    looked.destroy()
    if comm.rank == 1:
        try:
            part.broadcast(numpy.zeros(1000), root=1)
            part.barrier()
            raise AssertionError("the other rank has aborted")
        except tutti.RemoteError:
            part.abort()


def made_and_dropped_in_a_group():
    """The end of a group writes handles into communicators that the program does not hold."""
    comm = tutti.Communicator.init_all(1)[0]
    with tutti.group():
        comm.split(None)
        others = [ctypes.c_void_p(1234567) for _ in range(64)]
    assert all(other.value == 1234567 for other in others)
    comm.destroy()


def an_error_on_a_stream(comm):
    """It is raised by synchronize, once, and by every later call of the communicator."""
    stream = tutti.Stream()
    comm.all_reduce(numpy.zeros(3 + comm.rank), stream=stream)
    for call in (stream.synchronize, comm.barrier):
        try:
            call()
            raise AssertionError("different counts passed")
        except tutti.InvalidUsageError:
            pass
    stream.synchronize()
    assert comm.async_error() == tutti.Result.INVALID_USAGE
    comm.abort()
    comm.abort()
    assert comm.closed


def split(comm):
    part = comm.split(comm.rank % 2, key=-comm.rank)
    assert part.size == len(range(comm.rank % 2, comm.size, 2))
    x = numpy.array([comm.rank])
    out = numpy.zeros(part.size, dtype=x.dtype)
    part.all_gather(x, out)
    assert out.tolist() == sorted(range(comm.rank % 2, comm.size, 2), reverse=True)
    part.destroy()
    none = comm.split(None if comm.rank == 0 else 5)
    assert (none is None) == (comm.rank == 0)
    if none is not None:
        assert (none.rank, none.size) == (comm.rank - 1, comm.size - 1)
        none.destroy()
    if comm.rank < 2:
        pair = comm.create_group([1, 0] if comm.size > 1 else [0], name="pair", deterministic=True)
        assert pair.rank == (1 - comm.rank if comm.size > 1 else 0)
        pair.destroy()


def from_id(pipes):
    ranks, rank = len(pipes), int(os.environ["TUTTI_RANK"])
    if rank == 0:
        unique_id = tutti.UniqueId()
        for _, send in pipes[1:]:
            send.send(bytes(unique_id))
    else:
        unique_id = pipes[rank][0].recv()
    with tutti.Communicator.from_id(unique_id, ranks, rank, timeout_ms=60_000) as comm:
        assert (comm.rank, comm.size, comm.device, comm.closed) == (rank, ranks, -1, False)
        x = numpy.ones(1)
        comm.all_reduce(x)
        assert x[0] == ranks
        assert repr(comm) == f"<tutti.Communicator, rank {rank} of {ranks}>"
        assert len(comm.last_algorithm()) == 2
        assert "all_reduce" in comm.explain("all_reduce", 1000)
        comm.finalize()
    assert comm.closed and repr(comm) == "<tutti.Communicator, closed>"
    comm.destroy()
    try:
        comm.barrier()
        raise AssertionError("the communicator was destroyed")
    except tutti.InvalidArgumentError as error:
        assert "was destroyed or aborted" in str(error)


def in_a_group():
    """All ranks of a communicator in one thread."""
    unique_id = tutti.UniqueId()
    with tutti.group():
        comms = [tutti.Communicator.from_id(unique_id, 3, rank) for rank in range(3)]
        assert all(comm.closed for comm in comms)
    comms_by_number = tutti.Communicator.init_all(2)
    for made in (comms, comms_by_number):
        arrays = [numpy.full(7, comm.rank) for comm in made]
        with tutti.group():
            for comm, array in zip(made, arrays):
                comm.all_reduce(array)
        assert all((array == sum(range(len(made)))).all() for array in arrays)
        for comm in made:
            comm.destroy()
    tutti.UniqueId().drop()
    try:
        tutti.UniqueId(bytes(128)).drop()
        raise AssertionError("an id of nobody was dropped")
    except tutti.InvalidArgumentError:
        pass


def threads():
    """Ranks that are threads: a call that waits lets the others run."""
    unique_id, sums, failures = tutti.UniqueId(), [None] * 3, []

    def rank_of(rank):
        try:
            with tutti.Communicator.from_id(unique_id, 3, rank) as comm:
                x = numpy.full(50, rank)
                for _ in range(20):
                    comm.barrier()
                sums[rank] = comm.all_reduce(x).tolist()
        except BaseException as error:
            failures.append(error)

    started = [threading.Thread(target=rank_of, args=(rank,)) for rank in range(3)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(testing.LIMIT_S)
    assert not failures, failures
    assert sums == [[3] * 50] * 3


def memory(comm):
    """It is zeroed and mapped, and lives as long as an array made of it."""
    x = tutti.zeros((30, 7), "float32")
    assert x.shape == (30, 7) and not x.any()
    x += comm.rank
    comm.all_reduce(x)
    assert (x == sum(range(comm.size))).all()
    view = tutti.mem_alloc(100)
    assert len(view) == 100 and not any(view)
    array = numpy.frombuffer(view, dtype="int32")
    del view
    gc.collect()
    array[:] = 3
    comm.broadcast(array)
    assert array.sum() == 75
    assert tutti.zeros(0).size == 0 and tutti.zeros(numpy.int64(4)).shape == (4,)
    with comm.register(x) as registration:
        comm.all_reduce(x)
    try:
        registration.deregister()
        raise AssertionError("deregistered twice")
    except tutti.InvalidArgumentError:
        pass


def memory_is_freed():
    """What is freed is given out again, or given back: three hundred times 4 MB do not add up."""
    def mapped():
        with open("/proc/self/statm") as pages:
            return int(pages.read().split()[0]) * 4096

    tutti.zeros(1 << 19)
    before = mapped()
    for _ in range(300):
        tutti.zeros(1 << 19)
    assert mapped() - before < 1 << 30, f"{before} bytes before, {mapped()} after"


class Calls(unittest.TestCase):
    def check(self, how, sizes=(1, 2, 3, 4)):
        for ranks in sizes:
            with self.subTest(ranks=ranks):
                testing.run(ranks, how)

    def test_ring_in_a_group(self):
        self.check(ring)

    def test_group_that_fails(self):
        self.check(group_that_fails)

    def test_several_collectives_in_a_group(self):
        self.check(several_collectives)

    def test_stream(self):
        self.check(queue)

    def test_buffers_live_as_long_as_the_call(self):
        self.check(buffers_live, (2, 3))

    def test_a_stream_that_is_dropped(self):
        self.check(a_stream_that_is_dropped, (2,))

    def test_group_that_fails_after_it_began(self):
        self.check(a_group_that_fails_after_it_began, (2,))

    def test_dropped_where_warnings_are_errors(self):
        self.check(dropped_where_warnings_are_errors, (2,))

    def test_made_and_dropped_in_a_group(self):
        testing.start(1, made_and_dropped_in_a_group)

    def test_error_on_a_stream(self):
        self.check(an_error_on_a_stream, (2,))

    def test_split(self):
        self.check(split)

    def test_id(self):
        for ranks in (1, 2, 3, 4):
            pipes = [testing._fork.Pipe(duplex=False) for _ in range(ranks)]
            with testing.Job(ranks, from_id, pipes) as job:
                for outcome in job.outcomes():
                    self.assertEqual((outcome.trace, outcome.exitcode), (None, 0))

    def test_ranks_in_one_thread(self):
        testing.start(1, in_a_group)

    def test_ranks_that_are_threads(self):
        testing.start(1, threads)

    def test_memory(self):
        self.check(memory)
        testing.start(1, memory_is_freed)

    def test_an_id_has_its_size(self):
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "128 bytes, this has 3"):
            tutti.UniqueId(b"abc")


if __name__ == "__main__":
    unittest.main()
