"""A barrier that says which ranks did not come: they report to rank 0 through the store."""
from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, List, Union

from ._messages import publish, wait_for

_PASSED, _FAILED = b"passed", b"failed"


def monitored_barrier(store: Any, name: str, rank: int, size: int, timeout: Union[timedelta, float],
                      wait_all: bool) -> None:
    """`name` is the same on all ranks, and new for each barrier. On rank 0, `wait_all` names all ranks that are missing
    instead of the first. Errors: RuntimeError."""
    limit = timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)
    if rank != 0:
        _report(store, name, rank, limit)
        return
    missing = _missing(store, name, size, limit, wait_all)
    publish(store, name, _FAILED if missing else _PASSED)
    if missing:
        ranks = ", ".join(str(one) for one in missing)
        raise RuntimeError(f"{'Ranks' if wait_all else 'Rank'} {ranks} failed to pass monitoredBarrier in "
                           f"{limit.total_seconds() * 1000:g} ms")


def _report(store: Any, name: str, rank: int, limit: timedelta) -> None:
    publish(store, f"{name}/{rank}", b"here")
    try:
        # Rank 0 may wait that long for others before it answers.
        verdict = wait_for(store, name, limit * 2, "rank 0 to pass the barrier")
    except RuntimeError:
        verdict = _FAILED
    if verdict != _PASSED:
        raise RuntimeError(f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for "
                           "send/recv from rank 0. Please check rank 0 logs for faulty rank.")


def _missing(store: Any, name: str, size: int, limit: timedelta, wait_all: bool) -> List[int]:
    end, missing = time.monotonic() + limit.total_seconds(), []
    for rank in range(1, size):
        left = timedelta(seconds=max(0.0, end - time.monotonic()))
        if not left and not wait_all:
            raise RuntimeError(f"Rank 0 timed out in monitoredBarrier after {limit.total_seconds() * 1000:g} ms, "
                               f"before rank {rank}")
        try:
            wait_for(store, f"{name}/{rank}", left, f"rank {rank}")
        except RuntimeError:
            missing.append(rank)
            if not wait_all:
                break
    return missing
