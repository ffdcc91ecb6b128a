"""Keeps the buffers of calls that are under way: nobody may free what the library still reads or writes.

The library copies counts, displacements, lists of ranks, ids, configurations and their names, and scalars of operators
before it returns. It keeps the addresses of buffers, of an operator's function, and of the handles that the end of a
group sets. What holds their memory is in View.owner (tutti._arrays), the Operator and the Communicator; who holds these:

  a call without a stream     the caller's frame, until the call has returned
  in a group                  the group of the thread, until its end has returned; it then hands over to the others
  on a tutti.Stream           the stream, until synchronize, idle or close says that it is done; where it is dropped
                              before, nobody lets go
  on a stream of CUDA         an event that is recorded behind the call
  isend, irecv                the Request, until wait or test says that it has ended; where it is dropped before, the
                              communicator, until the message or the communicator has ended
  register                    the communicator, until deregister or its end

It makes no difference to these whether a call fails. An exception that comes before the library is asked (Ctrl-C) leaves
memory held for longer; none lets go of it before.
"""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import _cuda
from ._errors import InvalidArgumentError


class Kept(NamedTuple):
    """What the call `name` uses. `stream` is as the caller gave it, `handle` as the library gets it; `device` is the number of
    the GPU whose memory it is, None: host memory."""

    name: str
    communicator: Any
    stream: Any
    handle: Optional[int]
    device: Optional[int]
    owners: Tuple[Any, ...]


class _Group(threading.local):
    """The calling thread's open group: its depth, what its calls use, and the communicators that its end makes."""

    def __init__(self) -> None:
        self.depth = 0
        self.broken = False  # some block in it has raised an exception, so that the library may be deeper than `depth`
        self.calls: List[Kept] = []
        self.made: List[Any] = []

    def take(self) -> Tuple[List[Kept], List[Any]]:
        """At the end of the outermost group: calls and communicators."""
        taken = self.calls, self.made
        self.calls, self.made = [], []
        return taken

    def require_in_place(self) -> None:
        """The library has addresses, from when the calls were made. Errors: InvalidArgumentError (memory was moved)."""
        for call in self.calls:
            if any(hasattr(owner, "moved") and owner.moved() for owner in call.owners):
                raise InvalidArgumentError("the memory of a tensor was resized or freed between the call and the end of "
                                           "its group", call.name)


group = _Group()


@contextlib.contextmanager
def keeping(calls: Sequence[Kept]) -> Iterator[None]:
    """Around the submission of calls: what they use lives until they are done.

    Streams of the host know before the submission, for calls can be under way although it reports an error, or
    KeyboardInterrupt comes right behind it. They are told again after it: another thread may have synchronised the stream
    in between. On a GPU it is an event behind the calls that says when they are done.
    """
    def tell_streams() -> None:
        for call in calls:
            if call.device is None and hasattr(call.stream, "_keep"):
                call.stream._keep(call.communicator, call.owners)

    tell_streams()
    try:
        yield
    finally:
        tell_streams()
        for call in calls:
            if call.device is not None:
                _cuda.keep(call.handle, call.device, call.owners)
