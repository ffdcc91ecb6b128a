"""Collectives with equal counts, and point to point: methods of Communicator.

Arrays are contiguous: numpy's, torch's, CuPy's, or anything with the buffer protocol, `__array_interface__`,
`__cuda_array_interface__` or DLPack. A scalar of numpy (array[0], array.sum()) can be sent, and is refused where a call
writes. Sizes below are in elements, n is the number of ranks. All ranks make the same calls in the same order. Calls that
reduce take the types of tutti.DataType; the others move elements of any type. `dtype` says what the elements are where an
array cannot, for example dtype="bfloat16" for an array of uint16.

`stream`: None, and a call on host memory returns when it is complete on this rank; a tutti.Stream, and it returns at
once. A call on device memory is queued on the given CUDA stream (an integer, or an object with `__cuda_stream__`,
`cuda_stream` or `ptr`), None being CUDA's default stream. Arrays live at least until the call is done; their memory must
not be resized before (tensor.resize_, ndarray.resize without refcheck).

Errors of every call: InvalidArgumentError (refused, nothing has changed), InvalidUsageError (ranks made different
calls), RemoteError (a peer failed), TimeoutError, and for device memory UnhandledCudaError; TypeError for what is not
an array. All but the first and the last become the error of the communicator, and every later call raises it.
"""
from __future__ import annotations

from typing import Any, Sequence, Union

from ._call import Call
from ._library import lib
from ._types import RedOp

Op = Union[RedOp, str, Any]


