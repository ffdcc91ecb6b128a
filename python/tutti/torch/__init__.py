"""The backend "tutti" of torch.distributed, for tensors in host memory and on CUDA GPUs.

    import torch, torch.distributed as dist, tutti.torch
    dist.init_process_group("tutti")                  # under torchrun
    x = torch.ones(1000) * (dist.get_rank() + 1)
    dist.all_reduce(x)

It is Python over the same C library as the rest of the package, so that it needs no compiler and no headers of torch.
Calls run in threads of the backend, in order, and return a Work at once. Those on CUDA tensors are queued on a stream of the
backend, behind what the caller's current stream has; Work.wait() makes the caller's current stream wait for them.
"""
from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from ._mapped import mapped_memory
from ._process_group import ProcessGroupTutti

__all__ = ["ProcessGroupTutti", "NAME", "mapped_memory"]

NAME = "tutti"


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> ProcessGroupTutti:
    return ProcessGroupTutti(store, rank, size, timeout)


if not hasattr(dist.Backend, NAME.upper()):
    # Which devices a backend serves is asked since torch 2.0.
    _devices = {"devices": ["cpu", "cuda"]} if "devices" in inspect.signature(dist.Backend.register_backend).parameters else {}
    dist.Backend.register_backend(NAME, _create, **_devices)
