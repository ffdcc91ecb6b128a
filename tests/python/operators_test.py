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


class Operators(unittest.TestCase):
    def test_give_what_numpy_gives(self):
        for size in (2, 3):
            ranks.start(size, reduce_everything)

    def test_limits_end_calls_that_wait_in_vain(self):
        first, _ = ranks.start(2, wait_in_vain)
        self.assertIn("tuttiCommSetTimeout", first)
        self.assertIn("rank 1", first)


if __name__ == "__main__":
    unittest.main()
