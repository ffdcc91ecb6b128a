"""One call on its way to the library: its arrays found, compared, kept as long as the call needs them."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _arrays, _lifetime, _stream, _types
from ._errors import InvalidArgumentError


class Call:
    """Arguments of the call `name`. `dtype` says what the elements are, where the arrays cannot (bytes, 16-bit integers
    that are bfloat16)."""

    __slots__ = ("_communicator", "_name", "_kind", "_stream", "_views", "_arguments", "_operator")

    def __init__(self, communicator: Any, name: str, dtype: Any, stream: Any) -> None:
        self._communicator, self._name, self._stream = communicator, name, stream
        self._kind = None if dtype is None else _types.data_type(dtype, name)
        self._views: List[_arrays.View] = []
        self._arguments: List[str] = []
        self._operator: Any = None

    @property
    def name(self) -> str:
        return self._name

    def source(self, array: Any, argument: str = "send") -> _arrays.View:
        """Memory that the call reads."""
        return self._add(array, argument, writes=False)

    def target(self, array: Any, argument: str = "recv") -> _arrays.View:
        """Memory that the call writes."""
        return self._add(array, argument, writes=True)

    def _add(self, array: Any, argument: str, writes: bool) -> _arrays.View:
        if array is None:
            rank = self._communicator.rank
            raise InvalidArgumentError(f"{argument} is None; rank {rank} needs an array there", self._name)
        view = _arrays.view_of(array, self._name, argument, self._kind, writes)
        if self._views and view.type_name != self._views[0].type_name:
            raise InvalidArgumentError(f"{self._arguments[0]} has elements of {self._views[0].type_name}, {argument} "
                                       f"of {view.type_name}: both need one type", self._name)
        self._views.append(view)
        self._arguments.append(argument)
        return view

    def _argument(self, view: _arrays.View) -> str:
        return next(name for known, name in zip(self._views, self._arguments) if known is view)

    def refuse(self, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(why, self._name)

    def require(self, view: _arrays.View, count: int, why: str) -> None:
        """`view` must have `count` elements."""
        if view.elements != count:
            raise self.refuse(f"{self._argument(view)} has {view.elements} elements, it needs {count}: {why}")

    def block(self, view: _arrays.View) -> int:
        """Elements of each rank's block of a buffer with a block per rank."""
        ranks: int = self._communicator.size
        if view.elements % ranks:
            raise self.refuse(f"{self._argument(view)} has {view.elements} elements, which cannot be divided into "
                              f"equal blocks of {ranks} ranks")
        return view.elements // ranks

    def moved(self) -> Tuple[int, int]:
        """The type to pass where elements are only moved, and how many of it make one element: types that the library
        does not know travel as bytes."""
        if not self._views:
            if self._kind is None:
                raise self.refuse("a rank without arrays in the call has to say the type of its elements by dtype=")
            return self._kind, 1
        view = self._views[0]
        known = _types.by_name(view.type_name)
        return (_types.DataType.UINT8, view.itemsize) if known is None else (known, 1)

    def reduced(self) -> int:
        """The type to pass where elements are computed with."""
        name = self._views[0].type_name
        known = _types.by_name(name)
        if known is None:
            raise self.refuse(f"{self._arguments[0]} has elements of {name}, which cannot be reduced; the types that "
                              f"can are {_types.TYPE_NAMES}. Convert it, or say with dtype= what its bytes are")
        return known

    def operator(self, op: Any) -> int:
        """The operator to pass. Errors: InvalidArgumentError, and what the program's own has met on a stream."""
        number = _types.reduction(op, self._name)
        if hasattr(op, "raise_error"):
            op.raise_error()
            self._operator = op
        return number

    def owners(self) -> Tuple[Any, ...]:
        """What must live until the library is done with the call: see tutti._lifetime."""
        return (*(view.owner for view in self._views), self._operator)

    def run(self, function: Callable[..., int], *arguments: Any) -> None:
        """Makes the call; communicator and stream are added to the arguments. Errors: those of the library."""
        communicator = self._communicator
        handle = None if self._stream is None else _stream.handle_of(self._stream, self._name)
        everything = (self._name, function, *arguments, communicator._handle, handle)
        on_device = any(view.on_device for view in self._views)
        if self._stream is None and not on_device and not _lifetime.group.depth:
            communicator._run(*everything)
            if self._operator is not None:
                self._operator.raise_error()
            return
        # On a stream of CUDA's too where the memory does not say that it is a GPU's, as managed memory may not.
        waits_for_gpu = on_device or (handle is not None and not isinstance(self._stream, _stream.Stream))
        if waits_for_gpu:
            communicator._used_gpu = True
        kept = _lifetime.Kept(self._name, communicator, self._stream, handle,
                              communicator.device if waits_for_gpu else None, self.owners())
        if _lifetime.group.depth:  # kept where the group ends
            _lifetime.group.calls.append(kept)
            communicator._run(*everything)
        else:
            with _lifetime.keeping([kept]):
                communicator._run(*everything)


class Blocks:
    """A count and a displacement for each rank, as the C API takes them."""

    def __init__(self, call: Call, ranks: int, counts: Optional[Sequence[int]], displacements: Optional[Sequence[int]],
                 what: str = "counts") -> None:
        if counts is None:
            raise call.refuse(f"{what} is None; it needs a count for each of {ranks} ranks")
        self.counts = [int(count) for count in counts]
        self.starts = None if displacements is None else [int(start) for start in displacements]
        self._call, self._what = call, what
        for name, numbers in ((what, self.counts), (f"displacements of {what}", self.starts)):
            if numbers is not None and (len(numbers) != ranks or min(numbers) < 0):
                raise call.refuse(f"{name} is {numbers}; it needs {ranks} numbers, one for each rank, none negative")

    def start(self, rank: int) -> int:
        """Where the block of a rank begins."""
        return sum(self.counts[:rank]) if self.starts is None else self.starts[rank]

    def require_within(self, view: _arrays.View, argument: str) -> None:
        """All blocks lie inside of the buffer."""
        end = max(self.start(rank) + count if count else 0 for rank, count in enumerate(self.counts))
        if end > view.elements:
            raise self._call.refuse(f"{argument} has {view.elements} elements, and its blocks end at element {end}")

    def arrays(self, factor: int) -> Tuple[Any, Any]:
        """Counts and displacements of elements that are `factor` of the library's each."""
        def scaled(numbers: Sequence[int]) -> Any:
            return (ctypes.c_size_t * len(numbers))(*[number * factor for number in numbers])

        return scaled(self.counts), None if self.starts is None else scaled(self.starts)
