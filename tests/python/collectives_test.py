#!/usr/bin/env python3
"""Does each collective give on 1 to 4 ranks what numpy computes: every type, odd counts, none, in place, unaligned?"""
import unittest

import numpy

from kinds import COUNTS, MOVED, REDUCED, inputs
import ranks as testing
import tutti

REDUCTIONS = {"sum": lambda all_inputs: numpy.sum(all_inputs, axis=0), "prod": lambda a: numpy.prod(a, axis=0),
              "min": lambda a: numpy.min(a, axis=0), "max": lambda a: numpy.max(a, axis=0)}


def expect(got, values, what):
    if got.tobytes() != values.tobytes():
        raise AssertionError(f"{what}: got {got[:8]}, expected {values[:8]}")


def combined(kind, count, op, ranks):
    """Of the first so many ranks."""
    return kind.of(REDUCTIONS[op]([inputs(kind, rank, count) for rank in range(ranks)]))


def reduced(comm, kind, count, op):
    return combined(kind, count, op, comm.size)


def gathered(comm, kind, count):
    return kind.of(numpy.concatenate([inputs(kind, rank, count) for rank in range(comm.size)]))


def all_reduce(comm, kind, count, op, offset, in_place):
    mine = kind.copy(kind.of(inputs(kind, comm.rank, count)), offset)
    out = mine if in_place else kind.blank(count, offset)
    returned = comm.all_reduce(mine, None if in_place else out, op, dtype=kind.dtype)
    assert returned is out
    expect(out, reduced(comm, kind, count, op), f"all_reduce {kind} {count} {op} {offset} {in_place}")


def reduce(comm, kind, count, op, offset, in_place):
    for root in range(comm.size):
        mine = kind.copy(kind.of(inputs(kind, comm.rank, count)), offset)
        before, out = mine.copy(), kind.blank(count)
        comm.reduce(mine, None if in_place else out, op, root, dtype=kind.dtype)
        result = mine if in_place else out
        if comm.rank == root:
            expect(result, reduced(comm, kind, count, op), f"reduce {kind} {count} {op} to {root} {in_place}")
        else:
            expect(mine, before, "send of another rank than the root")
            expect(out, kind.blank(count), "recv of another rank than the root")


def reduce_scatter(comm, kind, count, op, offset, in_place):
    mine = kind.copy(kind.of(inputs(kind, comm.rank, comm.size * count)), offset)
    block = slice(comm.rank * count, (comm.rank + 1) * count)
    out = mine[block] if in_place else kind.blank(count, offset)
    comm.reduce_scatter(mine, None if in_place else out, op, dtype=kind.dtype)
    expect(out, reduced(comm, kind, comm.size * count, op)[block], f"reduce_scatter {kind} {count} {op} {in_place}")


def scan(comm, kind, count, op, offset, in_place):
    mine = kind.copy(kind.of(inputs(kind, comm.rank, count)), offset)
    out = mine if in_place else kind.blank(count, offset)
    returned = comm.scan(mine, None if in_place else out, op, dtype=kind.dtype)
    assert returned is out
    expect(out, combined(kind, count, op, comm.rank + 1), f"scan {kind} {count} {op} {offset} {in_place}")


def ex_scan(comm, kind, count, op, offset, in_place):
    mine = kind.copy(kind.of(inputs(kind, comm.rank, count)), offset)
    out = mine if in_place else kind.blank(count, offset)
    before = out.copy()
    comm.ex_scan(mine, None if in_place else out, op, dtype=kind.dtype)
    expected = combined(kind, count, op, comm.rank) if comm.rank > 0 else before
    expect(out, expected, f"ex_scan {kind} {count} {op} {offset} {in_place}")


def broadcast(comm, kind, count, offset, in_place):
    for root in range(comm.size):
        mine = kind.copy(kind.of(inputs(kind, comm.rank, count)), offset)
        out = mine if in_place else kind.blank(count, offset)
        send = mine if in_place or comm.rank == root else None
        comm.broadcast(send, None if in_place else out, root, dtype=kind.dtype)
        expect(out, kind.of(inputs(kind, root, count)), f"broadcast {kind} {count} from {root} {in_place}")


def all_gather(comm, kind, count, offset, in_place):
    out = kind.blank(comm.size * count, offset)
    mine = out[comm.rank * count:(comm.rank + 1) * count] if in_place else kind.blank(count, offset)
    mine[:] = kind.of(inputs(kind, comm.rank, count))
    comm.all_gather(None if in_place else mine, out, dtype=kind.dtype)
    expect(out, gathered(comm, kind, count), f"all_gather {kind} {count} {in_place}")


