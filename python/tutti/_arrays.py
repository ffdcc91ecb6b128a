"""Finds the memory of an array: address, count, element type.

It takes objects with `__cuda_array_interface__` (CuPy, numba), torch's tensors, objects with
`__array_interface__` (numpy), with DLPack (`__dlpack__`), and with the buffer protocol.
"""
from __future__ import annotations

import math
import sys
from typing import Any, Dict, NamedTuple, Optional, Sequence

from . import _dlpack, _types
from ._errors import InvalidArgumentError


class View(NamedTuple):
    """Contiguous memory of so many elements. As long as `owner` lives, the memory does: it is not always the object that
    was asked, which may have computed the memory, or be given other memory meanwhile."""

    address: int
    elements: int
    itemsize: int
    type_name: str  # as "float32"; of types that tutti does not know some name of their own
    writable: bool
    on_device: bool
    owner: Any


class _Refused(Exception):
    """Why an object is not such memory; becomes an InvalidArgumentError that also says which call and argument."""


def _not_contiguous(shape: Sequence[int], strides: Sequence[int]) -> _Refused:
    return _Refused(f"is not contiguous (shape {tuple(shape)}, strides {tuple(strides)} bytes): pass a contiguous "
                    "copy, as numpy.ascontiguousarray or tensor.contiguous() make one")


def _require_contiguous(shape: Sequence[int], strides: Optional[Sequence[int]], itemsize: int) -> None:
    """In C order. `strides` are in bytes; None: contiguous. Dimensions of one element may have any stride."""
    if strides is None or 0 in shape:
        return
    expected = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != expected:
            raise _not_contiguous(shape, strides)
        expected *= extent


# What _of_typestr has found out.
_TYPE_STRINGS: Dict[str, "tuple[str, int]"] = {}


def _of_typestr(typestr: str, array: Any) -> "tuple[str, int]":
    """Name and itemsize of "<f4"; types that numpy has no letter for are named after
    their dtype."""
    known = _TYPE_STRINGS.get(typestr)
    if known is not None:
        return known
    order, kind = typestr[0], typestr[1]
    if kind == "O" or (kind == "V" and getattr(getattr(array, "dtype", None), "hasobject", False)):
        raise _Refused("holds Python objects; tutti moves plain numbers and bytes")
    itemsize = int(typestr[2:].partition("[")[0])  # M8[ns]
    if order not in ("|", _types.NATIVE) and itemsize > 1:
        raise _Refused(f"has its bytes in the other order ({typestr}): pass a copy in native order")
    if kind == "V" or (kind == "f" and itemsize == 1):  # ml_dtypes
        return getattr(getattr(array, "dtype", None), "name", typestr[1:]), itemsize
    if kind in ("S", "U"):
        itemsize *= 4 if kind == "U" else 1
    _TYPE_STRINGS[typestr] = (_types.name_of_kind(kind, itemsize), itemsize)
    return _TYPE_STRINGS[typestr]


def _of_interface(interface: Dict[str, Any], array: Any, on_device: bool) -> View:
    data = interface.get("data")
    if data is None or isinstance(data, (bytes, bytearray, memoryview)) or interface.get("mask") is not None:
        raise _Refused("has an array interface without an address, or with a mask")
    shape = interface["shape"]
    name, itemsize = _of_typestr(interface["typestr"], array)
    _require_contiguous(shape, interface.get("strides"), itemsize)
    return View(data[0] or 0, math.prod(shape), itemsize, name, not data[1], on_device, array)


def _of_scalar(scalar: Any, numpy: Any, writes: bool) -> View:
    """A value of numpy, as of array[0] and array.sum(): what its array interface names is freed before it returns."""
    if writes:
        raise _Refused(f"is a {type(scalar).__name__}, a value, and the call would write to a copy of it: pass an array of "
                       "one element, as numpy.array([x]) makes one")
    copy = numpy.asarray(scalar)
    return _of_interface(copy.__array_interface__, copy, on_device=False)


def _of_asked(array: Any, name: str, numpy: Any) -> View:
    """An object's answer, an address that has to be good as long as the object lives. One that is computed from a
    temporary is not: its memory is free by now. So another array takes that memory, and the object is asked again."""
    view = _of_interface(getattr(array, name), array, on_device=name != "__array_interface__")
    taken = None if numpy is None or view.on_device else numpy.empty(view.elements * view.itemsize, "uint8")
    again = getattr(array, name)
    del taken
    if again is None or (again["data"][0] or 0) != view.address:
        raise _Refused(f"names other memory each time it is asked for its {name}, which therefore does not live as long "
                       "as the object: pass the array itself, or a copy")
    return view


class _Storage:
    """The memory of a tensor, which may be given other memory while this one is in use: tensor.data = other, set_."""

    __slots__ = ("_storage", "_address")

    def __init__(self, tensor: Any) -> None:
        # Without the words of newer versions of torch that typed storages are going away.
        self._storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor._storage()
        self._address = self._storage.data_ptr()

    def has(self, tensor: Any) -> bool:
        """Whether all elements are in it; a storage can be made smaller."""
        return bool((tensor.storage_offset() + tensor.numel()) * tensor.element_size() <= self._storage.nbytes())

    def moved(self) -> bool:
        """Whether it was resized or freed, which nothing can prevent."""
        return bool(self._storage.data_ptr() != self._address)


