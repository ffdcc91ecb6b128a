"""Keeps the buffers of calls that are under way: nobody may free what the library still reads or writes."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from . import _cuda


class Kept(NamedTuple):
    """What a call uses. `stream` is as the caller gave it, `handle` as the library gets it; `device` is the number of
    the GPU whose memory it is, None: host memory."""

    communicator: Any
    stream: Any
    handle: Optional[int]
    device: Optional[int]
    owners: Tuple[Any, ...]


class _Group(threading.local):
    """The calling thread's open group: its depth, what its calls use, and the communicators that its end makes."""

    def __init__(self) -> None:
        self.depth = 0
        self.calls: List[Kept] = []
        self.made: List[Any] = []

    def take(self) -> Tuple[List[Kept], List[Any]]:
        """At the end of the outermost group: calls and communicators."""
        taken = self.calls, self.made
        self.calls, self.made = [], []
        return taken


group = _Group()


@contextlib.contextmanager
def keeping(calls: Sequence[Kept]) -> Iterator[None]:
    """Around the submission of calls: what they use lives until they are done.

    Streams of the host know before the submission, for calls can be under way although it reports an error, or
    KeyboardInterrupt comes right behind it. On a GPU it is an event behind the calls that says when they are done.
    """
    for call in calls:
        if call.device is None and hasattr(call.stream, "_keep"):
            call.stream._keep(call.communicator, call.owners)
    try:
        yield
    finally:
        for call in calls:
            if call.device is not None:
                _cuda.keep(call.handle, call.device, call.owners)
