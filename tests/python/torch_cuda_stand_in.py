"""torch.cuda over a fake CUDA driver whose GPUs are host memory, for a torch that has no GPU.

Streams and events are the driver's, so what is queued runs later and in the order that was asked for. Tensors that
on_gpu() makes lie in memory of the fake GPU and say so. torch's operations on them run on the CPU, after everything that
the current stream has; copies that may be asynchronous are queued on it. OPERATIONS has each with that stream. To be
installed in a process that is a rank.
"""
import contextlib
import ctypes
import os
import threading
import time
from ctypes import byref, c_uint, c_uint64, c_void_p

import torch

import tutti
import tutti.torch
from cuda_driver import Driver

_NOT_READY = 600  # CUDA_ERROR_NOT_READY
OPERATIONS, SET_ON = [], []
_of_thread = threading.local()
_ranges, _kept = [], []  # of addresses; what is taken there stays until the end of the process


class _Gpu:
    """The driver and its context, made when first used."""

    driver = context = default = None


def driver():
    """With its context current."""
    if _Gpu.driver is None:
        loaded, context = Driver(), c_void_p()
        loaded.cuInit(c_uint(0))
        loaded.cuDevicePrimaryCtxRetain(byref(context), 0)
        _Gpu.driver, _Gpu.context = loaded, context
    if not getattr(_of_thread, "has_context", False):
        _Gpu.driver.cuCtxSetCurrent(_Gpu.context)
        _of_thread.has_context = True
    return _Gpu.driver


class Stream:
    def __init__(self, device=None):
        self.device, self.cuda_stream = torch.device("cuda", device or 0), driver().stream()

    def wait_event(self, event):
        driver().cuStreamWaitEvent(c_void_p(self.cuda_stream), event.handle, c_uint(0))

    def synchronize(self):
        driver().cuStreamSynchronize(c_void_p(self.cuda_stream))

    def passed(self):
        """Whether everything that was queued has ended."""
        event = Event()
        event.record(self)
        time.sleep(0.05)  # what has nothing to wait for comes to its end meanwhile
        return event.query()

    def fill(self, tensor, byte):
        """Queues it."""
        size = tensor.numel() * tensor.element_size()
        driver().cuMemsetD8Async(c_uint64(tensor.data_ptr()), ctypes.c_ubyte(byte), ctypes.c_size_t(size),
                                 c_void_p(self.cuda_stream))


class Gate:
    """Holds a stream up until it is opened."""

    def __init__(self, held):
        self._word = tutti.mem_alloc(4)
        self._value = ctypes.c_uint32.from_buffer(self._word)
        driver().cuStreamWaitValue32(c_void_p(held.cuda_stream), c_uint64(ctypes.addressof(self._value)), ctypes.c_uint32(1),
                                     c_uint(0))

    def open(self):
        self._value.value = 1


class Event:
    def __init__(self):
        self.handle = c_void_p()
        driver().cuEventCreate(byref(self.handle), c_uint(0))

    def record(self, stream=None):
        driver().cuEventRecord(self.handle, c_void_p((stream or current_stream()).cuda_stream))

    def query(self):
        status = driver().function("cuEventQuery")(self.handle)
        assert status in (0, _NOT_READY), status
        return status == 0

    def synchronize(self):
        while not self.query():
            os.sched_yield()


def current_stream(device=None):
    if getattr(_of_thread, "stream", None) is None:
        if _Gpu.default is None:
            _Gpu.default = Stream()
        _of_thread.stream = _Gpu.default
    return _of_thread.stream


@contextlib.contextmanager
def stream(chosen):
    before, _of_thread.stream = current_stream(), chosen
    try:
        yield
    finally:
        _of_thread.stream = before


class Future(torch.futures.Future):
    """In place of torch's of a GPU, whose wait() makes the current stream wait for the one on which the result was set:
    that is in SET_ON, and the waiting is left to the backend."""

    def set_result(self, result):
        SET_ON.append(current_stream())
        super().set_result(result)


# They touch no element. __get__: properties.
_QUIET = {"__get__", "__len__", "numel", "data_ptr", "is_contiguous", "dim", "size", "stride", "element_size", "is_complex",
          "is_conj", "is_neg", "is_floating_point", "view", "chunk", "split", "new_empty", "t", "view_as_real", "storage",
          "_storage", "untyped_storage", "storage_offset"}


class OnGpu(torch.Tensor):
    """A tensor in memory of the fake GPU `gpu`."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        gpu = _gpu_of(arguments)
        if function == torch.Tensor.device.__get__:
            return torch.device("cuda", gpu)
        if function.__name__ not in _QUIET:
            OPERATIONS.append((function.__name__, current_stream()))
            if function.__name__ == "copy_" and (options or {}).get("non_blocking"):
                return _queue_copy(*arguments)
            current_stream().synchronize()
        with torch._C.DisableTorchFunction():
            result = function(*arguments, **(options or {}))
        return _placed(result, gpu, arguments)

    def record_stream(self, used_on):
        self.used_on = used_on


def _queue_copy(target, source):
    assert target.is_contiguous() and source.is_contiguous() and target.dtype == source.dtype
    addresses = [c_uint64(tensor.data_ptr()) for tensor in (target, source)]
    size = ctypes.c_size_t(source.numel() * source.element_size())
    driver().cuMemcpyAsync(*addresses, size, c_void_p(current_stream().cuda_stream))
    _kept.append((target, source))  # as torch does with pinned memory
    return target


def _gpu_of(arguments):
    for one in arguments:
        found = one.gpu if isinstance(one, OnGpu) else _gpu_of(one) if isinstance(one, (list, tuple)) else None
        if found is not None:
            return found
    return None


def _placed(result, gpu, arguments):
    """What an operation has given, in memory of the GPU; what it has written to is where it was."""
    if isinstance(result, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in result):
        return type(result)(_placed(one, gpu, arguments) for one in result)
    if not isinstance(result, torch.Tensor) or (arguments and result is arguments[0]):
        return result
    return _tensor(result, gpu)


def _tensor(plain, gpu):
    with torch._C.DisableTorchFunction():
        if plain.numel() and not any(begin <= plain.data_ptr() < end for begin, end in _ranges):
            plain = _copied(plain, gpu)
        made = torch.Tensor._make_subclass(OnGpu, plain)
    made.gpu = gpu
    return made


def _copied(plain, gpu):
    size = plain.numel() * plain.element_size()
    memory = tutti.mem_alloc_device(size, 0)  # of one GPU, whatever it is said to be
    _ranges.append((memory.address, memory.address + size))
    _kept.append(memory)
    there = torch.frombuffer((ctypes.c_ubyte * size).from_address(memory.address), dtype=torch.uint8)
    return there.view(plain.dtype).view(plain.shape).copy_(plain)


def on_gpu(tensor, gpu=0):
    """A copy there."""
    driver()
    return _tensor(tensor.contiguous(), gpu)


def on_host(tensor):
    """A copy of what is there now, whatever is queued."""
    with torch._C.DisableTorchFunction():
        return tensor.as_subclass(torch.Tensor).clone()


def install():
    for name, stand_in in (("Stream", Stream), ("Event", Event), ("stream", stream), ("current_stream", current_stream),
                           ("is_current_stream_capturing", lambda: False)):
        setattr(torch.cuda, name, stand_in)
    # Newer versions would hand each collective to OnGpu before they look at its arguments.
    torch.distributed.distributed_c10d.has_torch_function = lambda arguments: False
    tutti.torch._gpu.future_on = lambda gpu: Future()
    tutti.torch._gpu.pinned_like = lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype)
