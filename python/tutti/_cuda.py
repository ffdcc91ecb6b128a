"""What this package asks CUDA's driver, where the program has loaded one: the current GPU, and when a stream is
done."""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from ctypes import byref, c_int, c_uint, c_uint64, c_void_p
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

_NOT_READY = 600  # CUDA_ERROR_NOT_READY
_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

_pending: List[Tuple[c_void_p, Tuple[Any, ...]]] = []  # events, and what must live until they have passed
_lock = threading.Lock()


# Functions that are asked for, with the version of CUDA whose form of them is meant.
_FUNCTIONS = {
    "cuCtxGetCurrent": 4000,
    "cuCtxGetDevice": 2000,
    "cuCtxPushCurrent": 4000,
    "cuCtxPopCurrent": 4000,
    "cuDevicePrimaryCtxRetain": 7000,
    "cuDevicePrimaryCtxRelease": 11000,
    "cuStreamGetCtx": 9020,
    "cuStreamGetCaptureInfo": 11030,
    "cuThreadExchangeStreamCaptureMode": 10010,
    "cuEventCreate": 2000,
    "cuEventRecord": 2000,
    "cuEventQuery": 2000,
    "cuEventDestroy": 4000,
}


class _Driver:
    """Functions of the driver by their names, as cuGetProcAddress_v2 gives them."""

    def __init__(self, library: ctypes.CDLL) -> None:
        for name, version in _FUNCTIONS.items():
            address = c_void_p()
            found = library.cuGetProcAddress_v2(name.encode(), byref(address), c_int(version), c_uint64(0), None)
            if found != 0 or not address.value:
                raise OSError(f"the CUDA driver has no {name}")
            setattr(self, name, ctypes.CFUNCTYPE(c_int)(address.value))

    def __getattr__(self, name: str) -> Callable[..., int]:
        raise AttributeError(name)


_loaded: Optional[_Driver] = None


def _driver() -> Optional[_Driver]:
    """The driver that the process has loaded. None: there is none, so no stream and no device memory can be there."""
    global _loaded
    if _loaded is None:
        name = os.environ.get("TUTTI_CUDA_LIBRARY") or "libcuda.so.1"
        try:
            _loaded = _Driver(ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_LAZY))
        except (OSError, AttributeError):
            return None
    return _loaded


def current_device() -> Optional[int]:
    """The GPU of this thread's current context; None: there is none."""
    driver = _driver()
    context, device = c_void_p(), c_int()
    if driver is None or driver.cuCtxGetCurrent(byref(context)) != 0 or not context.value:
        return None
    return device.value if driver.cuCtxGetDevice(byref(device)) == 0 else None


@contextlib.contextmanager
def beside_captures() -> Iterator[None]:
    """What this thread asks CUDA in here spoils no capture. Otherwise questions such as that for an event end every capture
    of the mode that is CUDA's and PyTorch's default, whichever thread and stream it belongs to."""
    driver, mode = _driver(), c_int(_RELAXED)
    exchanged = driver is not None and driver.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
    try:
        yield
    finally:
        if driver is not None and exchanged:
            driver.cuThreadExchangeStreamCaptureMode(byref(mode))


@contextlib.contextmanager
def _context_of(driver: _Driver, stream: c_void_p, device: int) -> Iterator[bool]:
    """Makes the context of a stream, or where it is the default stream that of the GPU, current. False: it cannot."""
    context = c_void_p()
    if stream.value:
        found = driver.cuStreamGetCtx(stream, byref(context))
    else:
        found = driver.cuDevicePrimaryCtxRetain(byref(context), device)
    pushed = found == 0 and driver.cuCtxPushCurrent(context) == 0
    try:
        yield pushed
    finally:
        if pushed:
            driver.cuCtxPopCurrent(byref(c_void_p()))
        if found == 0 and not stream.value:
            driver.cuDevicePrimaryCtxRelease(device)


def keep(stream: Optional[int], device: int, owners: Iterable[Any]) -> None:
    """`owners` live until what is on the stream now is done. While a stream is captured nothing is kept: the buffers of
    a graph are its owner's to keep."""
    driver = _driver()
    if driver is None:
        return
    release_done(driver)
    handle, event, capturing = c_void_p(stream), c_void_p(), c_int()
    if driver.cuStreamGetCaptureInfo(handle, byref(capturing), None, None, None, None) != 0 or capturing.value:
        return
    with _context_of(driver, handle, device) as current:
        if not current or driver.cuEventCreate(byref(event), c_uint(_NO_TIMING)) != 0:
            return
        if driver.cuEventRecord(event, handle) != 0:
            driver.cuEventDestroy(event)
            return
    with _lock:
        _pending.append((event, tuple(owners)))


def release_done(driver: _Driver) -> None:
    """Lets go of what was kept for calls that are done."""
    with _lock, beside_captures():
        waiting = [entry for entry in _pending if driver.cuEventQuery(entry[0]) == _NOT_READY]
        done = [event for event, _ in _pending if all(event is not other for other, _ in waiting)]
        _pending[:] = waiting
    for event in done:
        driver.cuEventDestroy(event)