def _of_tensor(tensor: Any) -> View:
    """A tensor of torch, whose DLPack and array interfaces refuse tensors that require gradients."""
    place = tensor.device.type
    if place not in ("cpu", "cuda"):
        raise _Refused(f"is a tensor on device {tensor.device}; tutti takes host and CUDA memory")
    if tensor.is_sparse or not str(tensor.layout).endswith("strided"):
        raise _Refused(f"is a tensor of layout {tensor.layout}; pass a dense one")
    itemsize = tensor.element_size()
    if not tensor.is_contiguous():
        raise _not_contiguous(tensor.shape, [stride * itemsize for stride in tensor.stride()])
    if (tensor.is_complex() and tensor.is_conj()) or tensor.is_neg():
        raise _Refused("is a tensor whose values are not its memory: pass tensor.resolve_conj().resolve_neg()")
    storage = _Storage(tensor)
    if not storage.has(tensor):
        raise _Refused("is a tensor whose storage was freed or made smaller")
    return View(tensor.data_ptr(), tensor.numel(), itemsize, _types.name_of(tensor.dtype), True, place == "cuda", storage)


def _require_same(first: int, second: int) -> None:
    """Addresses of one object, both of which are held."""
    if first != second:
        raise _Refused("hands out other memory each time it is asked, so that what the call writes would be lost: pass "
                       "the array itself")


def _of_dlpack(array: Any, writes: bool) -> View:
    tensor = _dlpack.tensor_of(array)
    _require_contiguous(tensor.shape, tensor.strides, tensor.itemsize)
    if writes and tensor.copied:
        raise _Refused("hands out a copy of its memory, so that what the call writes would be lost")
    if writes:
        _require_same(tensor.address, _dlpack.tensor_of(array).address)
    return View(tensor.address, math.prod(tensor.shape), tensor.itemsize, tensor.type_name, tensor.writable,
                tensor.on_device, tensor.owner)


def _of_buffer(array: Any, writes: bool) -> View:
    view = memoryview(array)
    if not view.c_contiguous:
        raise _not_contiguous(view.shape or (), view.strides or ())
    try:
        name = _types.name_of_format(view.format, view.itemsize)
    except ValueError as error:
        raise _Refused(str(error)) from None
    address = _dlpack.address_of_buffer(view)
    if writes:
        with memoryview(array) as again:
            _require_same(address, _dlpack.address_of_buffer(again))
    return View(address, view.nbytes // (view.itemsize or 1), view.itemsize, name, not view.readonly, False, view)


def _of_numpy(array: Any) -> View:
    ma = sys.modules.get("numpy.ma")
    if ma is not None and isinstance(array, getattr(ma, "MaskedArray", ())) and ma.is_masked(array):
        raise _Refused("is an array with a mask, and what the mask hides would be moved too: pass array.data or "
                       "array.filled()")
    return _of_interface(array.__array_interface__, array, on_device=False)


def _find(array: Any, writes: bool) -> View:
    numpy = sys.modules.get("numpy")  # without it there are no arrays of it
    if isinstance(array, getattr(numpy, "ndarray", ())):
        return _of_numpy(array)
    if isinstance(array, getattr(numpy, "generic", ())):
        return _of_scalar(array, numpy, writes)
    # Tensors of torch have a cuda interface only where they are on a GPU, and none of the others.
    if hasattr(array, "data_ptr") and hasattr(array, "is_neg"):
        return _of_tensor(array)
    for name in ("__array_interface__", "__cuda_array_interface__"):
        if getattr(array, name, None) is not None:
            return _of_asked(array, name, numpy)
    return _of_dlpack(array, writes) if hasattr(array, "__dlpack__") else _of_buffer(array, writes)


# What arrays call elements whose type they do not know: bfloat16 comes as uint16 or int16, 8-bit floats as uint8.
_CARRIERS = (_types.DataType.UINT8, _types.DataType.INT16, _types.DataType.UINT16)


def _as_type(view: View, kind: _types.DataType) -> View:
    """The same memory as elements of `kind`, which the caller names: of the same size, or made of the view's bytes."""
    own = _types.by_name(view.type_name)
    if own not in (None, kind, *_CARRIERS):
        raise _Refused(f"has elements of {view.type_name}, and dtype says {kind.name.lower()}: dtype is for arrays "
                       "that cannot say their type")
    if view.itemsize == kind.itemsize:
        return view._replace(type_name=_types.array_name(kind))
    total = view.elements * view.itemsize
    if view.itemsize != 1:
        raise _Refused(f"has elements of {view.itemsize} bytes ({view.type_name}); dtype {kind.name.lower()} needs "
                       f"elements of {kind.itemsize} bytes, or single bytes")
    if total % kind.itemsize:
        raise _Refused(f"has {total} bytes, which is not a multiple of the {kind.itemsize} bytes of "
                       f"{kind.name.lower()}")
    return View(view.address, total // kind.itemsize, kind.itemsize, _types.array_name(kind), view.writable,
                view.on_device, view.owner)


def view_of(array: Any, call: str, argument: str, kind: Optional[_types.DataType] = None, writes: bool = False) -> View:
    """Memory of `array`, the argument called `argument` of `call`.

    Errors: TypeError (not an array); InvalidArgumentError (not contiguous, read-only or a copy where the call writes, not
    of `kind`).
    """
    try:
        view = _find(array, writes)
        if kind is not None:
            view = _as_type(view, kind)
        if writes and not view.writable:
            raise _Refused("is read-only, and the call writes to it")
        return view
    except (_Refused, _dlpack.Refused) as why:
        raise InvalidArgumentError(f"{argument} {why}", call) from None
    except (TypeError, BufferError) as error:
        raise TypeError(f"{call}: {argument} is a {type(array).__name__}, which is not an array that tutti understands "
                        f"(buffer protocol, __array_interface__, __cuda_array_interface__, DLPack): {error}") from None
