"""Operators and types that the host alone has, and limits of calls, against numpy."""
import unittest

import numpy
import tutti

import ranks

BITS = {"bit_and": numpy.bitwise_and, "bit_or": numpy.bitwise_or, "bit_xor": numpy.bitwise_xor}
TRUTH = {"logical_and": numpy.logical_and, "logical_or": numpy.logical_or, "logical_xor": numpy.logical_xor}
SUMS = {"sum": numpy.add, "prod": numpy.multiply}


def inputs(name, count, size):
    """Of every rank; small enough that sums and products of complex numbers are exact."""
    numbers = numpy.random.default_rng(count)
    if name.startswith("complex"):
        parts = numbers.integers(-2, 3, (2, size, count))
        return (parts[0] + 1j * parts[1]).astype(name)
    return numbers.integers(0, 100, (size, count)).astype(name) * numbers.integers(0, 2, (size, count)).astype(name)


def reduce_everything():
    with tutti.Communicator.from_environment() as comm:
        for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "complex64", "complex128"):
            operators = dict(SUMS) if name.startswith("complex") else {**BITS, **TRUTH, **SUMS}
            for op, definition in operators.items():
                for count in (1, 7, 5000):
                    everybody = inputs(name, count, comm.size)
                    result = numpy.zeros(count, dtype=name)
                    comm.all_reduce(everybody[comm.rank], result, op)
                    expected = everybody[0]
                    for one in everybody[1:]:
                        expected = definition(expected, one).astype(name)
                    numpy.testing.assert_array_equal(result, expected, f"{op} of {name} x {count}")


def wait_in_vain():
    with tutti.Communicator.from_environment() as comm:
        comm.barrier()
        comm.set_timeout(200 if comm.rank == 0 else None)
        try:
            if comm.rank == 0:
                comm.barrier()
        except tutti.TimeoutError as error:
            return str(error)
        while comm.async_error() == tutti.Result.SUCCESS:
            pass
        return "not rank 0"


def larger_by_size(first, inout):
    """Of complex numbers the one that is larger."""
    one, other = numpy.frombuffer(first, "complex64"), numpy.frombuffer(inout, "complex64")
    numpy.copyto(other, one, where=abs(one) > abs(other))


def append_digit(first, inout):
    """The numbers of ranks one behind the other, as decimals: associative, not commutative."""
    for i, one in enumerate(first):
        inout[i] += one * 10 ** len(str(inout[i]))


def reduce_by_own_functions():
    with tutti.Communicator.from_environment() as comm:
        largest = comm.create_operator(larger_by_size, "complex64")
        everybody = inputs("complex64", 30_000, comm.size)
        everybody *= (1 + 0.01 * numpy.arange(comm.size)).astype("float32").reshape(-1, 1)  # no two are equally large
        result = numpy.zeros(30_000, "complex64")
        comm.all_reduce(everybody[comm.rank], result, largest)
        numpy.testing.assert_array_equal(result, everybody[abs(everybody).argmax(0), numpy.arange(30_000)])
        largest.destroy()

        digits = comm.create_operator(append_digit, "int64")
        for count in (1, 3, 700):
            numbers = numpy.full(count, comm.rank + 1)
            comm.scan(numbers, op=digits)
            assert (numbers == int("1234"[:comm.rank + 1])).all(), numbers
        with tutti.Stream() as stream:
            queued = numpy.full(5, comm.rank + 1)
            comm.scan(queued, op=digits, stream=stream)
            digits.destroy()
            del digits
            stream.synchronize()
            assert (queued == int("1234"[:comm.rank + 1])).all(), queued


def fail_in_a_function(by_stream):
    """Who has nothing to combine has no error of his own."""
    def fails(first, inout):
        raise ArithmeticError("not like this")

    with tutti.Communicator.from_environment() as comm:
        op = comm.create_operator(fails, "int32")
        try:
            if by_stream:
                with tutti.Stream() as stream:
                    comm.all_reduce(numpy.zeros(10, "int32"), op=op, stream=stream)
                op.raise_error()
            else:
                comm.all_reduce(numpy.zeros(10, "int32"), op=op)
        except ArithmeticError as error:
            op.raise_error()  # once
            return str(error)
    return ""


def misuse_own_functions():
    said = []
    with tutti.Communicator.from_environment() as comm:
        op = comm.create_operator(append_digit, "int64")
        for call in (lambda: comm.all_reduce(numpy.zeros(3), op=op), lambda: comm.create_operator(None, "datetime64"),
                     op.destroy, op.destroy, lambda: comm.all_reduce(numpy.zeros(3, "int64"), op=op)):
            try:
                call()
            except tutti.InvalidArgumentError as error:
                said.append(str(error))
    return said


class Operators(unittest.TestCase):
    def test_give_what_numpy_gives(self):
        for size in (2, 3):
            ranks.start(size, reduce_everything)

    def test_of_the_program_give_what_they_should(self):
        for size in (1, 2, 4):
            ranks.start(size, reduce_by_own_functions)

    def test_of_the_program_that_fail_raise_in_the_call(self):
        for by_stream in (False, True):
            said = ranks.start(2, fail_in_a_function, by_stream)
            self.assertIn("not like this", said)
            self.assertLessEqual(set(said), {"", "not like this"})

    def test_of_the_program_are_for_their_type_and_communicator(self):
        for said in ranks.start(2, misuse_own_functions):
            for words, part in zip(said, ("made for int64", "datetime64", "op", "op")):
                self.assertIn(part, words)
            self.assertEqual(len(said), 4)

    def test_limits_end_calls_that_wait_in_vain(self):
        first, _ = ranks.start(2, wait_in_vain)
        self.assertIn("tuttiCommSetTimeout", first)
        self.assertIn("rank 1", first)


if __name__ == "__main__":
    unittest.main()
