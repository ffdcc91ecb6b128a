"""Keeps the buffers of calls that are under way: nobody may free what the library still reads or writes."""
from __future__ import annotations

import threading
from typing import Any, List, Optional, Tuple

from . import _cuda

_Call = Tuple[Any, Any, Optional[int], bool, Tuple[Any, ...]]  # the arguments of keep


class _Group(threading.local):
    """The calling thread's open group: its depth, and its calls with what they keep."""

    def __init__(self) -> None:
        self.depth = 0
        self.calls: List[_Call] = []


group = _Group()


def keep(communicator: Any, stream: Any, handle: Optional[int], on_device: bool, owners: Tuple[Any, ...]) -> None:
    """After a call: `owners` live until it is done. `stream` is as the caller gave it, `handle` as the library got it."""
    if group.depth:
        group.calls.append((communicator, stream, handle, on_device, owners))
    elif on_device or stream is not None:
        _hand_over((communicator, stream, handle, on_device, owners))


def _hand_over(call: _Call) -> None:
    communicator, stream, handle, on_device, owners = call
    if on_device:
        _cuda.keep(handle, communicator.device, owners)
    elif stream is not None and hasattr(stream, "_keep"):
        stream._keep(communicator, owners)


def take_group() -> List[_Call]:
    """At the end of the outermost group: its calls."""
    calls, group.calls = group.calls, []
    return calls


def submitted(calls: List[_Call]) -> None:
    """The calls of a group are on their streams; those without one are done."""
    for call in calls:
        _hand_over(call)
