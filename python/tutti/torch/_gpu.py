"""What the backend asks of torch about GPUs. A test without a GPU puts its own answers here and in torch.cuda."""
from __future__ import annotations

import threading
from typing import Any, Dict, Optional, Sequence

import torch


def gpu_of(tensors: Sequence[Any]) -> Optional[int]:
    """Number of the GPU where all the tensors are; None: they are in host memory. Errors: RuntimeError (they are neither,
    or not all in one place)."""
    places = list(dict.fromkeys(tensor.device for tensor in tensors))
    for place in places:
        if place.type not in ("cpu", "cuda"):
            raise RuntimeError(f"tutti: a tensor is on {place}; this backend serves tensors in host memory and on CUDA GPUs")
    if len(places) > 1:
        raise RuntimeError(f"tutti: the tensors of one call are on {' and '.join(map(str, places))}; pass tensors that are "
                           "all in one place")
    return places[0].index if places and places[0].type == "cuda" else None


def future_on(gpu: int) -> Any:
    """A future whose result is on a GPU: its wait() makes the current stream wait for the stream that set the result."""
    return torch.futures.Future(devices=[torch.device("cuda", gpu)])


def pinned_like(tensor: Any) -> Any:
    """Host memory that a GPU copies to and from without the host's help."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)


class Streams:
    """One stream of the backend's own on each GPU, made when first used. Any thread."""

    def __init__(self) -> None:
        self._made: Dict[int, Any] = {}
        self._lock = threading.Lock()

    def on(self, gpu: int) -> Any:
        with self._lock:
            if gpu not in self._made:
                self._made[gpu] = torch.cuda.Stream(device=gpu)
            return self._made[gpu]
