"""Host streams, and what else may be given as the stream of a call."""
from __future__ import annotations

import contextlib
import os
import warnings
from ctypes import c_void_p
from typing import Any, Callable, Dict, Iterable, List, Optional

from . import _interrupt
from ._errors import Error, InvalidArgumentError, Result, check, raise_error, sentence
from ._library import lib


_left_open: List[Dict[int, Any]] = []  # what calls of streams use that nobody can ask any more


class Stream:
    """An ordered queue with a thread of its own, for calls on host memory: a call that is given one returns at once.

        with tutti.Stream() as stream:
            comm.all_reduce(gradients, stream=stream)
            ...                    # compute something else
            stream.synchronize()   # now gradients are reduced

    The arrays and communicators of queued calls live at least until synchronize or idle has said that the stream is done.
    Leaving the `with` block waits for what is queued.
    """

    def __init__(self) -> None:
        self._handle: Optional[int] = None
        self._kept: Dict[int, Any] = {}  # what queued calls use, by id
        self._communicators: Dict[int, Any] = {}
        self._process = os.getpid()
        handle = c_void_p()
        check(lib.tuttiStreamCreate(handle), "Stream")
        self._handle = handle.value

    def synchronize(self) -> None:
        """Waits for all queued calls. Raises the first error that any of them met since the last synchronisation."""
        self._ask(lib.tuttiStreamSynchronize, "synchronize")

    @property
    def idle(self) -> bool:
        """False while calls are queued or under way. Raises an error as synchronize does."""
        return self._ask(lib.tuttiStreamQuery, "idle")

    def close(self) -> None:
        """Waits for what is queued, without raising its errors, and ends the stream. May be called again."""
        if self._handle is None:
            return
        with contextlib.suppress(Error):
            self.synchronize()
        handle, self._handle = self._handle, None
        lib.tuttiStreamDestroy(handle)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self.synchronize()
        finally:
            self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is None or self._process != os.getpid():  # a forked child has none of its parent's threads
            return
        if lib.tuttiStreamQuery(handle) == Result.IN_PROGRESS:
            # To wait here could take for ever. The stream lives on, and so does what its calls use.
            _left_open.append(self._kept)
            warnings.warn("a tutti.Stream with calls under way was not closed", ResourceWarning, source=self)
        else:
            self.close()

    def _open_handle(self, call: str) -> int:
        if self._handle is None:
            raise InvalidArgumentError("the stream was closed", f"Stream.{call}")
        return self._handle

    def _ask(self, function: Callable[..., int], call: str) -> bool:
        """Whether the stream is done. If it is, lets go of what the calls use that were queued before; other threads may
        be queueing more. Errors: the first of the queued calls."""
        handle = self._open_handle(call)
        kept, communicators = self._kept, self._communicators
        self._kept, self._communicators = {}, {}
        done = False
        try:
            result = _interrupt.run(function, (handle,), lambda: _handles(communicators, self._communicators))
            done = result != Result.IN_PROGRESS
        finally:
            if not done:
                self._kept.update(kept)
                self._communicators.update(communicators)
        if not done:
            return False
        message = sentence(None) if result else ""
        for communicator in communicators.values():
            communicator._streams.discard(handle)
        kept.clear()
        communicators.clear()
        if result:
            raise_error(result, f"Stream.{call}", message)
        return True

    def _keep(self, communicator: Any, owners: Iterable[Any]) -> None:
        # The same buffers come again and again, so they are kept once each.
        for owner in owners:
            self._kept[id(owner)] = owner
        self._communicators[id(communicator)] = communicator
        communicator._streams.add(self._handle)


def _handles(*communicators: Dict[int, Any]) -> Iterable[Any]:
    """Of the communicators whose calls may hold a stream up."""
    return [one._handle for some in communicators for one in list(some.values())]


def handle_of(stream: Any, call: str) -> Optional[int]:
    """What the C API takes: of a Stream, of None, of a CUDA stream as an integer or as an object that has it.

    Errors: InvalidArgumentError.
    """
    if stream is None:
        return None
    if isinstance(stream, Stream):
        return stream._open_handle(call)
    if isinstance(stream, int):
        return stream
    described = getattr(stream, "__cuda_stream__", None)
    if described is not None:
        return int((described() if callable(described) else described)[1])
    for attribute in ("cuda_stream", "ptr"):  # torch; CuPy
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    raise InvalidArgumentError(
        f"stream is a {type(stream).__name__}: give a tutti.Stream for host memory; for device memory a CUDA stream "
        "as an integer or as an object with __cuda_stream__, cuda_stream or ptr", call)
