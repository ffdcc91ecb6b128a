"""torch's process group over a communicator: each method is one of torch.distributed's, and returns a Work."""
from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence

import torch
import torch.distributed as dist

import tutti

from ._communicators import Communicators
from ._gpu import gpu_of
from ._messages import Messages, publish, wait_for
from ._monitored_barrier import monitored_barrier
from ._sparse import all_reduce_sparse
from ._together import Together
from ._work import KEEPS_SUBCLASSES
from ._worker import Worker

_OPS = (("SUM", "sum"), ("PRODUCT", "prod"), ("MIN", "min"), ("MAX", "max"), ("AVG", "avg"),
        ("BAND", "bit_and"), ("BOR", "bit_or"), ("BXOR", "bit_xor"))
_FOREVER = timedelta(days=1)  # the longest limit that the library knows


def _op(options: Any) -> str:
    for theirs, ours in _OPS:
        if hasattr(dist.ReduceOp, theirs) and options.reduceOp == getattr(dist.ReduceOp, theirs):
            return ours
    raise RuntimeError(f"tutti: {options.reduceOp} is not one of SUM, PRODUCT, MIN, MAX, AVG, BAND, BOR and BXOR")


def _require_dense(tensors: Sequence[Any]) -> None:
    if any(tensor.is_sparse for tensor in tensors):
        raise RuntimeError("tutti: a tensor is sparse; pass tensor.to_dense()")


def _dense(tensor: Any) -> Any:
    """The tensor, or a contiguous copy."""
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _own(tensors: Sequence[Any]) -> List[Any]:
    """The list, or list of lists, as it is now: the caller's may be changed before the call is made."""
    return [list(one) if isinstance(one, (list, tuple)) else one for one in tensors]


def _put(target: Any, source: Any) -> None:
    """Results into a tensor of any strides."""
    if target is not source:
        target.copy_(source.view(target.shape))


def _flat(tensors: Sequence[Any]) -> Any:
    return torch.cat([_dense(tensor).view(-1) for tensor in tensors])