class Collectives:
    """See the module."""

    rank: Any
    size: Any

    def all_reduce(self, send: Any, recv: Any = None, op: Op = "sum", *, dtype: Any = None, stream: Any = None) -> Any:
        """recv[i] = op over all ranks of send[i], on every rank. In place: recv is None. Returns the array of
        results."""
        call = Call(self, "all_reduce", dtype, stream)
        result = send if recv is None else recv
        target = call.target(result, "send" if recv is None else "recv")
        source = target if recv is None else call.source(send)
        call.require(source, target.elements, "as many as recv")
        call.run(lib.tuttiAllReduce, source.address, target.address, source.elements, call.reduced(),
                 call.operator(op))
        return result

    def reduce(self, send: Any, recv: Any = None, op: Op = "sum", root: int = 0, *, dtype: Any = None,
               stream: Any = None) -> Any:
        """As all_reduce, with the result on root only; recv is ignored on other ranks. In place: recv is None."""
        call = Call(self, "reduce", dtype, stream)
        if self.rank != root:
            source = call.source(send)
            address = None
        elif recv is None:
            source = call.target(send, "send")
            address = source.address
        else:
            source, target = call.source(send), call.target(recv)
            call.require(target, source.elements, "as many as send")
            address = target.address
        call.run(lib.tuttiReduce, source.address, address, source.elements, call.reduced(), call.operator(op),
                 root)
        return send if recv is None else recv

    def broadcast(self, send: Any, recv: Any = None, root: int = 0, *, dtype: Any = None, stream: Any = None) -> Any:
        """Copies root's send to every rank's recv; send is ignored on other ranks. recv None: send is both on every
        rank."""
        call = Call(self, "broadcast", dtype, stream)
        result = send if recv is None else recv
        target = call.target(result, "send" if recv is None else "recv")
        source = target
        if recv is not None and self.rank == root:
            source = call.source(send)
            call.require(source, target.elements, "as many as recv")
        kind, factor = call.moved()
        call.run(lib.tuttiBroadcast, source.address, target.address, target.elements * factor, kind, root)
        return result

    def all_gather(self, send: Any, recv: Any, *, dtype: Any = None, stream: Any = None) -> Any:
        """recv (n * m) = the send (m) of ranks 0, 1, ... In place: send is None, this rank's data is its block of
        recv."""
        call = Call(self, "all_gather", dtype, stream)
        target = call.target(recv)
        if send is None:
            count = call.block(target)
            address = target.address + self.rank * count * target.itemsize
        else:
            source = call.source(send)
            count, address = source.elements, source.address
            call.require(target, self.size * count, f"{self.size} ranks send {count} each")
        kind, factor = call.moved()
        call.run(lib.tuttiAllGather, address, target.address, count * factor, kind)
        return recv

    def reduce_scatter(self, send: Any, recv: Any = None, op: Op = "sum", *, dtype: Any = None,
                       stream: Any = None) -> Any:
        """recv (m) = block `rank` of the reduction over every rank's send (n * m). In place: recv is None, the result
        is this rank's block of send, and send is returned."""
        call = Call(self, "reduce_scatter", dtype, stream)
        if recv is None:
            source = call.target(send, "send")
            count = call.block(source)
            address = source.address + self.rank * count * source.itemsize
        else:
            source, target = call.source(send), call.target(recv)
            count, address = target.elements, target.address
            call.require(source, self.size * count, f"a block of {count} for each of {self.size} ranks")
        call.run(lib.tuttiReduceScatter, source.address, address, count, call.reduced(),
                 call.operator(op))
        return send if recv is None else recv

    def scan(self, send: Any, recv: Any = None, op: Op = "sum", *, dtype: Any = None, stream: Any = None) -> Any:
        """Prefix reduction: recv[i] = op over ranks 0 to this one of send[i], combined in the order of ranks. `op` is
        not "avg"; host memory only. In place: recv is None. Returns the array of results."""
        return self._prefix(lib.tuttiScan, "scan", send, recv, op, dtype, stream)

    def ex_scan(self, send: Any, recv: Any = None, op: Op = "sum", *, dtype: Any = None, stream: Any = None) -> Any:
        """As scan, over the ranks below this one: rank 1 gets rank 0's send. On rank 0 the array of results stays as it
        is. In place: recv is None."""
        return self._prefix(lib.tuttiExScan, "ex_scan", send, recv, op, dtype, stream)

    def _prefix(self, function: Any, name: str, send: Any, recv: Any, op: Op, dtype: Any, stream: Any) -> Any:
        call = Call(self, name, dtype, stream)
        result = send if recv is None else recv
        target = call.target(result, "send" if recv is None else "recv")
        source = target if recv is None else call.source(send)
        call.require(source, target.elements, "as many as recv")
        call.run(function, source.address, target.address, source.elements, call.reduced(), call.operator(op))
        return result

    def all_to_all(self, send: Any, recv: Any = None, *, dtype: Any = None, stream: Any = None) -> Any:
        """Block r of recv = block `rank` of rank r's send; both have n blocks. In place: recv is None (costs a
        copy)."""
        call = Call(self, "all_to_all", dtype, stream)
        result = send if recv is None else recv
        target = call.target(result, "send" if recv is None else "recv")
        source = target if recv is None else call.source(send)
        call.require(source, target.elements, "as many as recv")
        count = call.block(source)
        kind, factor = call.moved()
        call.run(lib.tuttiAllToAll, source.address, target.address, count * factor, kind)
        return result

    def gather(self, send: Any, recv: Any = None, root: int = 0, *, dtype: Any = None, stream: Any = None) -> Any:
        """root's recv (n * m) = the send (m) of ranks 0, 1, ...; recv is ignored on other ranks. In place on root: send
        is None, root's data is its block of recv."""
        call = Call(self, "gather", dtype, stream)
        if self.rank != root:
            source = call.source(send)
            count, address, into = source.elements, source.address, None
        else:
            target = call.target(recv)
            into = target.address
            if send is None:
                count = call.block(target)
                address = into + root * count * target.itemsize
            else:
                source = call.source(send)
                count, address = source.elements, source.address
                call.require(target, self.size * count, f"{self.size} ranks send {count} each")
        kind, factor = call.moved()
        call.run(lib.tuttiGather, address, into, count * factor, kind, root)
        return recv

    def scatter(self, send: Any, recv: Any = None, root: int = 0, *, dtype: Any = None, stream: Any = None) -> Any:
        """recv (m) = block `rank` of root's send (n * m); send is ignored on other ranks. In place on root: recv is
        None, root's result is its block of send."""
        call = Call(self, "scatter", dtype, stream)
        if self.rank != root:
            target = call.target(recv)
            count, address, source_address = target.elements, target.address, None
        elif recv is None:
            source = call.source(send)
            count, source_address = call.block(source), source.address
            address = source.address + root * count * source.itemsize
        else:
            source, target = call.source(send), call.target(recv)
            count, address, source_address = target.elements, target.address, source.address
            call.require(source, self.size * count, f"a block of {count} for each of {self.size} ranks")
        kind, factor = call.moved()
        call.run(lib.tuttiScatter, source_address, address, count * factor, kind, root)
        return recv

    def barrier(self, *, stream: Any = None) -> None:
        """No rank returns (or completes, on a stream) before all ranks have entered."""
        Call(self, "barrier", None, stream).run(lib.tuttiBarrier)

    def send(self, array: Any, peer: int, *, dtype: Any = None, stream: Any = None) -> None:
        """Sends an array to rank `peer`. The k-th send from a to b matches the k-th recv on b from a; counts and types
        are equal. Between ranks that both send and receive, use a group."""
        call = Call(self, "send", dtype, stream)
        source = call.source(array, "array")
        kind, factor = call.moved()
        call.run(lib.tuttiSend, source.address, source.elements * factor, kind, peer)

    def recv(self, array: Any, peer: int, *, dtype: Any = None, stream: Any = None) -> Any:
        """Receives into an array from rank `peer`; see send. Returns the array."""
        call = Call(self, "recv", dtype, stream)
        target = call.target(array, "array")
        kind, factor = call.moved()
        call.run(lib.tuttiRecv, target.address, target.elements * factor, kind, peer)
        return array
