"""Groups: calls that are submitted together."""
from __future__ import annotations

import contextlib
from typing import Iterator

from . import _interrupt, _lifetime
from ._errors import check, raise_error, sentence
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
    except BaseException:
        lib.tuttiBarrier(None, None)  # refused, so the library drops the calls of the group
        _end(dropped=True)
        raise
    result = _end()
    if result:
        raise_error(result, "group", sentence(None))


def _end(dropped: bool = False) -> int:
    _lifetime.group.depth -= 1
    if _lifetime.group.depth:
        return int(lib.tuttiGroupEnd())
    # The library writes handles into what the group makes, so that has to live until then, wanted or not.
    calls, made = _lifetime.group.take()
    with _lifetime.keeping([] if dropped else calls):
        result = _interrupt.run(lib.tuttiGroupEnd, (), lambda: [call.communicator._handle for call in calls])
    del made
    return result
