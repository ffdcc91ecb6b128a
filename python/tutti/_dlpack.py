"""Reads what arrays hand out in C structs: DLPack's capsules and the buffer protocol's addresses."""
from __future__ import annotations

import ctypes
from ctypes import (POINTER, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p,
                    py_object)
from typing import Any, NamedTuple, Optional, Tuple

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_NO_SYNCHRONISATION = -1  # the caller says on which stream the call runs
_READ_ONLY, _COPIED = 1, 2

# Names of DLPack's type codes: of those with any number of bits, and of the others.
_WORDS = {0: "int", 1: "uint", 2: "float", 5: "complex"}
_NAMES = {(4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}


class Refused(Exception):
    """Why an array cannot be used."""


class Tensor(NamedTuple):
    """What a capsule says. `strides` are in bytes; None: contiguous."""

    address: int
    shape: Tuple[int, ...]
    strides: Optional[Tuple[int, ...]]
    itemsize: int
    type_name: str
    writable: bool
    copied: bool
    on_device: bool
    owner: Any


class _Device(ctypes.Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", _Device), ("ndim", c_int32), ("dtype", _Type),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _Versioned(ctypes.Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", _Tensor)]


class _Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [("buf", c_void_p), ("obj", py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
                ("readonly", c_int), ("ndim", c_int), ("format", c_char_p), ("shape", c_void_p), ("strides", c_void_p),
                ("suboffsets", c_void_p), ("internal", c_void_p)]


def _python(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return function


_pointer = _python("PyCapsule_GetPointer", c_void_p, py_object, c_char_p)
_is_valid = _python("PyCapsule_IsValid", c_int, py_object, c_char_p)
_get_buffer = _python("PyObject_GetBuffer", c_int, py_object, POINTER(_Buffer), c_int)
_release_buffer = _python("PyBuffer_Release", None, POINTER(_Buffer))


def address_of_buffer(view: memoryview) -> int:
    """Where the memory of a contiguous view begins."""
    plain = _Buffer()
    _get_buffer(view, plain, 0)
    address = plain.buf or 0
    _release_buffer(plain)
    return address


def _capsule(array: Any) -> Any:
    """The array's capsule. Without a device there is no stream to wait for."""
    device = getattr(array, "__dlpack_device__", None)
    arguments = {} if device is None or device()[0] in (_CPU, _CUDA_HOST) else {"stream": _NO_SYNCHRONISATION}
    try:
        return array.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:  # written before DLPack 1.0
        return array.__dlpack__(**arguments)


def tensor_of(array: Any) -> Tensor:
    """Errors: Refused; what the array's __dlpack__ raises."""
    capsule = _capsule(array)
    flags = 0
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise Refused(f"has a DLPack capsule of version {versioned.major}.{versioned.minor}; tutti reads 1")
        tensor, flags = versioned.tensor, versioned.flags
    elif _is_valid(capsule, b"dltensor"):
        tensor = _Managed.from_address(_pointer(capsule, b"dltensor")).tensor
    else:
        raise Refused("has a __dlpack__ that returns no DLPack capsule")
    return _read(tensor, flags, capsule)


def _read(tensor: _Tensor, flags: int, capsule: Any) -> Tensor:
    kind = tensor.device.type
    if kind not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
        raise Refused(f"is on a device of DLPack's type {kind}; tutti takes host and CUDA memory")
    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    if lanes != 1 or bits % 8:
        raise Refused(f"has elements of {bits} bits in {lanes} lanes")
    itemsize = bits // 8
    name = _NAMES.get((code, bits)) or f"{_WORDS.get(code, f'dlpack{code}_')}{bits}"
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] * itemsize for i in range(tensor.ndim)) if tensor.strides else None
    return Tensor((tensor.data or 0) + tensor.byte_offset, shape, strides, itemsize, name, not flags & _READ_ONLY,
                  bool(flags & _COPIED), kind in (_CUDA, _CUDA_MANAGED), capsule)

