"""What torch 1.13 needs from its tests: to be imported by Python 3.11, and to have FSDP, written for GPUs, run on CPUs."""
import contextlib
import dataclasses
import types

_dataclass = dataclasses.dataclass


def _hashable_dataclass(cls=None, **options):
    """Its dataclasses have defaults that Python 3.11 calls mutable, for their classes cannot be hashed."""
    if cls is None:
        return lambda known: _hashable_dataclass(known, **options)
    if cls.__module__.startswith("torch.") and "__hash__" not in cls.__dict__:
        options["unsafe_hash"] = True
    return _dataclass(cls, **options)


def repair_imports():
    """To be called before torch.distributed's parts are imported; other versions of torch do not mind."""
    dataclasses.dataclass = _hashable_dataclass


class _Nothing:
    """A stream or event of a device that does everything at once."""

    def __getattr__(self, name):
        return lambda *arguments, **options: None


def run_fsdp_on_cpu():
    """FSDP's own code, with a device that is the CPU; for a process that does nothing else."""
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel

    cpu = torch.device("cpu")
    FullyShardedDataParallel._get_compute_device = lambda self, *arguments: cpu
    torch.Tensor.record_stream = lambda self, stream: None
    here = types.SimpleNamespace(is_available=lambda: True, current_device=lambda: cpu, synchronize=lambda: None,
                                 Stream=_Nothing, Event=_Nothing, current_stream=_Nothing,
                                 stream=lambda stream: contextlib.nullcontext())
    for name, stand_in in vars(here).items():
        setattr(torch.cuda, name, stand_in)
