"""Memory that tutti allocates: the kind that peers can map, and that of GPUs."""
from __future__ import annotations

import ctypes
import math
import operator
import weakref
from ctypes import c_void_p
from typing import TYPE_CHECKING, Any, Dict, Sequence, Union

from ._errors import InvalidArgumentError, check
from ._library import lib

if TYPE_CHECKING:
    import numpy


def mem_alloc(nbytes: int) -> memoryview:
    """Host memory that peers can map, the fastest kind for tutti: zeroed, page aligned, on this thread's NUMA node.

    Returns a writable view of `nbytes` bytes; numpy.frombuffer, torch.frombuffer and memoryview.cast make arrays of it.
    The memory is freed when the last of these is gone. Errors: SystemError; InvalidArgumentError (negative).
    """
    if nbytes < 0:
        raise InvalidArgumentError(f"nbytes is {nbytes}", "mem_alloc")
    address = c_void_p()
    check(lib.tuttiMemAlloc(address, nbytes), "mem_alloc")
    memory = (ctypes.c_ubyte * nbytes).from_address(address.value or 0)
    # Views refer to the ctypes array, so it is the last to go. At the end of the process the system frees it.
    weakref.finalize(memory, lib.tuttiMemFree, address.value).atexit = False
    return memoryview(memory).cast("B")


def zeros(shape: Union[int, Sequence[int]], dtype: Any = "float64") -> "numpy.ndarray[Any, Any]":
    """A numpy array in memory of mem_alloc. `dtype` is one of numpy's (or of ml_dtypes). Errors: as mem_alloc."""
    import numpy

    kind = numpy.dtype(dtype)
    try:
        sizes = (operator.index(shape),)  # type: ignore[arg-type]
    except TypeError:
        sizes = tuple(shape)  # type: ignore[arg-type]
    count = math.prod(sizes)
    return numpy.frombuffer(mem_alloc(max(count * kind.itemsize, 1)), dtype=kind, count=count).reshape(sizes)


class DeviceMemory:
    """Memory of a GPU, made by mem_alloc_device. CuPy, numba and torch take it by `__cuda_array_interface__`, as bytes.

    Freed when the object is gone or by free(); calls on streams must then have ended, and communicators that exported
    it to other processes should have been destroyed.
    """

    def __init__(self, address: int, nbytes: int, device: int) -> None:
        self.address, self.nbytes, self.device = address, nbytes, device
        self._free = weakref.finalize(self, lib.tuttiMemFree, address)
        self._free.atexit = False

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        if not self._free.alive:
            raise InvalidArgumentError("the memory was freed", "DeviceMemory")
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, False), "strides": None, "version": 3}

    def free(self) -> None:
        """Frees the memory now. May be called again."""
        self._free()


def mem_alloc_device(nbytes: int, device: int) -> DeviceMemory:
    """Zeroed memory of a GPU that the ranks of this process can reach.

    Errors: InvalidArgumentError (no such GPU), UnhandledCudaError (no driver; no memory).
    """
    if nbytes < 0:
        raise InvalidArgumentError(f"nbytes is {nbytes}", "mem_alloc_device")
    address = c_void_p()
    check(lib.tuttiMemAllocDevice(address, nbytes, device), "mem_alloc_device")
    return DeviceMemory(address.value or 0, nbytes, device)
