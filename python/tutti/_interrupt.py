"""Lets Ctrl-C end a call that blocks in the library.

While the main thread is inside a C function, Python cannot run its handler of SIGINT. So a thread watches for the
signal, by the descriptor of signal.set_wakeup_fd, and aborts the communicators of the call that the main thread is in;
the call then returns, and KeyboardInterrupt is raised as usual. Nothing is done where the program handles SIGINT in its
own way, or has a wakeup descriptor of its own (asyncio's loop in some programs): there Ctrl-C takes effect after the
call.
"""
from __future__ import annotations

import fcntl
import os
import signal
import threading
from typing import Any, Callable, Iterable, List, Optional, Union

_LOOK_S = 0.25

# Handles to abort; set while the main thread is in a call that can wait.
_waiting: Optional[Callable[[], Iterable[Any]]] = None
_main = threading.main_thread().ident
_written: Optional[int] = None  # what the C handler of signals writes to, while the watcher lives
_abort: Callable[[Any], Any] = lambda handle: None


def _checkpoint() -> None:
    """Python handles signals that have arrived on entry to a function of its own; a call of C does not."""


def run(function: Callable[..., int], arguments: "tuple[Any, ...]", handles: Callable[[], Iterable[Any]]) -> int:
    """Calls function(*arguments); Ctrl-C meanwhile aborts the communicators of `handles()`."""
    global _waiting
    if threading.get_ident() != _main:
        return function(*arguments)
    _waiting = handles
    try:
        _checkpoint()
        return function(*arguments)
    finally:
        _waiting = None


def run_aside(function: Callable[[], int], abandon: Callable[[], None]) -> int:
    """Calls `function`, which has nothing to abort yet, in a thread of its own. If KeyboardInterrupt comes first, the
    thread calls `abandon` once `function` has returned."""
    if threading.get_ident() != _main:
        return function()
    ended, lock = threading.Event(), threading.Lock()
    results: "List[Union[int, BaseException]]" = []
    left = False

    def work() -> None:
        try:
            result: Union[int, BaseException] = function()
        except BaseException as error:  # it is raised in the thread that waits
            result = error
        with lock:
            results.append(result)
            abandoned = left
        ended.set()
        if abandoned:
            abandon()

    threading.Thread(target=work, name="tutti-init", daemon=True).start()
    try:
        # Python's locks sleep through a signal that came just before: Ctrl-C is seen at the next look.
        while not ended.wait(_LOOK_S):
            pass
    except BaseException:
        with lock:
            left = True
            returned = bool(results)
        if returned:
            abandon()
        raise
    result = results[0]
    if isinstance(result, BaseException):
        raise result
    return result


def _watch(read: int) -> None:
    while True:
        try:
            numbers = os.read(read, 64)
        except OSError:
            return
        handles = _waiting
        if signal.SIGINT not in numbers or handles is None:
            continue
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            for handle in handles():
                _abort(handle)


def _pipe() -> "List[int]":
    """A pipe whose ends have no number of a standard stream: what is printed to one that is closed must not end here."""
    ends = list(os.pipe())
    for i, end in enumerate(ends):
        if end < 3:
            ends[i] = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(end)
    return ends


def arm(abort: Callable[[Any], Any]) -> None:
    """Begins to watch, once; does nothing outside of the main thread."""
    global _written, _abort
    if threading.get_ident() != _main:
        return
    if _written is None:
        read, write = _pipe()
        os.set_blocking(write, False)
        threading.Thread(target=_watch, args=(read,), name="tutti-interrupt", daemon=True).start()
        _written, _abort = write, abort
    previous = signal.set_wakeup_fd(_written, warn_on_full_buffer=False)
    if previous not in (-1, _written):
        signal.set_wakeup_fd(previous)


def _after_fork() -> None:
    """The child has no watcher, and its signals must not reach the parent's."""
    global _written, _waiting, _main
    _main = threading.get_ident()
    if _written is not None:
        previous = signal.set_wakeup_fd(-1)
        if previous not in (-1, _written):
            signal.set_wakeup_fd(previous)
    _written, _waiting = None, None


os.register_at_fork(after_in_child=_after_fork)
