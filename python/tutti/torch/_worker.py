"""A thread that makes blocking calls in order, and a Work for each."""
from __future__ import annotations

import queue
import threading
import weakref
from typing import Any, Callable, Optional, Tuple

import torch
from torch._C._distributed_c10d import _create_work_from_future

_Task = Tuple[Callable[[], Any], "torch.futures.Future[Any]"]
_END_LIMIT_S = 5  # a communicator whose peers never come is aborted after that


def done(value: Any) -> Any:
    """A Work that has ended."""
    future: "torch.futures.Future[Any]" = torch.futures.Future()
    future.set_result(value)
    return _create_work_from_future(future)


def _serve(tasks: "queue.SimpleQueue[Optional[_Task]]", close: Callable[[], None]) -> None:
    with torch.no_grad():
        while True:
            task = tasks.get()
            if task is None:
                break
            _carry_out(*task)
            # Its tensors may be the last references, and the wait for the next task may be long.
            del task
    close()


def _carry_out(call: Callable[[], Any], future: "torch.futures.Future[Any]") -> None:
    try:
        future.set_result(call())
    except Exception as error:  # it belongs to whoever waits for the Work
        future.set_exception(error)


def _stop(tasks: "queue.SimpleQueue[Optional[_Task]]", thread: threading.Thread, abort: Callable[[], None]) -> None:
    tasks.put(None)
    if thread is threading.current_thread():
        return
    thread.join(_END_LIMIT_S)
    if thread.is_alive():
        abort()
        thread.join(_END_LIMIT_S)


class Worker:
    """`close` ends the communicator that the calls use, in the thread and after the last call; `abort` at once."""

    def __init__(self, name: str, close: Callable[[], None], abort: Callable[[], None]) -> None:
        self._tasks: "queue.SimpleQueue[Optional[_Task]]" = queue.SimpleQueue()
        thread = threading.Thread(target=_serve, args=(self._tasks, close), name=name, daemon=True)
        thread.start()
        # At the end of the process too, so that peers see a communicator that was left in order.
        self.stop = weakref.finalize(self, _stop, self._tasks, thread, abort)

    def submit(self, call: Callable[[], Any]) -> Any:
        """The Work of a call, whose future gets what the call returns."""
        future: "torch.futures.Future[Any]" = torch.futures.Future()
        self._tasks.put((call, future))
        return _create_work_from_future(future)
