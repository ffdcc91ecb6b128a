#!/usr/bin/env python3
"""Do the collectives with a count per rank give what numpy computes, with and without gaps, in place and not?"""
import unittest

import numpy

from collectives_test import expect
from kinds import Kind, REDUCED, inputs
import ranks as testing
import tutti

KINDS = [Kind(name) for name in ("int32", "float64", "bfloat16", "uint8", "int16", "complex128")]


def counts_of(ranks, seed):
    """Odd ones, with an empty block among them."""
    counts = numpy.random.default_rng(seed).integers(1, 40, ranks)
    counts[seed % ranks] = 0 if seed % 2 else counts[seed % ranks]
    return [int(count) for count in counts]


def layout(counts, gap):
    """Displacements with `gap` elements before each block, blocks in reverse order; None without a gap. And the
    size."""
    if gap == 0:
        return None, sum(counts)
    starts, at = [0] * len(counts), 0
    for rank in reversed(range(len(counts))):
        starts[rank] = at + gap
        at += gap + counts[rank]
    return starts, at


def start_of(counts, starts, rank):
    return sum(counts[:rank]) if starts is None else starts[rank]


def place(kind, counts, starts, size, blocks):
    """A buffer that holds these blocks, and ones in every bit between them."""
    buffer = kind.blank(size)
    for rank, values in blocks.items():
        at = start_of(counts, starts, rank)
        buffer[at:at + counts[rank]] = kind.of(values)
    return buffer


def all_gather_v(comm, kind, counts, starts, size, in_place):
    blocks = {rank: inputs(kind, rank, counts[rank]) for rank in range(comm.size)}
    out = place(kind, counts, starts, size, {comm.rank: blocks[comm.rank]} if in_place else {})
    comm.all_gather_v(None if in_place else kind.of(blocks[comm.rank]), out, counts, starts, dtype=kind.dtype)
    expect(out, place(kind, counts, starts, size, blocks), f"all_gather_v {kind} {counts} {starts} {in_place}")


def gather_v(comm, kind, counts, starts, size, in_place):
    blocks = {rank: inputs(kind, rank, counts[rank]) for rank in range(comm.size)}
    for root in range(comm.size):
        if comm.rank != root:
            comm.gather_v(kind.of(blocks[comm.rank]), root=root, dtype=kind.dtype)
            continue
        out = place(kind, counts, starts, size, {root: blocks[root]} if in_place else {})
        comm.gather_v(None if in_place else kind.of(blocks[root]), out, counts, starts, root, dtype=kind.dtype)
        expect(out, place(kind, counts, starts, size, blocks), f"gather_v {kind} {counts} {starts} {in_place}")


def scatter_v(comm, kind, counts, starts, size, in_place):
    for root in range(comm.size):
        blocks = {rank: inputs(kind, rank, counts[rank], root) for rank in range(comm.size)}
        mine = kind.blank(counts[comm.rank])
        if comm.rank != root:
            comm.scatter_v(None, mine, root=root, dtype=kind.dtype)
        else:
            whole = place(kind, counts, starts, size, blocks)
            comm.scatter_v(whole, None if in_place else mine, counts, starts, root, dtype=kind.dtype)
            expect(whole, place(kind, counts, starts, size, blocks), "the root's send")
        if comm.rank != root or not in_place:
            expect(mine, kind.of(blocks[comm.rank]), f"scatter_v {kind} {counts} {starts} {in_place}")


def all_to_all_v(comm, kind, counts, starts, size, in_place):
    """Rank s sends counts[s] + counts[r] elements to rank r, so that every pair has its own count."""
    pair = [counts[comm.rank] + counts[peer] for peer in range(comm.size)]
    gap = 0 if starts is None else 2
    places, total = layout(pair, gap)
    mine = place(kind, pair, places, total, {peer: inputs(kind, comm.rank, pair[peer], peer) for peer in range(comm.size)})
    received = {peer: inputs(kind, peer, pair[peer], comm.rank) for peer in range(comm.size)}
    if in_place:
        comm.all_to_all_v(mine, pair, None, send_displacements=places, dtype=kind.dtype)
        out = mine
    else:
        out = kind.blank(total)
        comm.all_to_all_v(mine, pair, out, pair, places, places, dtype=kind.dtype)
    expect(out, place(kind, pair, places, total, received), f"all_to_all_v {kind} {pair} {places} {in_place}")


def reduce_scatter_v(comm, kind, counts, starts, size, in_place):
    blocks = {rank: inputs(kind, comm.rank, counts[rank], rank) for rank in range(comm.size)}
    mine = place(kind, counts, starts, size, blocks)
    count = counts[comm.rank]
    result = kind.of(numpy.sum([inputs(kind, rank, count, comm.rank) for rank in range(comm.size)], axis=0))
    out = kind.blank(count)
    comm.reduce_scatter_v(mine, None if in_place else out, counts, starts, dtype=kind.dtype)
    if in_place:
        at = start_of(counts, starts, comm.rank)
        out = mine[at:at + count]
    expect(out, result, f"reduce_scatter_v {kind} {counts} {starts} {in_place}")


def every_layout(comm, function, kinds):
    for seed in range(4):
        counts = counts_of(comm.size, seed)
        for gap in (0, 3):
            starts, size = layout(counts, gap)
            for kind in kinds:
                for in_place in (False, True):
                    function(comm, kind, counts, starts, size, in_place)


def as_other_collectives(comm):
    """scatter_gather is a broadcast, an all-gather, and something that has no name, by its lists."""
    everyone = list(range(comm.size))
    mine, out = numpy.full(6, comm.rank, dtype="int32"), numpy.zeros(6, dtype="int32")
    comm.scatter_gather(mine, out, [0], everyone, 6, 6, dtype="int32")
    expect(out, numpy.zeros(6, dtype="int32"), "a broadcast")
    out = numpy.zeros(6 * comm.size, dtype="int32")
    comm.scatter_gather(mine, out, everyone, everyone, 6, 6)
    expect(out, numpy.repeat(numpy.arange(comm.size, dtype="int32"), 6), "an all-gather")
    last = comm.size - 1
    mine, out = numpy.arange(6) + 10 * comm.rank, numpy.zeros(3, dtype=int)
    comm.scatter_gather(mine, out, [last], [0], 3, 6, dtype="int64")
    if comm.rank == 0:
        expect(out, numpy.arange(3) + 10 * last, "the first half of what the last rank has")


class EveryCount(unittest.TestCase):
    def check(self, how, *arguments):
        for ranks in (1, 2, 3, 4):
            with self.subTest(ranks=ranks):
                testing.run(ranks, how, *arguments)

    def test_scatter_gather(self):
        self.check(as_other_collectives)


for name in ("all_gather_v", "gather_v", "scatter_v", "all_to_all_v"):
    setattr(EveryCount, f"test_{name}", lambda self, of=globals()[name]: self.check(every_layout, of, KINDS))
EveryCount.test_reduce_scatter_v = lambda self: self.check(every_layout, reduce_scatter_v, REDUCED)

if __name__ == "__main__":
    unittest.main()
