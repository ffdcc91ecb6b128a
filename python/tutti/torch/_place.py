"""Where a call runs: in the thread that makes it, or on a stream of a GPU after that thread has queued it."""
from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, Callable, Optional, Sequence, Union

import torch

from tutti import _cuda

from . import _gpu

_NAP_S = 0.001  # between two looks at the GPU
Call = Callable[[], Any]


class OnHost:
    """The call has ended when its function has returned."""

    stream = gpu = error = None
    queued_at = 0.0

    def future(self) -> Any:
        return torch.futures.Future()

    def run(self, call: Call, future: Any) -> None:
        future.set_result(call())

    def join(self) -> None:
        """Nothing follows that could overtake the call."""

    def fail(self, error: Exception) -> None:
        """The future has it."""

    def has_ended(self) -> bool:
        return True

    def ends_within(self, seconds: float) -> bool:
        return True


ON_HOST = OnHost()


class OnGpu:
    """The call is queued on `stream` of `gpu`, behind what the thread that makes this object has queued on its own current
    stream there. The tensors' memory is not used for anything else before the stream has passed.

    `failure` says why what is queued on the stream has failed, None: it has not. Errors: RuntimeError (the current stream is
    captured into a graph).
    """

    def __init__(self, stream: Any, gpu: int, tensors: Sequence[Any],
                 failure: Callable[[], Optional[Exception]] = lambda: None) -> None:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("tutti: the current stream is captured into a CUDA graph; this backend's calls are made by a "
                               "thread of the host, and cannot be part of one: make them outside of the graph")
        self.stream, self.gpu, self.queued_at = stream, gpu, 0.0
        self.error: Optional[Exception] = None
        self._failure, self._ended, self._lock = failure, False, threading.Lock()
        self._before, self._end = torch.cuda.Event(), torch.cuda.Event()
        self._before.record(torch.cuda.current_stream(gpu))
        for tensor in tensors:
            tensor.record_stream(stream)

    def future(self) -> Any:
        return _gpu.future_on(self.gpu)

    def run(self, call: Call, future: Any) -> None:
        """Queues the call. What it asks torch for goes to the stream too."""
        with torch.cuda.stream(self.stream):
            self.stream.wait_event(self._before)
            result = call()
            self._end.record(self.stream)
            self.queued_at = time.monotonic()
            future.set_result(result)  # here, because it notes how far the current stream is

    def join(self) -> None:
        """What the current stream gets from now on comes after the call, once that is queued. (The future does this only
        for GPUs that have a tensor in the result, and not every rank's result has one.)"""
        torch.cuda.current_stream(self.gpu).wait_event(self._end)

    def fail(self, error: Exception) -> None:
        with self._lock:
            if not self._ended:
                self.error, self._ended = error, True

    def has_ended(self) -> bool:
        """Whether the GPU is done with the call, or it has failed; `error` then says why."""
        with self._lock:
            if self._ended or not self.queued_at:
                return self._ended
            try:
                with _cuda.beside_captures():
                    passed = self._end.query()  # first: a stream goes on after a failure, but not before it is known
                self.error = self._failure()
            except RuntimeError as error:  # of CUDA; nothing on this GPU will work any more
                passed, self.error = True, error
            self._ended = passed or self.error is not None
            return self._ended

    def ends_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not self.has_ended():
            if time.monotonic() > end:
                return False
            time.sleep(_NAP_S)
        return True

    def synchronize(self) -> None:
        """Waits for the GPU."""
        with contextlib.suppress(RuntimeError), _cuda.beside_captures():  # has_ended() meets the error too
            self._end.synchronize()
        self.has_ended()


Place = Union[OnHost, OnGpu]
