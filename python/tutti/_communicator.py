"""Communicators: how ranks become one, what it says of itself, how it ends."""
from __future__ import annotations

import ctypes
import os
import warnings
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence, Set, Tuple, Union

from . import _arrays, _cuda, _ending, _interrupt, _lifetime, _types
from ._collectives import Collectives
from ._counts import CountsPerRank
from ._errors import InvalidArgumentError, Result, check, raise_error, sentence
from ._library import Config, IdStruct, lib
from ._messages import Messages
from ._operators import Operator, PreMulSum
from ._registration import Registration

_NO_COLOR = -1  # TUTTI_SPLIT_NOCOLOR


class UniqueId:
    """Identifies a communicator that is to be made; one rank makes it, and passes bytes(id) to the others.

    It contains the secret that admits ranks, so pass it over a connection that you trust. The process that makes it
    listens for the ranks and must live until all of them are initialised.
    """

    def __init__(self, data: Optional[bytes] = None) -> None:
        """`data`: bytes(id) of another process, 128 bytes; None: a new id. Errors: InvalidArgumentError,
        SystemError."""
        self._struct = IdStruct()
        if data is None:
            check(lib.tuttiGetUniqueId(self._struct), "UniqueId")
            return
        if len(data) != ctypes.sizeof(IdStruct):
            raise InvalidArgumentError(f"an id has {ctypes.sizeof(IdStruct)} bytes, this has {len(data)}", "UniqueId")
        ctypes.memmove(ctypes.addressof(self._struct), bytes(data), len(data))

    def __bytes__(self) -> bytes:
        return bytes(self._struct)

    def drop(self) -> None:
        """Stops listening for ranks, where the id will not be used; ranks that wait get RemoteError.

        Errors: InvalidArgumentError (this process did not make the id, or all its ranks have connected).
        """
        check(lib.tuttiDropUniqueId(self._struct), "UniqueId.drop")


def _config(deterministic: Optional[bool], timeout_ms: Optional[int], name: Optional[str],
            device: Optional[int]) -> Config:
    config = Config()
    if deterministic is not None:
        config.deterministic = int(deterministic)
    if timeout_ms is not None:
        config.timeoutMs = timeout_ms
    if name is not None:
        config.name = name.encode()
    if device is not None:
        config.device = device
    return config


