"""A thread that makes blocking calls in order, and a Work for each."""
from __future__ import annotations

import multiprocessing.util
import queue
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Deque, Iterable, Optional, Tuple

import torch

import tutti

from ._place import ON_HOST, Call, OnGpu, Place
from ._work import work_of

_Task = Tuple[Call, "torch.futures.Future[Any]", Place]
_EARLY = 10  # at the end of a process, before its children are waited for
_END_LIMIT_S = 15.0  # communicators whose peers never come are aborted after that


class _State:
    """What the thread and those that watch it share."""

    def __init__(self, close: Callable[[], None], abort: Callable[[], None], limit_s: float) -> None:
        self.tasks: "queue.SimpleQueue[Optional[_Task]]" = queue.SimpleQueue()
        self.close, self.abort, self.limit_s = close, abort, limit_s
        self.began: Optional[float] = None  # when the current call did
        self.on_gpu: Deque[OnGpu] = deque()  # queued there, the oldest first; only the watch takes them out
        self.too_long = False  # the communicator was aborted for that

    def serve(self) -> None:
        with torch.no_grad():
            while True:
                task = self.tasks.get()
                if task is None:
                    break
                self.carry_out(*task)
                del task  # its tensors may be the last references, and the wait for the next task may be long
        for place in tuple(self.on_gpu):  # while the communicator can still say how they end
            place.synchronize()
        if not self.too_long:
            self.close()

    def carry_out(self, call: Call, future: "torch.futures.Future[Any]", place: Place) -> None:
        self.began = time.monotonic()
        try:
            place.run(call, future)
        except Exception as error:  # it belongs to whoever waits for the Work
            if self.too_long:
                error = RuntimeError(f"tutti: Timed out after {self.limit_s:g} s: {error}")
            elif isinstance(error, tutti.TimeoutError):  # a limit of the library's own
                error = RuntimeError(f"tutti: Timed out: {error}")
            place.fail(error)
            future.set_exception(error)
        finally:
            self.began = None
        if isinstance(place, OnGpu):
            self.on_gpu.append(place)

    def end_if_late(self) -> None:
        """Aborts the communicator if the current call, or the oldest that the GPU has not carried out, takes too long."""
        while self.on_gpu and self.on_gpu[0].has_ended():
            self.on_gpu.popleft()
        now = time.monotonic()
        starts = [self.began] + [place.queued_at for place in tuple(self.on_gpu)[:1]]
        if self.too_long or not any(start is not None and now - start > self.limit_s for start in starts):
            return
        self.too_long = True
        for place in tuple(self.on_gpu):
            place.fail(RuntimeError(f"tutti: Timed out after {self.limit_s:g} s: the GPU has not carried the call out"))
        self.abort()

    def stop(self, thread: threading.Thread) -> None:
        _stop([(self, thread)])


def _join(threads: Iterable[threading.Thread]) -> bool:
    """Whether all have ended, within one limit."""
    end, waiting = time.monotonic() + _END_LIMIT_S, [one for one in threads if one is not threading.current_thread()]
    for thread in waiting:
        thread.join(max(0.0, end - time.monotonic()))
    return not any(thread.is_alive() for thread in waiting)


def _stop(served: "Iterable[Tuple[_State, threading.Thread]]") -> None:
    """Ends threads after what is queued; calls that take too long then are aborted. All wait at the same time."""
    served = list(served)
    for state, _ in served:
        state.tasks.put(None)
    if _join(thread for _, thread in served):
        return
    for state, thread in served:
        if thread.is_alive():
            state.abort()
    _join(thread for _, thread in served)


class _Watch:
    """One thread that aborts the communicators of calls that take longer than their limit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: "weakref.WeakSet[_State]" = weakref.WeakSet()
        self._changed = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def add(self, state: _State) -> None:
        with self._lock:
            self._states.add(state)
            if self._thread is None or not self._thread.is_alive():  # a forked child has no threads of its parent
                self._thread = threading.Thread(target=self._run, name="tutti-watch", daemon=True)
                self._thread.start()
        self._changed.set()

    def _run(self) -> None:
        while True:
            with self._lock:
                states = list(self._states)
            for state in states:
                state.end_if_late()
            shortest = min((state.limit_s for state in states), default=60.0)
            del states
            self._changed.wait(min(max(shortest / 50, 0.002), 1.0))
            self._changed.clear()


_watch = _Watch()


class Worker:
    """`close` ends the communicator that the calls use, in the thread and after the last call; `abort` does so at once,
    for calls that take longer than `limit_s`."""

    def __init__(self, name: str, close: Callable[[], None], abort: Callable[[], None], limit_s: float) -> None:
        self._state = state = _State(close, abort, limit_s)
        thread = threading.Thread(target=state.serve, name=name, daemon=True)
        thread.start()
        _watch.add(state)
        self._thread = thread
        # At the end of the process too, so that peers see a communicator that was left in order. Python's own atexit does
        # not run in processes of multiprocessing.
        self.stop = multiprocessing.util.Finalize(self, state.stop, (thread,), exitpriority=_EARLY)

    def submit(self, name: str, call: Call, place: Place = ON_HOST) -> Any:
        """The Work of a call that runs at `place`; its future gets what the call returns. `name` is for torch's profiler."""
        future = place.future()
        work = work_of(future, f"tutti:{name}", place)
        self._state.tasks.put((call, future, place))
        return work

    @staticmethod
    def stop_all(workers: "Iterable[Worker]") -> None:
        """As stop() of each, in the time of one."""
        alive = [worker for worker in workers if worker.stop.still_active()]
        for worker in alive:
            worker.stop.cancel()
        _stop([(worker._state, worker._thread) for worker in alive])
