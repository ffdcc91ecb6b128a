"""Messages with tags, in host memory: methods of Communicator, and the requests that they return.

They hold up no other call and are held up by none; streams, groups and the order of other calls do not concern them. A
receive takes the first message that fits its source and tag and that no receive before it takes. It may have room for
more; a message that is longer or of another type is lost, and the receive raises InvalidUsageError, which is no error of
the communicator. Elements of types that tutti does not know travel as bytes. All messages must have been received
before the communicator ends, and a probe receives nothing: otherwise finalize or destroy raises InvalidUsageError.
"""
from __future__ import annotations

from ctypes import c_int, c_void_p
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from . import _interrupt
from ._call import Call
from ._errors import InvalidArgumentError, raise_error, sentence
from ._library import StatusStruct, lib
from ._types import DataType

ANY_SOURCE = -1
ANY_TAG = -1


class Status(NamedTuple):
    """What a message is; of a send, what was sent."""

    source: int
    tag: int
    count: int  # elements of dtype
    dtype: DataType  # UINT8 where elements travel as bytes
    cancelled: bool  # nothing was sent or received


def _named(status: StatusStruct) -> Status:
    return Status(status.source, status.tag, status.count, DataType(status.type), bool(status.cancelled))


class Request:
    """A message under way; made by isend and irecv. Its array must not be touched (of a send: changed) until wait or test
    says that it has ended, which has to be before the communicator is destroyed: afterwards they raise InvalidUsageError."""

    def __init__(self, communicator: "Messages", call: str, owners: Tuple[Any, ...]) -> None:
        self._communicator, self._call = communicator, call
        self._handle = c_void_p()  # set by the library, when the request already holds what the message uses
        self._owners = owners
        self._status: Optional[Status] = None

    @property
    def ended(self) -> bool:
        """Whether wait or test has said so."""
        return not self._handle.value

    def wait(self) -> Status:
        """Waits until the message has been received, or the array of a send may be changed. Errors: those of a call,
        and InvalidUsageError (the message did not fit). After the end it returns the same again."""
        if not self.ended:
            status = StatusStruct()
            self._finish("wait", lib.tuttiWait, status)
            self._status = _named(status)
        return self._known()

    def test(self) -> Optional[Status]:
        """As wait, but None where it would wait."""
        if not self.ended:
            status, done = StatusStruct(), c_int()
            self._finish("test", lib.tuttiTest, done, status)
            if not done.value:
                return None
            self._status = _named(status)
        return self._known()

    def cancel(self) -> bool:
        """Cancels a receive that no message has come for, or a send of which nothing has left, and says whether it
        was one. wait or test end it in any case."""
        cancelled = c_int()
        if not self.ended:
            self._raise(lib.tuttiCancel(self._handle, cancelled), "cancel")
        return bool(cancelled.value)

    def _known(self) -> Status:
        if self._status is None:
            raise InvalidArgumentError("the request ended with an error before", self._call)
        return self._status

    def _finish(self, what: str, function: Callable[..., int], *arguments: Any) -> None:
        """Calls wait or test; a request that has ended is none any more, whether it met an error or not."""
        try:
            result = _interrupt.run(function, (self._handle, *arguments), self._communicator._handles)
        finally:
            if self.ended:
                self._owners = ()
        self._raise(result, what)

    def _raise(self, result: int, what: str) -> None:
        if result:
            raise_error(result, f"{self._call}.{what}", sentence(None), self._communicator._rank)

    def __del__(self) -> None:
        handle = getattr(self, "_handle", c_void_p())
        if handle.value:  # what the message uses lives on until it has ended
            self._communicator._dropped[handle.value] = handle, self._owners

    def __repr__(self) -> str:
        return f"<tutti.Request of {self._call}, {'ended' if self.ended else 'under way'}>"


class Messages:
    """See the module."""

    _handle: Any
    _rank: Any
    _handles: Any
    _run: Any
    _dropped: Dict[int, Tuple[c_void_p, Tuple[Any, ...]]]  # requests that nobody can ask any more, and what they use

    def isend(self, array: Any, peer: int, tag: int = 0, *, dtype: Any = None) -> Request:
        """Begins to send an array to rank `peer`, with a tag of 0 or more. Errors: as Communicator says."""
        call = Call(self, "isend", dtype, None)
        return self._begin(lib.tuttiIsend, call, call.source(array, "array"), peer, tag)

    def irecv(self, array: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, *, dtype: Any = None) -> Request:
        """Begins to receive a message into an array, which may have room for more. Errors: as Communicator says."""
        call = Call(self, "irecv", dtype, None)
        return self._begin(lib.tuttiIrecv, call, call.target(array, "array"), source, tag)

    def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Status:
        """Waits until a message is there that a receive of this source and tag would take, and receives nothing."""
        status = StatusStruct()
        self._run("probe", lib.tuttiProbe, source, tag, self._handle, status)
        return _named(status)

    def iprobe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Optional[Status]:
        """As probe, but None where it would wait."""
        status, found = StatusStruct(), c_int()
        self._run("iprobe", lib.tuttiIprobe, source, tag, self._handle, found, status)
        return _named(status) if found.value else None

    def _begin(self, function: Callable[..., int], call: Call, view: Any, peer: int, tag: int) -> Request:
        self._end_dropped()
        kind, factor = call.moved()
        request = Request(self, call.name, call.owners())
        self._run(call.name, function, view.address, view.elements * factor, kind, peer, tag, self._handle,
                  request._handle)
        return request

    def _end_dropped(self) -> None:
        """Asks for the requests that were dropped while under way: they end only where somebody asks."""
        for number, (handle, _) in list(self._dropped.items()):
            lib.tuttiTest(handle, c_int(), None)
            if not handle.value:
                self._dropped.pop(number)
