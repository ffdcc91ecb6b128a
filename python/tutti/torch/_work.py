"""A Work for each call, which C++ code of torch can hold too.

What a call returns is in a future of Python. C++ code sees a second one, made by then(): an exception in a callback is
an error there, while that of Future.set_exception is only a function that raises it in Python.
"""
from __future__ import annotations

import contextlib
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Tuple

import torch
from torch._C._distributed_c10d import Work, _create_work_from_future

from ._place import Place

NO_LIMIT = timedelta(0)

# Before 2.8, C++ code that holds a Work does not keep the Python object of it, and with that loses the methods of a
# subclass; there Works are torch's own, whose wait() does not raise.
KEEPS_SUBCLASSES = tuple(int(number) for number in torch.__version__.split(".")[:2]) >= (2, 8)


def _wait_for(future: Any, seen_by_cpp: Any, place: Place, timeout: timedelta = NO_LIMIT) -> bool:
    """Until both futures, of which C++'s is the later one, have ended: of a call on a GPU when it is queued, and the
    current stream then waits for it. With a limit, until the GPU is done too. Errors: those of the call, of one on a GPU as
    far as they are known; RuntimeError (not within the limit)."""
    if timeout > NO_LIMIT:
        limit_s, ended = timeout.total_seconds(), threading.Event()
        end = time.monotonic() + limit_s
        seen_by_cpp.add_done_callback(lambda done: ended.set())
        if not (ended.wait(limit_s) and place.ends_within(max(0.0, end - time.monotonic()))):
            raise RuntimeError(f"tutti: Timed out: the call has not ended within {limit_s:g} s of waiting")
    with contextlib.suppress(Exception):  # a copy of the error of the first
        seen_by_cpp.wait()
    future.wait()
    place.join()
    if place.has_ended() and place.error is not None:
        raise place.error
    return True


class _OwnWork(Work):  # type: ignore[misc]
    """A Work whose wait() raises, for C++ code too."""

    def __init__(self, future: Any, seen_by_cpp: Any, place: Place) -> None:
        super().__init__()
        self._future, self._seen_by_cpp, self._place = future, seen_by_cpp, place

    def wait(self, timeout: timedelta = NO_LIMIT) -> bool:
        return _wait_for(self._future, self._seen_by_cpp, self._place, timeout)

    synchronize = wait

    def get_future(self) -> Any:
        return self._seen_by_cpp

    def is_completed(self) -> bool:
        return bool(self._seen_by_cpp.done()) and self._place.has_ended()

    def is_success(self) -> bool:
        try:
            return self.is_completed() and self.wait()
        except Exception:
            return False

    def result(self) -> Any:
        return self._future.wait()


_futures: "weakref.WeakKeyDictionary[Any, Tuple[Any, Any, Place]]" = weakref.WeakKeyDictionary()
_plain_wait = Work.wait


def _wait(self: Any, *arguments: Any, **options: Any) -> Any:
    """torch's, but for Works of this backend."""
    futures = _futures.get(self)
    return _plain_wait(self, *arguments, **options) if futures is None else _wait_for(*futures, *arguments, **options)


if not KEEPS_SUBCLASSES:
    Work.wait = _wait


def _recorded(future: Any, name: str) -> Any:
    """The future, or one that ends after it and torch's profiler has seen the end: of an event on the thread of the
    caller, which only its end shows to be asynchronous. (The thread that makes the call has no profiler.)"""
    if not torch.autograd._profiler_enabled():
        return future
    event = torch.autograd.profiler.record_function(name)
    event.__enter__()
    return event._call_end_callbacks_on_future(future)


def work_of(future: "torch.futures.Future[Any]", name: str, place: Place) -> Any:
    """The Work that ends when the future does, of a call at `place`, and for which `name` is in the profiler."""
    seen_by_cpp = _recorded(future.then(lambda done: done.wait()), name)
    if KEEPS_SUBCLASSES:
        return _OwnWork(future, seen_by_cpp, place)
    work = _create_work_from_future(seen_by_cpp)
    _futures[work] = future, seen_by_cpp, place
    return work
