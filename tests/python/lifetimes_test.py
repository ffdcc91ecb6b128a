#!/usr/bin/env python3
"""Does the memory of a call live until the call is done, whatever the program does with its objects meanwhile? To be run
with what is freed poisoned (tests/support/poison.cpp); the values of small temporaries show it without that too."""
import array
import ctypes
import gc
import unittest
import weakref

import numpy

import ranks as testing
import tutti
from tutti import _arrays, _interrupt

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 30


def other_work():
    """What a program does meanwhile, in memory that was freed."""
    return [numpy.array(float(i)) for i in range(20)], [numpy.full(5000, 77.0) for _ in range(4)]


def scalars_in_a_group(comm):
    for k in range(ROUNDS):
        loss, accuracy, shared = numpy.empty(1), numpy.empty(1), numpy.empty(1)
        values = numpy.array([10.0 + 10 * comm.rank + k])
        with tutti.group():
            comm.all_reduce(numpy.float64(1 + comm.rank + k), loss)
            comm.all_reduce(values[0], accuracy)
            comm.broadcast(numpy.ones(5).sum() + k, shared)
            other_work()
        assert (loss[0], accuracy[0], shared[0]) == (3 + 2 * k, 30 + 2 * k, 5 + k), (k, loss, accuracy, shared)


def scalars_on_a_stream(comm):
    with tutti.Stream() as stream:
        for k in range(ROUNDS):
            out, large = numpy.empty(1), numpy.ones(300_000, "float32")
            comm.all_reduce(large, stream=stream)
            comm.all_reduce(numpy.float64(k + comm.rank), out, stream=stream)
            other_work()
            stream.synchronize()
            assert out[0] == 2 * k + 1, (k, out)


def scalars_as_messages(comm):
    kinds = [numpy.float64, numpy.float32, numpy.int16, numpy.complex128, numpy.bool_, lambda x: numpy.datetime64(int(x), "s"),
             lambda x: numpy.bytes_(b"%09d" % x), lambda x: numpy.array([(int(x), x)], "i4, f8")[0]]
    if comm.rank == 0:
        requests = [comm.isend(kinds[i % len(kinds)](i), 1, i) for i in range(64)]
        requests += [comm.isend(bytes([i]) * 70_000, 1, 100 + i) for i in range(3)]
        requests += [comm.isend(memoryview(bytearray(b"b" * 70_000))[i:], 1, 110 + i) for i in range(3)]
        requests += [comm.isend(array.array("d", [i]) * 9000, 1, 120 + i) for i in range(3)]
        requests += [comm.isend((ctypes.c_double * 9000)(*[i] * 9000), 1, 130 + i) for i in range(3)]
        other_work()
        comm.barrier()
        for request in requests:
            request.wait()
        return
    comm.barrier()
    for i in range(64):
        wanted = numpy.asarray(kinds[i % len(kinds)](i))
        got = numpy.zeros(1, wanted.dtype)
        comm.irecv(got, 0, i).wait()
        assert got[0] == wanted, (i, got, wanted)
    for i in range(3):
        for tag, wanted in ((100, numpy.full(70_000, i, "uint8")), (110, numpy.full(70_000 - i, ord("b"), "uint8")),
                            (120, numpy.full(9000, float(i))), (130, numpy.full(9000, float(i)))):
            got = numpy.zeros_like(wanted)
            comm.irecv(got, 0, tag + i).wait()
            assert (got == wanted).all(), (tag, i)


def temporaries_of_torch(comm):
    """Tensors that are given other memory while a call uses what they had."""
    big = 30_000
    if comm.rank == 0:
        sent, parameter = torch.full((big,), 3.0), torch.nn.Parameter(torch.full((big,), 4.0))
        request = comm.isend(sent, 1, 5)
        sent.set_(torch.zeros(big))
        late = comm.isend(parameter, 1, 6)
        parameter.data = torch.zeros(big)
        views = comm.isend(torch.full((3, big), 5.0)[1].numpy(), 1, 7)
        with tutti.group():
            mine = torch.full((big,), 6.0)
            comm.send(mine, 1)
            mine.data = torch.zeros(big)
            other_work()
        comm.barrier()
        for one in (request, late, views):
            one.wait()
        return
    got = torch.zeros(big)
    with tutti.group():
        comm.recv(got, 0)
    assert (got == 6).all(), got
    comm.barrier()
    for tag, wanted in ((5, 3), (6, 4), (7, 5)):
        comm.irecv(got, 0, tag).wait()
        assert (got == wanted).all(), (tag, got)