def gather(comm, kind, count, offset, in_place):
    for root in range(comm.size):
        at_root = comm.rank == root
        out = kind.blank(comm.size * count, offset) if at_root else None
        mine = out[root * count:(root + 1) * count] if at_root and in_place else kind.blank(count, offset)
        mine[:] = kind.of(inputs(kind, comm.rank, count))
        comm.gather(None if at_root and in_place else mine, out, root, dtype=kind.dtype)
        if at_root:
            expect(out, gathered(comm, kind, count), f"gather {kind} {count} to {root} {in_place}")


def scatter(comm, kind, count, offset, in_place):
    for root in range(comm.size):
        at_root = comm.rank == root
        whole = kind.of(inputs(kind, root, comm.size * count))
        block = slice(comm.rank * count, (comm.rank + 1) * count)
        mine = kind.copy(whole, offset) if at_root else None
        out = mine[block] if at_root and in_place else kind.blank(count, offset)
        comm.scatter(mine, None if at_root and in_place else out, root, dtype=kind.dtype)
        expect(out, whole[block], f"scatter {kind} {count} from {root} {in_place}")


def all_to_all(comm, kind, count, offset, in_place):
    mine = kind.copy(kind.of(inputs(kind, comm.rank, comm.size * count)), offset)
    out = mine if in_place else kind.blank(comm.size * count, offset)
    comm.all_to_all(mine, None if in_place else out, dtype=kind.dtype)
    block = slice(comm.rank * count, (comm.rank + 1) * count)
    blocks = [inputs(kind, rank, comm.size * count)[block] for rank in range(comm.size)]
    expect(out, kind.of(numpy.concatenate(blocks)), f"all_to_all {kind} {count} {in_place}")


def every_reduction(comm, function):
    for kind in REDUCED:
        for count in COUNTS:
            for op in REDUCTIONS:
                # Sums of small types are exact up to four.
                if not (kind.small and comm.size > 4):
                    function(comm, kind, count, op, offset=count % 3, in_place=False)
                    function(comm, kind, count, op, offset=0, in_place=True)


def every_move(comm, function):
    for kind in MOVED:
        for count in COUNTS:
            function(comm, kind, count, offset=count % 3, in_place=False)
            function(comm, kind, count, offset=1, in_place=True)


def average_and_scaled_sum(comm):
    """avg of equal inputs is the input; a sum of inputs times the rank is what numpy says."""
    for kind in REDUCED:
        mine = kind.of(numpy.full(17, 1))
        comm.all_reduce(mine, op=tutti.RedOp.AVG, dtype=kind.dtype)
        expect(mine, kind.of(numpy.full(17, 1)), f"avg {kind}")
    for name in ("int32", "float16", "float32", "float64"):
        op = comm.create_pre_mul_sum(comm.rank + 1, name)
        mine = numpy.full(5, 2, dtype=name)
        comm.all_reduce(mine, op=op)
        expect(mine, numpy.full(5, comm.size * (comm.size + 1), dtype=name), f"scaled sum {name}")
        op.destroy()
    op = comm.create_pre_mul_sum(2, "bfloat16")
    mine = numpy.full(5, 0x3F80, dtype=numpy.uint16)
    comm.all_reduce(mine, op=op, dtype="bfloat16")
    expect(mine, numpy.full(5, {1: 0x4000, 2: 0x4080, 3: 0x40C0, 4: 0x4100}[comm.size], dtype=numpy.uint16), "2 * 1 each")


def prefixes_have_no_average(comm):
    for call in (comm.scan, comm.ex_scan):
        try:
            call(numpy.zeros(3), op="avg")
        except tutti.InvalidArgumentError as error:
            assert "tuttiAvg" in str(error), error
        else:
            raise AssertionError("an average of a prefix")
    comm.barrier()


class EveryCollective(unittest.TestCase):
    def check(self, how, *arguments):
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                testing.run(ranks, how, *arguments)

    def test_average_and_scaled_sum(self):
        self.check(average_and_scaled_sum)

    def test_prefixes_have_no_average(self):
        self.check(prefixes_have_no_average)

    def test_a_wrong_result_is_seen(self):
        with self.assertRaises(AssertionError):
            expect(numpy.zeros(3), numpy.ones(3), "")
        with self.assertRaisesRegex(AssertionError, "one rank is wrong"):
            testing.run(2, wrong_on_one_rank)


def wrong_on_one_rank(comm):
    comm.barrier()
    if comm.rank == 1:
        expect(numpy.zeros(3), numpy.ones(3), "one rank is wrong")


for name in ("all_reduce", "reduce", "reduce_scatter", "scan", "ex_scan"):
    setattr(EveryCollective, f"test_{name}", lambda self, of=globals()[name]: self.check(every_reduction, of))
for name in ("broadcast", "all_gather", "gather", "scatter", "all_to_all"):
    setattr(EveryCollective, f"test_{name}", lambda self, of=globals()[name]: self.check(every_move, of))

if __name__ == "__main__":
    unittest.main()
