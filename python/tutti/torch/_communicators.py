"""The communicators of a process group, and which GPU this process uses in it."""
from __future__ import annotations

import contextlib
import threading
from typing import Any, List, Optional, Sequence

import tutti

from ._gpu import Streams, gpu_of
from ._place import ON_HOST, OnGpu, Place


class Communicators:
    """One for tensors in host memory; another for those on a GPU, which is made by the first call that has some."""

    def __init__(self, on_host: tutti.Communicator, limit_ms: int) -> None:
        self.on_host, self._limit_ms = on_host, limit_ms
        self._on_gpu: List[tutti.Communicator] = []
        self._gpu: Optional[int] = None
        self._streams, self._lock = Streams(), threading.Lock()

    def place(self, tensors: Sequence[Any], gpu: Optional[int] = None) -> Place:
        """Where a call on the tensors runs. `gpu`: of a call without tensors. To be asked by the thread that makes the
        call. Errors: RuntimeError (tensors in several places, or on another GPU than in earlier calls)."""
        gpu = gpu_of(tensors) if tensors else gpu
        if gpu is None:
            return ON_HOST
        with self._lock:
            self._gpu = gpu if self._gpu is None else self._gpu
        if gpu != self._gpu:
            raise RuntimeError(f"tutti: the tensors are on cuda:{gpu}, and those of earlier calls of this process group on "
                               f"cuda:{self._gpu}; a process uses one GPU in a group: move the tensors, or make another "
                               "group for the other GPU (torch.distributed.new_group)")
        return OnGpu(self._streams.on(gpu), gpu, tensors, self._failure)

    @property
    def gpu(self) -> Optional[int]:
        """The GPU of earlier calls."""
        return self._gpu

    def of(self, place: Place) -> tutti.Communicator:
        """To be called in the thread that makes the group's calls, in the same order on all ranks: so all ranks come to
        the split together, whatever other calls they make before and after."""
        if place.gpu is None:
            return self.on_host
        if not self._on_gpu:
            made = self.on_host.split(0, self.on_host.rank, timeout_ms=self._limit_ms, device=place.gpu)
            assert made is not None
            self._on_gpu.append(made)
        return self._on_gpu[0]

    def _failure(self) -> Optional[Exception]:
        """Why what is queued on the GPU has failed."""
        if not self._on_gpu:
            return None
        communicator = self._on_gpu[0]
        if communicator.closed:
            return tutti.RemoteError("the process group was ended before the GPU had carried this call out")
        try:
            result = communicator.async_error()
            communicator._check(0 if result == tutti.Result.IN_PROGRESS else result, "torch.distributed")
        except tutti.Error as error:
            return error
        return None

    def destroy(self) -> None:
        for communicator in (*self._on_gpu, self.on_host):
            with contextlib.suppress(tutti.Error):  # nobody waits for it, and the library has logged it
                communicator.destroy()

    def abort(self) -> None:
        for communicator in (*self._on_gpu, self.on_host):
            communicator.abort()