def resized_in_a_group(comm):
    """Which no reference prevents: it is refused before anything is submitted."""
    for change in (lambda one: one.resize_(100_000), lambda one: one.resize_(0).storage().resize_(0)):
        x = torch.ones(1000)
        try:
            with tutti.group():
                comm.all_reduce(x)
                change(x)
            raise AssertionError("memory that was freed was used")
        except tutti.InvalidArgumentError as error:
            assert "all_reduce: the memory of a tensor was resized or freed" in str(error), error
    y = torch.ones(3)
    comm.all_reduce(y)
    assert (y == comm.size).all()


def dropped_operators(comm):
    x, y = numpy.full(3, 2.0 + comm.rank), numpy.zeros(3)

    def times(first, inout):
        numpy.asarray(inout)[:] *= numpy.asarray(first)

    with tutti.group():
        comm.all_reduce(x, y, op=comm.create_operator(times, "float64"))
        gc.collect()
        other_work()
    assert (y == 6).all(), y
    with tutti.Stream() as stream:
        comm.all_reduce(x, y, op=comm.create_operator(times, "float64"), stream=stream)
        gc.collect()
        other_work()
    assert (y == 6).all(), y


class Noted(numpy.ndarray):
    """An array that can be watched."""


def interrupted(after):
    """In place of _interrupt.run: Ctrl-C comes behind the function, or before it."""
    def run(function, arguments, handles):
        _interrupt.run = plain
        if after:
            function(*arguments)
        raise KeyboardInterrupt

    plain, _interrupt.run = _interrupt.run, run


def interrupted_while_it_begins(comm):
    """The request is nobody's; what it uses lives all the same."""
    if comm.rank == 0:
        sent = numpy.full(50_000, 8.0).view(Noted)
        watch = weakref.ref(sent)
        interrupted(after=True)
        try:
            comm.isend(sent, 1, 3)
            raise AssertionError("no interrupt")
        except KeyboardInterrupt:
            pass
        del sent
        gc.collect()
        assert watch() is not None, "the message is under way"
        comm.barrier()
        while comm._dropped:
            comm._end_dropped()
        assert watch() is None
        return
    comm.barrier()
    got = numpy.zeros(50_000)
    comm.irecv(got, 0, 3).wait()
    assert (got == 8).all()


def interrupted_at_the_end_of_a_group(comm):
    """The library's group has ended too, or later calls would be taken into it and do nothing."""
    x = numpy.ones(2)
    try:
        with tutti.group():
            with tutti.group():
                comm.all_reduce(x)
            interrupted(after=False)
        raise AssertionError("no interrupt")
    except KeyboardInterrupt:
        pass
    assert (x == 1).all()
    comm.all_reduce(x)
    assert (x == comm.size).all(), "a call that did nothing"


def an_exception_at_the_end_of_a_group_in_another(comm):
    """Whether it comes before or behind the library's end of the inner one, the outer one does nothing and says so."""
    from tutti import _group
    plain = _group._end
    for after in (False, True):
        x = numpy.ones(2)

        def end():
            _group._end = plain
            if after:
                plain()
            raise KeyboardInterrupt

        try:
            with tutti.group():
                try:
                    with tutti.group():
                        comm.all_reduce(x)
                        _group._end = end
                except KeyboardInterrupt:
                    pass
                comm.all_reduce(x)
            raise AssertionError("a group of which a part was dropped has succeeded")
        except tutti.Error:
            pass
        assert (x == 1).all()
        comm.all_reduce(x)
        assert (x == comm.size).all(), "a call that did nothing"


def another_thread_synchronises(comm):
    """Between what a call does before its submission and the submission."""
    stream, x = tutti.Stream(), numpy.ones(1000).view(Noted)
    watch = weakref.ref(x)
    if comm.rank == 0:
        plain = comm._run
        comm._run = lambda *everything: (stream.synchronize(), plain(*everything))
        comm.all_reduce(x, stream=stream)
        del comm._run, x
        gc.collect()
        assert watch() is not None, "the call is under way"
        comm.send(numpy.zeros(1), 1, stream=stream)  # behind it
    else:
        comm.all_reduce(x)
        comm.recv(numpy.zeros(1), 0)
    stream.close()


def a_communicator_that_is_dropped(comm):
    """Its calls on a stream are carried out."""
    part, x = comm.split(0), numpy.ones(200_000)
    with tutti.Stream() as stream:
        if comm.rank == 0:
            part.all_reduce(x, stream=stream)
            del part
            gc.collect()
            comm.barrier()
        else:
            comm.barrier()
            part.all_reduce(x)
        stream.synchronize()
    assert (x == comm.size).all()


