"""The collectives that are measured: how each is called, what its result is, and its bus bandwidth."""
from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import tutti


class Region:
    """`nbytes` of memory from `start` on, as cheap to look at as an array can be."""

    def __init__(self, memory: "Memory", start: int, nbytes: int) -> None:
        self.memory, self.start, self.nbytes = memory, start, nbytes
        self.__array_interface__ = {
            "shape": (nbytes,), "typestr": "|u1", "data": (memory.address + start, False), "strides": None,
            "version": 3}

    def block(self, index: int, blocks: int) -> "Region":
        """One of so many equal parts."""
        nbytes = self.nbytes // blocks
        return Region(self.memory, self.start + index * nbytes, nbytes)


class Memory:
    """Memory that peers can map."""

    def __init__(self, nbytes: int) -> None:
        self.view = tutti.mem_alloc(max(nbytes, 1))
        self.address = tutti._arrays.view_of(self.view, "perf", "memory").address

    def region(self, nbytes: int) -> Region:
        return Region(self, 0, nbytes)


class Call(NamedTuple):
    """One size to measure: `send` and `recv` are what the collective takes."""

    comm: tutti.Communicator
    send: Region
    recv: Region
    dtype: tutti.DataType
    op: tutti.RedOp
    root: int

    @property
    def is_root(self) -> bool:
        return self.comm.rank == self.root


def _shift(call: Call) -> None:
    """To the next rank, from the one before."""
    comm = call.comm
    with tutti.group():
        comm.send(call.send, (comm.rank + 1) % comm.size, dtype=call.dtype)
        comm.recv(call.recv, (comm.rank - 1) % comm.size, dtype=call.dtype)


class Collective(NamedTuple):
    """`run(call)` makes the call, `run_in_place(call)` the one in place, with input and output at `in_place(call)`.
    `result(inputs, call)` is what the output then holds, with `inputs` one numpy array for each rank; None where it is
    left as it was. `bus_factor(n)` is the bus bandwidth over the algorithm's bandwidth. `send_blocks` and
    `recv_blocks`: the buffer has a block for each rank."""

    run: Callable[[Call], Any]
    run_in_place: Optional[Callable[[Call], Any]]
    in_place: Callable[[Call], Tuple[Region, Region]]
    result: Callable[[Any, Call], Any]
    bus_factor: Callable[[int], float]
    send_blocks: bool = False
    recv_blocks: bool = False
    has_op: bool = False
    has_root: bool = False


def _others(n: int) -> float:
    return (n - 1) / n


def _one(n: int) -> float:
    return 1.0


def _reduced(inputs: Any, call: Call) -> Any:
    import numpy

    if call.op == tutti.RedOp.AVG:
        total = numpy.sum(inputs, axis=0)
        mean = total / len(inputs)
        return numpy.trunc(mean) if numpy.issubdtype(inputs[0].dtype, numpy.integer) else mean
    of: Dict[tutti.RedOp, Any] = {tutti.RedOp.SUM: numpy.sum, tutti.RedOp.PROD: numpy.prod, tutti.RedOp.MIN: numpy.min,
                                  tutti.RedOp.MAX: numpy.max}
    return of[call.op](inputs, axis=0)


def _blocks(of: Callable[[int], Any], call: Call) -> Any:
    """This rank's block of the input of each rank."""
    import numpy

    rank, size = call.comm.rank, call.comm.size
    return numpy.concatenate([numpy.split(of(peer), size)[rank] for peer in range(size)])


def _joined(inputs: Any) -> Any:
    import numpy

    return numpy.concatenate(inputs)


def _own(whole: Any, call: Call) -> Any:
    """This rank's block."""
    import numpy

    return numpy.split(whole, call.comm.size)[call.comm.rank]


def _one_buffer(call: Call) -> Tuple[Region, Region]:
    return call.recv, call.recv


def _block_of_recv(call: Call) -> Tuple[Region, Region]:
    return call.recv.block(call.comm.rank, call.comm.size), call.recv