class Communicator(Collectives, CountsPerRank, Messages):
    """Ranks that communicate. One thread at a time may use a communicator; any thread may call abort() and
    async_error().

    Made by from_environment, from_id, init_all, split or create_group, not by calling the class. As a context manager
    it is destroyed at the end of the `with` block, and aborted if the block raises an exception, so that the other
    ranks fail at once too. One that is dropped is destroyed, or aborted where its calls may be under way or an exception
    ended the program.

    Arrays are contiguous; sizes below are in elements, and n is the number of ranks. Arrays of one call have the same
    element type, which `dtype` says where an array cannot: dtype="bfloat16" for an array of uint16. Without a `stream`
    a call on host memory returns when it is complete on this rank.

    Errors of every call: InvalidArgumentError (refused, nothing has changed), InvalidUsageError (ranks have made
    different calls), RemoteError (a peer failed), TimeoutError (of set_timeout or TUTTI_TIMEOUT_MS), SystemError, for device
    memory UnhandledCudaError; TypeError for what is not an array. All but the first and the last become the error of
    the communicator, and every later call raises it.

    Optional arguments of what makes communicators:
      deterministic  True: the bits of reductions do not depend on message size, transport or placement
      timeout_ms     limit of this start in milliseconds; replaces TUTTI_INIT_TIMEOUT_MS
      name           for log lines and errors
      device         number of this rank's GPU; -1: host memory only. By default the GPU of the thread's current CUDA
                     context, else host memory only; what is made from a communicator takes its GPU
    """

    _handle: c_void_p

    def __init__(self) -> None:
        raise TypeError("use Communicator.from_environment, from_id or init_all")

    @classmethod
    def _empty(cls) -> "Communicator":
        made = object.__new__(cls)
        made._handle = c_void_p()
        made._rank = made._size = made._device = None
        made._dropped, made._registered, made._streams = {}, {}, set()
        made._used_gpu, made._process = False, os.getpid()
        if _lifetime.group.depth:
            _lifetime.group.made.append(made)
        return made

    # ---- Start

    @classmethod
    def from_environment(cls, *, deterministic: Optional[bool] = None, timeout_ms: Optional[int] = None,
                         name: Optional[str] = None, device: Optional[int] = None) -> "Communicator":
        """Joins the ranks of the launcher that started this process: torchrun, mpirun, mpiexec, srun, or TUTTI_RANK and
        TUTTI_NRANKS. All ranks of the job call it, equally often.

        Errors: InvalidUsageError (no launcher, or an incomplete one: the message names what is missing), TimeoutError
        (names the missing ranks), InvalidArgumentError, RemoteError, SystemError, UnhandledCudaError.
        """
        config = _config(deterministic, timeout_ms, name, device)
        return cls._start("from_environment", lambda handle: lib.tuttiCommInitFromEnv(handle, config), config)

    @classmethod
    def from_id(cls, unique_id: Union[UniqueId, bytes], nranks: int, rank: int, *, deterministic: Optional[bool] = None,
                timeout_ms: Optional[int] = None, name: Optional[str] = None,
                device: Optional[int] = None) -> "Communicator":
        """Joins the communicator of an id as `rank` of `nranks`; waits until all ranks have joined. In a group it can
        be used after the end of the group.

        Errors: TimeoutError (names the missing ranks), InvalidUsageError (duplicate rank; ranks that disagree),
        RemoteError, SystemError, InvalidArgumentError (also: no such GPU), UnhandledCudaError.
        """
        config = _config(deterministic, timeout_ms, name, device)
        known = unique_id if isinstance(unique_id, UniqueId) else UniqueId(unique_id)
        return cls._start(
            "from_id", lambda handle: lib.tuttiCommInitRankConfig(handle, nranks, known._struct, rank, config), config)

    @classmethod
    def init_all(cls, ranks: Union[int, Sequence[int]]) -> "List[Communicator]":
        """Makes all ranks in this process: `ranks` is their number, or the GPU of each. Calls of ranks that one thread
        drives go into a group. Errors: as from_id."""
        count = ranks if isinstance(ranks, int) else len(ranks)
        devices = None if isinstance(ranks, int) else (c_int * count)(*ranks)
        handles = (c_void_p * max(count, 0))()
        made = [cls._empty() for _ in range(count)]
        for rank, communicator in enumerate(made):  # of the same memory, as in a group the handles are set at its end
            communicator._handle = c_void_p.from_buffer(handles, rank * ctypes.sizeof(c_void_p))
        _interrupt.arm(lib.tuttiCommAbort)
        check(lib.tuttiCommInitAll(handles, count, devices), "init_all")
        return made

    @classmethod
    def _start(cls, call: str, start: Callable[[c_void_p], int], config: Config) -> "Communicator":
        made = cls._empty()
        _interrupt.arm(lib.tuttiCommAbort)
        if _lifetime.group.depth:  # groups belong to a thread; the handle is set at the end of the group
            check(start(made._handle), call)
            return made
        if config.device == Config().device:  # the thread that starts it has no current GPU
            current = _cuda.current_device()
            config.device = config.device if current is None else current
        words: List[str] = []

        def work() -> int:
            result = start(made._handle)
            if result:
                words.append(sentence(None))
            return result

        result = _interrupt.run_aside(work, made._drop)
        if result:
            raise_error(result, call, words[0] if words else sentence(None))
        return made

    def _drop(self) -> None:
        """Nobody waits for this communicator any more."""
        handle, self._handle = self._handle, c_void_p()
        if handle.value:
            lib.tuttiCommAbort(handle)

    def split(self, color: Optional[int], key: int = 0, *, deterministic: Optional[bool] = None,
              timeout_ms: Optional[int] = None, name: Optional[str] = None,
              device: Optional[int] = None) -> "Optional[Communicator]":
        """Every rank calls it: the ranks of one color form a communicator, ordered by (key, rank). A rank whose color
        is None is in none of them, and gets None. Errors: as from_id, and those of collectives."""
        made = self._empty()
        config = _config(deterministic, timeout_ms, name, device)
        self._run("split", lib.tuttiCommSplit, self._handle, _NO_COLOR if color is None else color, key, made._handle,
                  config)
        return None if color is None else made

    def create_group(self, ranks: Sequence[int], *, deterministic: Optional[bool] = None,
                     timeout_ms: Optional[int] = None, name: Optional[str] = None,
                     device: Optional[int] = None) -> "Communicator":
        """The listed ranks call it, with the same list, and no others: rank i of the new communicator is ranks[i].
        The loss of a rank that is not listed does not matter, before or meanwhile. Errors: as split."""
        made = self._empty()
        config = _config(deterministic, timeout_ms, name, device)
        self._run("create_group", lib.tuttiCommCreateGroup, self._handle, (c_int * len(ranks))(*ranks), len(ranks),
                  made._handle, config)
        return made

    # ---- What it says of itself

    @property
    def rank(self) -> int:
        """This process's number, from 0 to size - 1."""
        if self._rank is None:
            self._rank = self._number("rank", lib.tuttiCommUserRank)
        return self._rank

    @property
    def size(self) -> int:
        """Number of ranks."""
        if self._size is None:
            self._size = self._number("size", lib.tuttiCommCount)
        return self._size

    @property
    def device(self) -> int:
        """Number of this rank's GPU; -1: host memory only."""
        if self._device is None:
            self._device = self._number("device", lib.tuttiCommDevice)
        return self._device

    @property
    def closed(self) -> bool:
        """Whether it was destroyed or aborted, or is still to be made by the end of a group."""
        return not self._handle.value

    def async_error(self) -> Result:
        """Result.SUCCESS, or the first error that the communicator has met. Any thread may ask, at any time."""
        return Result(self._number("async_error", lib.tuttiCommGetAsyncError))

    def last_algorithm(self) -> Tuple[str, str]:
        """Algorithm and transport of the last completed collective, for example ("two_shot", "mapped")."""
        algorithm, transport = c_char_p(), c_char_p()
        self._check(lib.tuttiCommLastAlgorithm(self._handle, algorithm, transport), "last_algorithm")
        return (algorithm.value or b"").decode(), (transport.value or b"").decode()

    def explain(self, collective: str, count: int, dtype: Any = "float32") -> str:
        """Which algorithm a call of `count` elements would use and why, with the predicted time of each. For diagnosis:
        it takes milliseconds. Errors: InvalidArgumentError."""
        kind, length = _types.data_type(dtype, "explain"), c_size_t()
        ask = (self._handle, collective.encode(), count, kind)
        self._check(lib.tuttiCommExplain(*ask, None, 0, length), "explain")
        text = ctypes.create_string_buffer(length.value + 1)
        self._check(lib.tuttiCommExplain(*ask, text, len(text), length), "explain")
        return text.value.decode()

    def set_timeout(self, milliseconds: Optional[int]) -> None:
        """Limit of the calls made from now on, for waiting without any progress; None: no limit. A call that exceeds it
        raises TimeoutError, which names the rank that it waited for. What is queued on a stream keeps its own limit, and
        communicators made from this one take it over. Errors: InvalidArgumentError (negative)."""
        limit = 0 if milliseconds is None else milliseconds
        self._check(lib.tuttiCommSetTimeout(self._handle, limit), "set_timeout")

    # ---- Operators and memory

    def create_pre_mul_sum(self, scalar: Union[int, float], dtype: Any) -> PreMulSum:
        """An operator for calls on `dtype`: a sum whose inputs are first multiplied by this rank's scalar, which is
        rounded to `dtype`. Errors: InvalidArgumentError (scalar out of range; no type that tutti computes with)."""
        kind, number = _types.data_type(dtype, "create_pre_mul_sum"), c_int()
        element = ctypes.create_string_buffer(_types.encode(scalar, kind, "create_pre_mul_sum"), 8)
        self._check(lib.tuttiRedOpCreatePreMulSum(number, element, kind, 1, self._handle), "create_pre_mul_sum")
        return PreMulSum(self, number.value)

    def create_operator(self, function: Callable[[memoryview, memoryview], Any], dtype: Any) -> Operator:
        """An operator for calls on `dtype` in host memory: function(first, inout) has to set inout[i] to
        first[i] op inout[i] for all i. `first` is from lower ranks. Both are memoryviews of elements, or of bytes where
        Python has no such element (floats of 16 and 8 bits, complex numbers); numpy.asarray or numpy.frombuffer makes
        arrays of them. The function must not keep them, and must not call tutti.

        It must be associative and, but for scan and ex_scan, commutative: inputs are combined in any order and in
        pieces. It is called in the thread that waits in the call, or in a stream's. An exception in it is raised by the
        call, or on a stream or in a group by the operator's next call or its raise_error; the results of all ranks are then not to
        be relied on, so abort the communicator, as leaving its `with` block by the exception does.
        Errors: InvalidArgumentError.
        """
        return Operator(self, function, _types.data_type(dtype, "create_operator"))

    def register(self, array: Any) -> Registration:
        """Announces that the memory of `array` will be used often. Memory of tutti.mem_alloc is faster still, and needs
        no announcement. Errors: as a call on the array."""
        view = _arrays.view_of(array, "register", "array")
        made = Registration(self, view.owner)
        result = lib.tuttiCommRegister(self._handle, view.address, view.elements * view.itemsize, made._handle)
        if result:
            self._registered.pop(id(made._handle))
        self._check(result, "register")
        return made

    # ---- End

    def finalize(self) -> None:
        """Waits for everything that is queued; afterwards only destroy is useful. Errors: the communicator's;
        InvalidUsageError (other ranks have made other calls)."""
        self._run("finalize", lib.tuttiCommFinalize, self._handle)

    def destroy(self) -> None:
        """Finishes what is queued and frees the communicator, within a second if a peer is gone. May be called again.
        Errors: InvalidUsageError as for finalize, unless a call has raised it; it is freed in any case."""
        if self._handle.value:
            handle = self._handle
            try:
                self._run("destroy", lib.tuttiCommDestroy, handle)
            finally:
                self._handle = c_void_p()
                self._end_dropped()
                self._registered.clear()

    def abort(self) -> None:
        """Ends all operations, on the other ranks with an error, and frees the communicator, in less than a second. Any
        thread may call it, also while another is inside a call. May be called again."""
        handle, self._handle = self._handle, c_void_p()
        if handle.value:
            lib.tuttiCommAbort(handle)
            self._registered.clear()

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.destroy()
        else:
            self.abort()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is None or self.closed or self._process != os.getpid():
            return  # a forked child must not end what its parent uses
        if _ending.is_ordinary():
            if not self._used_gpu:  # what its GPU may still have to do, the end of the process ends
                self._leave()
            return
        words = f"{self!r} was not destroyed"
        self._leave()
        warnings.warn(words, ResourceWarning, source=self)  # last: where warnings are errors, it raises

    def _leave(self) -> None:
        """Ends the communicator without waiting for ranks that may never come. Where nothing is under way, the others can
        finish the calls that this rank has finished."""
        waits = any(lib.tuttiStreamQuery(stream) == Result.IN_PROGRESS for stream in self._streams)
        if waits or self._used_gpu or _ending.is_by_exception():
            self.abort()
            return
        handle, self._handle = self._handle, c_void_p()
        lib.tuttiCommDestroy(handle)
        self._registered.clear()

    def __repr__(self) -> str:
        if self.closed:
            return "<tutti.Communicator, closed>"
        return f"<tutti.Communicator, rank {self.rank} of {self.size}>"

    # ---- For the calls

    def _run(self, call: str, function: Callable[..., int], *arguments: Any) -> None:
        """A call that may wait for other ranks."""
        result = _interrupt.run(function, arguments, self._handles)
        if result:
            self._raise(result, call)

    def _handles(self) -> List[c_void_p]:
        return [self._handle]

    def _check(self, result: int, call: str) -> None:
        if result:
            self._raise(result, call)

    def _raise(self, result: int, call: str) -> NoReturn:
        words = "the communicator was destroyed or aborted" if self.closed else sentence(self._handle)
        raise_error(result, call, words, self._rank)

    def _number(self, call: str, ask: Callable[..., int]) -> int:
        number = c_int()
        self._check(ask(self._handle, number), call)
        return number.value

    _rank: Optional[int]
    _size: Optional[int]
    _device: Optional[int]
    _registered: Dict[int, Tuple[c_void_p, Any]]  # handles of registrations, and what owns their memory
    _streams: Set[Any]  # handles of those that may have its calls
    _used_gpu: bool  # so that calls may be under way there
    _process: int
