"""Collectives with a count per rank: methods of Communicator. What tutti._collectives says holds here too.

`counts` and `displacements` have one number for each rank, in elements. Displacements count from the start of the
buffer; None: the blocks lie one after another in rank order. Sender and receiver of a block name the same count; if any
pair does not, all ranks get InvalidUsageError, which names both. What lies between blocks is neither read nor written.
"""
from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence

from ._call import Blocks, Call
from ._collectives import Op
from ._library import lib

Numbers = Optional[Sequence[int]]


class CountsPerRank:
    """See the module."""

    rank: Any
    size: Any

    def all_gather_v(self, send: Any, recv: Any, counts: Sequence[int], displacements: Numbers = None, *,
                     dtype: Any = None, stream: Any = None) -> Any:
        """Block r of every recv, counts[r] elements, = the send of rank r. In place: send is None, this rank's data is
        its block of recv. All ranks pass the same counts."""
        call = Call(self, "all_gather_v", dtype, stream)
        blocks = Blocks(call, self.size, counts, displacements)
        target = call.target(recv)
        blocks.require_within(target, "recv")
        count = blocks.counts[self.rank]
        if send is None:
            address = target.address + blocks.start(self.rank) * target.itemsize
        else:
            source = call.source(send)
            call.require(source, count, "counts[rank]")
            address = source.address
        kind, factor = call.moved()
        call.run(lib.tuttiAllGatherV, address, count * factor, target.address, *blocks.arrays(factor), kind)
        return recv

    def reduce_scatter_v(self, send: Any, recv: Any, counts: Sequence[int], displacements: Numbers = None,
                         op: Op = "sum", *, dtype: Any = None, stream: Any = None) -> Any:
        """recv = the reduction over all ranks of block `rank` of send, counts[rank] elements. In place: recv is None,
        the result is this rank's block of send, and send is returned. All ranks pass the same counts."""
        call = Call(self, "reduce_scatter_v", dtype, stream)
        blocks = Blocks(call, self.size, counts, displacements)
        count = blocks.counts[self.rank]
        if recv is None:
            source = call.target(send, "send")
            address = source.address + blocks.start(self.rank) * source.itemsize
        else:
            source, target = call.source(send), call.target(recv)
            call.require(target, count, "counts[rank]")
            address = target.address
        blocks.require_within(source, "send")
        call.run(lib.tuttiReduceScatterV, source.address, *blocks.arrays(1), address, count, call.reduced(),
                 call.operator(op))
        return send if recv is None else recv

    def all_to_all_v(self, send: Any, send_counts: Sequence[int], recv: Any, recv_counts: Numbers = None,
                     send_displacements: Numbers = None, recv_displacements: Numbers = None, *, dtype: Any = None,
                     stream: Any = None) -> Any:
        """Block r of recv, recv_counts[r] elements, = block `rank` of rank r's send, send_counts[rank] elements there.
        In place: recv is None; counts and displacements are then those of send for both (costs a copy)."""
        call = Call(self, "all_to_all_v", dtype, stream)
        sent = Blocks(call, self.size, send_counts, send_displacements, "send_counts")
        if recv is None:
            source = target = call.target(send, "send")
            received = sent
        else:
            received = Blocks(call, self.size, recv_counts, recv_displacements, "recv_counts")
            source, target = call.source(send), call.target(recv)
        sent.require_within(source, "send")
        received.require_within(target, "recv")
        kind, factor = call.moved()
        call.run(lib.tuttiAllToAllV, source.address, *sent.arrays(factor), target.address,
                 *received.arrays(factor), kind)
        return send if recv is None else recv

    def gather_v(self, send: Any, recv: Any = None, counts: Numbers = None, displacements: Numbers = None,
                 root: int = 0, *, dtype: Any = None, stream: Any = None) -> Any:
        """Block r of root's recv, counts[r] elements, = the send of rank r; recv, counts and displacements are ignored
        on other ranks. In place on root: send is None, root's data is its block of recv."""
        call = Call(self, "gather_v", dtype, stream)
        if self.rank != root:
            source = call.source(send)
            kind, factor = call.moved()
            call.run(lib.tuttiGatherV, source.address, source.elements * factor, None, None, None, kind, root)
            return recv
        blocks = Blocks(call, self.size, counts, displacements)
        target = call.target(recv)
        blocks.require_within(target, "recv")
        count, address = blocks.counts[root], target.address + blocks.start(root) * target.itemsize
        if send is not None:
            source = call.source(send)
            call.require(source, count, "counts[rank]")
            address = source.address
        kind, factor = call.moved()
        call.run(lib.tuttiGatherV, address, count * factor, target.address, *blocks.arrays(factor), kind, root)
        return recv

    def scatter_v(self, send: Any, recv: Any = None, counts: Numbers = None, displacements: Numbers = None,
                  root: int = 0, *, dtype: Any = None, stream: Any = None) -> Any:
        """recv = block `rank` of root's send, counts[rank] elements there; send, counts and displacements are ignored
        on other ranks. In place on root: recv is None, root's result is its block of send."""
        call = Call(self, "scatter_v", dtype, stream)
        if self.rank != root:
            target = call.target(recv)
            kind, factor = call.moved()
            call.run(lib.tuttiScatterV, None, None, None, target.address, target.elements * factor, kind, root)
            return recv
        blocks = Blocks(call, self.size, counts, displacements)
        source = call.source(send)
        blocks.require_within(source, "send")
        count, address = blocks.counts[root], source.address + blocks.start(root) * source.itemsize
        if recv is not None:
            target = call.target(recv)
            call.require(target, count, "counts[rank]")
            address = target.address
        kind, factor = call.moved()
        call.run(lib.tuttiScatterV, source.address, *blocks.arrays(factor), address, count * factor, kind, root)
        return recv

    def scatter_gather(self, send: Any, recv: Any, sources: Sequence[int], destinations: Sequence[int], unit_count: int,
                       total_count: int, *, dtype: Any = None, stream: Any = None) -> Any:
        """The general form of broadcast, scatter, gather, all-gather and all-to-all. Every rank names the same sources
        and destinations. Destination j of its list receives from every source the `unit_count` elements that begin at
        (j * unit_count) mod total_count of the source's send (total_count); those from source k go to k * unit_count of
        recv (number of sources * unit_count). Arrays of ranks that are not in a list are ignored; a rank in neither
        list says its dtype. unit_count divides total_count."""
        call = Call(self, "scatter_gather", dtype, stream)
        reads, writes = self.rank in sources, self.rank in destinations
        source = call.source(send) if reads else None
        target = call.target(recv) if writes else None
        if source is not None:
            call.require(source, total_count, "total_count")
        if target is not None:
            call.require(target, len(sources) * unit_count, f"{len(sources)} sources of unit_count {unit_count}")
        kind, factor = call.moved()
        lists = [(ctypes.c_int * len(ranks))(*ranks) for ranks in (sources, destinations)]
        call.run(lib.tuttiScatterGather, source.address if source else None,
                 target.address if target else None, lists[0], len(sources), lists[1],
                 len(destinations), unit_count * factor, total_count * factor, kind)
        return recv