def _splits(tensor: Any, splits: Sequence[int], ranks: int) -> List[int]:
    """Elements for each rank, of a tensor that is split along its first dimension."""
    rows = tensor.size(0) if tensor.dim() else 1
    if not splits:
        if rows % ranks:
            raise RuntimeError(f"tutti: a tensor of {rows} rows cannot be split evenly among {ranks} ranks")
        splits = [rows // ranks] * ranks
    if len(splits) != ranks or sum(splits) != rows:
        raise RuntimeError(f"tutti: splits {list(splits)} do not divide {rows} rows among {ranks} ranks")
    width = tensor.numel() // rows if rows else 0
    return [split * width for split in splits]


def _called_by_cpp(method: str) -> bool:
    """Whether the Python code that leads to `method` does not name it, so that C++ code of torch is between them. A
    wrong answer costs only the overlap of the call with what follows."""
    return method not in sys._getframe(2).f_code.co_names


def _or_raise(work: Any, called_by_cpp: bool) -> Any:
    """The Work; where C++ code will wait for it, and would not see an error, only after the call has ended."""
    if called_by_cpp and not KEEPS_SUBCLASSES:
        work.wait()
    return work


class ProcessGroupTutti(dist.ProcessGroup):
    """See tutti.torch."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        limit_ms = max(1, int(min(timeout, _FOREVER).total_seconds() * 1000))
        if rank == 0:
            unique_id = tutti.UniqueId()
            publish(store, "id", bytes(unique_id))
        else:
            unique_id = tutti.UniqueId(wait_for(store, "id", timeout, "rank 0 to make the process group"))
        comm = tutti.Communicator.from_id(unique_id, size, rank, timeout_ms=limit_ms, device=-1)
        self._communicators, self._rank, self._size = Communicators(comm, limit_ms), rank, size
        self._worker = Worker("tutti-collectives", self._communicators.destroy, self._communicators.abort,
                              timeout.total_seconds())
        self._messages, self._timeout = Messages(store, rank, size, timeout), timeout
        self._store, self._barriers, self._sequence, self._group_name = store, 0, 0, ""
        self._together: Optional[List[Any]] = None  # works since _start_coalescing

    # What newer versions of torch ask before they split a group in C++, or put calls together on their own.
    supports_splitting = supports_coalescing = False

    def getBackendName(self) -> str:  # noqa: N802: torch's name
        return "tutti"

    # What torch asks a group since 2.0; the base class would ask a backend in C++. Not _device_types: a group that has
    # some gets a recorder of C++, which cannot read the group's name.
    def _get_backend(self, device: Any) -> "ProcessGroupTutti":
        return self

    def _set_group_name(self, name: str) -> None:
        self._group_name = name

    @property
    def group_name(self) -> str:
        return self._group_name

    def _set_sequence_number_for_group(self) -> None:
        """All ranks begin at zero, so that there is nothing to agree on."""

    def _get_sequence_number_for_group(self) -> int:
        """Number of collectives so far."""
        return self._sequence

    def shutdown(self) -> None:
        """Ends the group, after what is queued."""
        Worker.stop_all([*self._messages.workers(), self._worker])

    def abort(self) -> None:
        """Ends all calls, on the other ranks with an error."""
        self._communicators.abort()

    def __del__(self) -> None:
        if hasattr(self, "_messages"):
            self.shutdown()

    def _submit(self, name: str, tensors: Sequence[Any], call: Callable[[tutti.Communicator, Any], Any]) -> Any:
        """`name` is what other backends of torch call it. `call` gets the communicator for the tensors and the stream for
        its calls: None, or of the GPU where the tensors are, and then torch's current one too."""
        _require_dense(tensors)
        communicators = self._communicators
        place = communicators.place(tensors)
        self._sequence += 1
        return self._made(self._worker.submit(name, lambda: call(communicators.of(place), place.stream), place))

    def _made(self, work: Any) -> Any:
        if self._together is not None:
            self._together.append(work)
        return work

    def _start_coalescing(self, device: Any = None) -> None:
        """Calls from here on are one to whoever asked for it, until _end_coalescing; all the same they begin at once."""
        self._together = []

    def _end_coalescing(self, device: Any = None) -> Together:
        works, self._together = self._together or [], None
        return Together(works)

    def allreduce(self, tensors: List[Any], options: Any = None) -> Any:
        tensors = _own(tensors)
        op = "sum" if options is None else _op(options)
        if any(tensor.is_sparse for tensor in tensors):
            return self._allreduce_sparse(tensors, op)

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            dense = [_dense(tensor) for tensor in tensors]
            with tutti.group():
                for tensor in dense:
                    comm.all_reduce(tensor, op=op, stream=stream)
            for tensor, result in zip(tensors, dense):
                _put(tensor, result)
            return tensors

        return self._submit("all_reduce", tensors, call)

    allreduce_coalesced = allreduce

    def _allreduce_sparse(self, tensors: List[Any], op: str) -> Any:
        if op != "sum":
            raise RuntimeError(f"tutti: sparse tensors can only be summed; {op} is for dense ones")
        if gpu_of(tensors) is not None:
            raise RuntimeError(f"tutti: a sparse tensor is on {tensors[0].device}; sparse tensors are summed in host memory: "
                               "pass tensor.cpu(), or tensor.to_dense()")

        def call() -> Any:
            for tensor in tensors:
                all_reduce_sparse(self._communicators.on_host, tensor)
            return tensors

        return self._made(self._worker.submit("all_reduce", call))

    def broadcast(self, tensors: List[Any], options: Any) -> Any:
        by_cpp = _called_by_cpp("broadcast")

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            for tensor in tensors:
                dense = _dense(tensor)
                comm.broadcast(dense, root=options.rootRank, stream=stream)
                _put(tensor, dense)
            return tensors

        return _or_raise(self._submit("broadcast", tensors, call), by_cpp)

    def reduce(self, tensors: List[Any], options: Any) -> Any:
        op, root = _op(options), options.rootRank

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            for tensor in tensors:
                dense = _dense(tensor)
                comm.reduce(dense, op=op, root=root, stream=stream)
                if self._rank == root:
                    _put(tensor, dense)
            return tensors

        return self._submit("reduce", tensors, call)

    def allgather(self, outputs: List[List[Any]], inputs: List[Any], options: Any = None) -> Any:
        outputs, inputs = _own(outputs), _own(inputs)
        by_cpp = _called_by_cpp("allgather")

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            for parts, mine in zip(outputs, inputs):
                whole = mine.new_empty(self._size * mine.numel())
                comm.all_gather(_dense(mine), whole, stream=stream)
                for part, result in zip(parts, whole.chunk(self._size) if mine.numel() else parts):
                    _put(part, result)
            return outputs

        work = self._submit("all_gather", [*inputs, *(part for parts in outputs for part in parts)], call)
        return _or_raise(work, by_cpp)

    def allgather_into_tensor_coalesced(self, outputs: List[Any], inputs: List[Any], options: Any = None) -> Any:
        outputs, inputs = _own(outputs), _own(inputs)

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            dense = [_dense(output) for output in outputs]
            with tutti.group():
                for whole, mine in zip(dense, inputs):
                    comm.all_gather(_dense(mine), whole, stream=stream)
            for output, whole in zip(outputs, dense):
                _put(output, whole)
            return outputs

        return self._submit("_all_gather_base", [*outputs, *inputs], call)

    def _allgather_base(self, output: Any, mine: Any, options: Any = None) -> Any:
        return self.allgather_into_tensor_coalesced([output], [mine])

    def allgather_coalesced(self, outputs: List[List[Any]], inputs: List[Any], options: Any = None) -> Any:
        """outputs[rank][i] is the rank's inputs[i]."""
        by_tensor = [[parts[i] for parts in outputs] for i in range(len(inputs))]
        return self.allgather(by_tensor, inputs)

    def reduce_scatter(self, outputs: List[Any], inputs: List[List[Any]], options: Any) -> Any:
        outputs, inputs = _own(outputs), _own(inputs)
        op = _op(options)

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            for output, parts in zip(outputs, inputs):
                dense = _dense(output)
                comm.reduce_scatter(_flat(parts), dense, op, stream=stream)
                _put(output, dense)
            return outputs

        return self._submit("reduce_scatter", [*outputs, *(part for parts in inputs for part in parts)], call)

    def reduce_scatter_tensor_coalesced(self, outputs: List[Any], inputs: List[Any], options: Any) -> Any:
        outputs, inputs = _own(outputs), _own(inputs)
        op = _op(options)

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            dense = [_dense(output) for output in outputs]
            with tutti.group():
                for mine, whole in zip(dense, inputs):
                    comm.reduce_scatter(_dense(whole), mine, op, stream=stream)
            for output, mine in zip(outputs, dense):
                _put(output, mine)
            return outputs

        return self._submit("_reduce_scatter_base", [*outputs, *inputs], call)

    def _reduce_scatter_base(self, output: Any, whole: Any, options: Any) -> Any:
        return self.reduce_scatter_tensor_coalesced([output], [whole], options)

    def gather(self, outputs: List[List[Any]], inputs: List[Any], options: Any) -> Any:
        outputs, inputs = _own(outputs), _own(inputs)
        root = options.rootRank

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            mine = _dense(inputs[0])
            if self._rank != root:
                comm.gather(mine, root=root, stream=stream)
                return outputs
            whole = mine.new_empty(self._size * mine.numel())
            comm.gather(mine, whole, root, stream=stream)
            for part, result in zip(outputs[0], whole.chunk(self._size) if mine.numel() else outputs[0]):
                _put(part, result)
            return outputs

        return self._submit("gather", [*inputs, *(part for parts in outputs for part in parts)], call)

    def scatter(self, outputs: List[Any], inputs: List[List[Any]], options: Any) -> Any:
        outputs, inputs = _own(outputs), _own(inputs)
        root = options.rootRank

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            dense = _dense(outputs[0])
            comm.scatter(_flat(inputs[0]) if self._rank == root else None, dense, root, stream=stream)
            _put(outputs[0], dense)
            return outputs

        return self._submit("scatter", [*outputs, *(part for parts in inputs for part in parts)], call)

    def alltoall_base(self, output: Any, whole: Any, output_splits: List[int], input_splits: List[int],
                      options: Any = None) -> Any:
        sent, received = _splits(whole, input_splits, self._size), _splits(output, output_splits, self._size)

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            dense = _dense(output)
            comm.all_to_all_v(_dense(whole), sent, dense, received, stream=stream)
            _put(output, dense)
            return output

        return self._submit("all_to_all", [output, whole], call)

    def alltoall(self, outputs: List[Any], inputs: List[Any], options: Any = None) -> Any:
        outputs, inputs = _own(outputs), _own(inputs)
        sent, received = [part.numel() for part in inputs], [part.numel() for part in outputs]

        def call(comm: tutti.Communicator, stream: Any) -> Any:
            whole = outputs[0].new_empty(sum(received))
            comm.all_to_all_v(_flat(inputs), sent, whole, received, stream=stream)
            for part, result in zip(outputs, whole.split(received)):
                _put(part, result)
            return outputs

        return self._submit("all_to_all", [*outputs, *inputs], call)

    # The newest torch's names of these.
    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base
    all_to_all_single = alltoall_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def barrier(self, options: Any = None, **also: Any) -> Any:
        """Of the hosts; each comes to it when what its GPU has to do for the group and for the caller is done."""
        place = self._communicators.place([], self._communicators.gpu)

        def call() -> Any:
            if place.stream is not None:
                place.stream.synchronize()
            self._communicators.on_host.barrier()
            return []

        self._sequence += 1
        return self._made(self._worker.submit("barrier", call, place))

    def monitored_barrier(self, timeout: Any = None, wait_all_ranks: bool = False) -> None:
        """Waits for all ranks. `timeout` is a timedelta or a number of seconds, by default the limit of the group.

        Errors: RuntimeError (ranks have not come in time: on rank 0 it names the first of them, with `wait_all_ranks`
        all of them; the others are told that rank 0 met an error, after at most twice the limit).
        """
        self._barriers += 1
        limit = self._timeout if timeout is None else timeout
        monitored_barrier(self._store, f"barriers/{self._barriers}", self._rank, self._size, limit, wait_all_ranks)

    def send(self, tensors: List[Any], peer: int, tag: int = 0) -> Any:
        _require_dense(tensors)
        return self._made(self._messages.send(tensors[0], peer, tag))

    def recv(self, tensors: List[Any], peer: int, tag: int = 0) -> Any:
        _require_dense(tensors)
        return self._made(self._messages.recv(tensors[0], peer, tag))

    def recv_anysource(self, tensors: List[Any], tag: int = 0) -> Any:
        _require_dense(tensors)
        return self._made(self._messages.recv_any(tensors[0], tag))
