"""Exceptions: one for each result of the C API, with the library's sentence."""
from __future__ import annotations

import builtins
import enum
import re
from typing import Any, Dict, NoReturn, Optional, Type

from ._library import lib


class Result(enum.IntEnum):
    """tuttiResult_t."""

    SUCCESS = 0
    UNHANDLED_CUDA_ERROR = 1
    SYSTEM_ERROR = 2
    INTERNAL_ERROR = 3
    INVALID_ARGUMENT = 4
    INVALID_USAGE = 5
    REMOTE_ERROR = 6
    IN_PROGRESS = 7
    TIMEOUT = 8


class Error(RuntimeError):
    """A call of tutti failed. str() is the call, a colon, and the library's sentence.

    code     the result
    message  the library's sentence, which names the cause
    call     the method that failed, for example "all_reduce"
    rank     this process's rank in the communicator; None outside of one
    peer     the rank that failed or that was waited for, if the sentence names exactly one; else None
    """

    code: Result = Result.INTERNAL_ERROR

    def __init__(self, message: str, call: str = "", rank: Optional[int] = None, peer: Optional[int] = None) -> None:
        super().__init__(message, call, rank, peer)
        self.message, self.call, self.rank, self.peer = message, call, rank, peer

    def __str__(self) -> str:
        return f"{self.call}: {self.message}" if self.call else self.message


class UnhandledCudaError(Error):
    """A CUDA call failed."""

    code = Result.UNHANDLED_CUDA_ERROR


class SystemError(Error):  # noqa: A001: the name of the result
    """The system refused memory, a descriptor or a socket."""

    code = Result.SYSTEM_ERROR


class InternalError(Error):
    """A bug in tutti."""

    code = Result.INTERNAL_ERROR


class InvalidArgumentError(Error, ValueError):
    """An argument is wrong. The call changed nothing, and the communicator can be used further."""

    code = Result.INVALID_ARGUMENT


class InvalidUsageError(Error):
    """Calls that do not fit together, on one rank or between ranks."""

    code = Result.INVALID_USAGE


class RemoteError(Error):
    """A peer failed, left or was killed, or the communicator was aborted."""

    code = Result.REMOTE_ERROR


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001: the name of the result
    """A time limit passed: see the settings TUTTI_TIMEOUT_MS and TUTTI_INIT_TIMEOUT_MS."""

    code = Result.TIMEOUT


_CLASSES: Dict[int, Type[Error]] = {
    kind.code: kind
    for kind in (UnhandledCudaError, SystemError, InternalError, InvalidArgumentError, InvalidUsageError, RemoteError,
                 TimeoutError)
}
_PEER = re.compile(r"\[peer (\d+)\]")


def sentence(handle: Any) -> str:
    """The last error of the communicator `handle`, or with None of this thread. Ask in the thread of the call."""
    words: bytes = lib.tuttiGetLastError(handle)
    return words.decode("utf-8", "replace")


def raise_error(result: int, call: str, message: str, rank: Optional[int] = None) -> NoReturn:
    """Raises the exception for a result other than success."""
    if not message:
        message = lib.tuttiGetErrorString(result).decode("utf-8", "replace")
    named = _PEER.findall(message)
    raise _CLASSES.get(result, InternalError)(message, call, rank, int(named[0]) if len(named) == 1 else None)


def check(result: int, call: str) -> None:
    """For calls outside of any communicator."""
    if result:
        raise_error(result, call, sentence(None))