def _block_of_send(call: Call) -> Tuple[Region, Region]:
    return call.send, call.send.block(call.comm.rank, call.comm.size)


def _separate(call: Call) -> Tuple[Region, Region]:
    return call.send, call.recv


COLLECTIVES: Dict[str, Collective] = {
    "all_reduce": Collective(
        lambda c: c.comm.all_reduce(c.send, c.recv, c.op, dtype=c.dtype),
        lambda c: c.comm.all_reduce(c.recv, None, c.op, dtype=c.dtype),
        _one_buffer,
        _reduced, lambda n: 2 * (n - 1) / n, has_op=True),
    "all_gather": Collective(
        lambda c: c.comm.all_gather(c.send, c.recv, dtype=c.dtype),
        lambda c: c.comm.all_gather(None, c.recv, dtype=c.dtype),
        _block_of_recv,
        lambda inputs, c: _joined(inputs), _others, recv_blocks=True),
    "reduce_scatter": Collective(
        lambda c: c.comm.reduce_scatter(c.send, c.recv, c.op, dtype=c.dtype),
        lambda c: c.comm.reduce_scatter(c.send, None, c.op, dtype=c.dtype),
        _block_of_send,
        lambda inputs, c: _own(_reduced(inputs, c), c), _others, send_blocks=True, has_op=True),
    "broadcast": Collective(
        lambda c: c.comm.broadcast(c.send, c.recv, c.root, dtype=c.dtype),
        lambda c: c.comm.broadcast(c.recv, None, c.root, dtype=c.dtype),
        _one_buffer,
        lambda inputs, c: inputs[c.root], _one, has_root=True),
    "reduce": Collective(
        lambda c: c.comm.reduce(c.send, c.recv, c.op, c.root, dtype=c.dtype),
        lambda c: c.comm.reduce(c.recv, None, c.op, c.root, dtype=c.dtype),
        _one_buffer,
        lambda inputs, c: _reduced(inputs, c) if c.is_root else None, _one, has_op=True, has_root=True),
    "alltoall": Collective(
        lambda c: c.comm.all_to_all(c.send, c.recv, dtype=c.dtype),
        lambda c: c.comm.all_to_all(c.recv, None, dtype=c.dtype),
        _one_buffer,
        lambda inputs, c: _blocks(lambda peer: inputs[peer], c), _others, send_blocks=True, recv_blocks=True),
    "gather": Collective(
        lambda c: c.comm.gather(c.send, c.recv, c.root, dtype=c.dtype),
        lambda c: c.comm.gather(None if c.is_root else c.send, c.recv, c.root, dtype=c.dtype),
        lambda c: _block_of_recv(c) if c.is_root else _separate(c),
        lambda inputs, c: _joined(inputs) if c.is_root else None, _others, recv_blocks=True, has_root=True),
    "scatter": Collective(
        lambda c: c.comm.scatter(c.send, c.recv, c.root, dtype=c.dtype),
        lambda c: c.comm.scatter(c.send, None if c.is_root else c.recv, c.root, dtype=c.dtype),
        lambda c: _block_of_send(c) if c.is_root else _separate(c),
        lambda inputs, c: _own(inputs[c.root], c), _others, send_blocks=True, has_root=True),
    "scan": Collective(
        lambda c: c.comm.scan(c.send, c.recv, c.op, dtype=c.dtype),
        lambda c: c.comm.scan(c.recv, None, c.op, dtype=c.dtype),
        _one_buffer,
        lambda inputs, c: _reduced(inputs[:c.comm.rank + 1], c), _one, has_op=True),
    "ex_scan": Collective(
        lambda c: c.comm.ex_scan(c.send, c.recv, c.op, dtype=c.dtype),
        lambda c: c.comm.ex_scan(c.recv, None, c.op, dtype=c.dtype),
        _one_buffer,
        lambda inputs, c: _reduced(inputs[:c.comm.rank], c) if c.comm.rank else None, _one, has_op=True),
    "sendrecv": Collective(_shift, None, _separate, lambda inputs, c: inputs[(c.comm.rank - 1) % c.comm.size], _one),
}
