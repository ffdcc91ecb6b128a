"""A Work for each call, which C++ code of torch can hold too.

It wraps a Future. Its own wait() returns as if nothing had happened when the Future has an error, so wait() of these
Works also asks the Future for its value, which raises.
"""
from __future__ import annotations

import weakref
from typing import Any

import torch
from torch._C._distributed_c10d import Work, _create_work_from_future

_futures: "weakref.WeakKeyDictionary[Any, torch.futures.Future[Any]]" = weakref.WeakKeyDictionary()
_plain_wait = Work.wait


def _wait(self: Any, *timeout: Any) -> bool:
    future = _futures.get(self)
    if future is None:
        return bool(_plain_wait(self, *timeout))
    future.wait()
    return True


Work.wait = _wait


def work_of(future: "torch.futures.Future[Any]") -> Any:
    """The Work that ends when the future does."""
    work = _create_work_from_future(future)
    _futures[work] = future
    return work