def registered(comm):
    """What the library has announced to devices and peers stays there until it is taken back."""
    for keep in (False, True):
        x = numpy.ones(100_000).view(Noted)
        watch = weakref.ref(x)
        announced = comm.register(x)
        del x
        if keep:
            announced.deregister()
        del announced
        gc.collect()
        assert (watch() is None) == keep
    comm.barrier()
    other = comm.split(0)
    x = numpy.ones(1000).view(Noted)
    watch = weakref.ref(x)
    other.register(x)
    del x
    gc.collect()
    assert watch() is not None
    other.destroy()
    assert watch() is None


def all_ranks_in_a_group():
    with tutti.group():
        made = tutti.Communicator.init_all(2)
        other_work()
    x = [numpy.ones(3), numpy.ones(3)]
    with tutti.group():
        for comm, one in zip(made, x):
            comm.all_reduce(one)
    assert (numpy.array(x) == 2).all()
    with tutti.group():
        tutti.Communicator.init_all(3)  # wanted by nobody
        others = [ctypes.c_void_p(1234567) for _ in range(64)]
    assert all(other.value == 1234567 for other in others)
    with tutti.group():
        for comm in made:
            comm.barrier()
    for comm in made:
        comm.destroy()


class Lifetimes(unittest.TestCase):
    def test_scalars(self):
        for how in (scalars_in_a_group, scalars_on_a_stream, scalars_as_messages):
            with self.subTest(how.__name__):
                testing.run(2, how)

    @unittest.skipUnless(torch, "torch is not installed")
    def test_torch(self):
        testing.run(2, temporaries_of_torch)
        testing.run(2, resized_in_a_group)

    def test_operators(self):
        testing.run(2, dropped_operators)

    def test_interrupts(self):
        for how in (interrupted_while_it_begins, interrupted_at_the_end_of_a_group,
                    an_exception_at_the_end_of_a_group_in_another):
            with self.subTest(how.__name__):
                testing.run(2, how)

    def test_streams(self):
        testing.run(2, another_thread_synchronises)
        testing.run(2, a_communicator_that_is_dropped)

    def test_communicators(self):
        testing.run(2, registered)
        testing.start(1, all_ranks_in_a_group)


class Computed:
    """Hands out the memory of a temporary, by array interface or DLPack."""

    def __init__(self, count, whole=None):
        self.count, self.whole = count, whole

    @property
    def __array_interface__(self):
        return (numpy.full(self.count, 7.0) if self.whole is None else self.whole).__array_interface__


class ComputedDlpack(Computed):
    __array_interface__ = None

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        return (numpy.full(self.count, 7.0) if self.whole is None else self.whole).__dlpack__()


class Refused(unittest.TestCase):
    """What cannot be kept, or would be written to in vain, is refused in words."""

    def expect(self, words, of, writes=True):
        with self.assertRaisesRegex(tutti.InvalidArgumentError, f"call: array {words}"):
            _arrays.view_of(of, "call", "array", None, writes)

    def test_scalars_as_results(self):
        for scalar in (numpy.float32(2), numpy.ones(2).sum(), numpy.full(3, 2.0)[0], numpy.bool_(True), numpy.datetime64(5, "s")):
            self.expect(f"is a {type(scalar).__name__}, a value, and the call would write to a copy", scalar)
        with tutti.Communicator.init_all(1)[0] as comm:
            value = numpy.float64(1)
            for call in (comm.all_reduce, comm.broadcast, comm.scan, lambda one: comm.irecv(one, 0),
                         lambda one: comm.recv(one, 0), lambda one: comm.all_gather(None, one)):
                with self.assertRaisesRegex(tutti.InvalidArgumentError, "is a float64, a value"):
                    call(value)

    def test_memory_of_temporaries(self):
        whole = numpy.full(40, 7.0)
        for count in (1, 40, 3000, 100_000):
            self.expect("names other memory each time it is asked for its __array_interface__", Computed(count), writes=False)
            self.expect("hands out other memory each time", ComputedDlpack(count))
            held = _arrays.view_of(ComputedDlpack(count), "call", "array")  # to read is fine: the capsule holds it
            gc.collect()
            self.assertEqual((ctypes.c_double * count).from_address(held.address)[count - 1], 7)
        self.assertEqual(_arrays.view_of(Computed(0, whole), "call", "array", writes=True).address, whole.ctypes.data)
        if hasattr(whole, "__dlpack__"):
            self.assertEqual(_arrays.view_of(ComputedDlpack(0, whole), "call", "array", writes=True).address, whole.ctypes.data)

    def test_masks(self):
        self.expect("is an array with a mask", numpy.ma.masked_array([1.0, 2.0], [False, True]), writes=False)
        self.assertEqual(_arrays.view_of(numpy.ma.masked_array([1.0, 2.0]), "call", "array").elements, 2)


if __name__ == "__main__":
    unittest.main()
