"""Groups: calls that are submitted together."""
from __future__ import annotations

import contextlib
from typing import Iterator

from . import _interrupt, _lifetime
from ._errors import Result, check, raise_error, sentence
from ._library import lib


@contextlib.contextmanager
def group() -> Iterator[None]:
    """Calls inside the `with` block are submitted together at its end, so no mix of sends and receives can deadlock.

        with tutti.group():
            comm.send(mine, right)
            comm.recv(theirs, left)

    Results are there at the end of the block (of the outermost one, where groups nest), or on a stream when that is
    done. All calls of one communicator in one group name the same stream. If the block raises an exception or a call in
    it is refused, nothing is submitted. Errors at the end: those of the calls.
    """
    depth = _lifetime.group.depth
    try:
        _lifetime.group.depth = depth + 1
        check(lib.tuttiGroupStart(), "group")
        yield
        if depth == 0:
            _lifetime.group.require_in_place()
        result = _end()
    except BaseException:
        _drop(depth)
        raise
    if result:
        raise_error(result, "group", sentence(None))


def _end() -> int:
    _lifetime.group.depth -= 1
    if _lifetime.group.depth:
        return int(lib.tuttiGroupEnd())
    # The library writes handles into what the group makes, so that has to live until then, wanted or not.
    calls, made = _lifetime.group.take()
    with _lifetime.keeping(calls):
        result = _interrupt.run(_end_all if _lifetime.group.broken else lib.tuttiGroupEnd, (),
                                lambda: [call.communicator._handle for call in calls])
    del made
    return result


def _drop(depth: int) -> None:
    """After an exception in a block that began at `depth`, which may have come at any place: before the library began the
    group, or after it ended it."""
    lib.tuttiBarrier(None, None)  # refused, so the library drops the calls of the group
    _lifetime.group.depth, _lifetime.group.broken = depth, True
    if depth == 0:
        _end_all()
        _lifetime.group.take()


def _end_all() -> int:
    """Ends a refused group however deep the library is in it; where it is in none, that is an error as well."""
    result = Result.SUCCESS
    while result == Result.SUCCESS:
        result = lib.tuttiGroupEnd()
    _lifetime.group.broken = False
    return int(result)
