#!/usr/bin/env python3
"""Is the memory of every kind of array found: numpy, torch, DLPack, buffers, interfaces; and what is none refused?"""
import array
import ctypes
import struct
import unittest

import numpy

import tutti
from tutti import _arrays, _dlpack, _types

try:
    import torch
except ImportError:
    torch = None
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def view(of, dtype=None, writes=False):
    return _arrays.view_of(of, "call", "send", None if dtype is None else tutti.DataType[dtype.upper()], writes)


class WithInterface:
    """What CuPy and numba have."""

    def __init__(self, **interface):
        self.__cuda_array_interface__ = {"shape": (2, 3), "typestr": "<f4", "data": (4096, False), "version": 3, **interface}


class OnlyDlpack:
    """An array that hands out nothing but a DLPack capsule, with or without versions."""

    def __init__(self, inner, versioned=False):
        self.inner, self.versioned = inner, versioned

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()

    def __dlpack__(self, **options):
        if "max_version" in options and not self.versioned:
            raise TypeError("unknown argument")
        options.pop("max_version", None)
        return self.inner.__dlpack__(**options)


class HandMade:
    """A DLPack tensor of two by three 16-bit floats with every field as the test wants it."""

    def __init__(self, address=4096, device=1, code=4, bits=16, vector=1, byte_offset=0, strides=None):
        extents = (ctypes.c_int64 * 2)
        self.shape, self.strides = extents(2, 3), extents(*strides) if strides else None
        pointer = ctypes.POINTER(ctypes.c_int64)
        self.tensor = _dlpack._Managed(_dlpack._Tensor(
            address, _dlpack._Device(device, 0), 2, _dlpack._Type(code, bits, vector), ctypes.cast(self.shape, pointer),
            ctypes.cast(self.strides, pointer) if strides else None, byte_offset))

    def __dlpack__(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


class Arrays(unittest.TestCase):
    def expect(self, found, address, count, itemsize, name, writable=True, on_device=False):
        self.assertEqual(tuple(found)[:6], (address, count, itemsize, name, writable, on_device))

    def test_numpy(self):
        for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32",
                     "float64", "complex64", "bool"):
            x = numpy.zeros((3, 5), dtype=name)
            self.expect(view(x), x.ctypes.data, 15, x.itemsize, name)
            self.expect(view(x[1]), x.ctypes.data + 5 * x.itemsize, 5, x.itemsize, name)
        for kind in ("S5", "U5", "M8[s]", [("a", "i4"), ("b", "f8")]):  # moved as bytes
            x = numpy.zeros(3, dtype=kind)
            self.assertEqual((view(x).elements, view(x).itemsize), (3, x.itemsize))
        empty = numpy.zeros((0, 4))
        self.expect(view(empty), empty.ctypes.data, 0, 8, "float64")
        x = numpy.zeros((4, 1, 6))[:, :, :]
        self.assertEqual(view(x[:, 0]).elements, 24)
        self.assertEqual(view(x[2:3, :, ::1].T[:, :, 0:1]).elements, 6)  # strides of single elements do not matter

    def test_numpy_that_is_refused(self):
        for bad, why in ((numpy.zeros((4, 4)).T, "not contiguous"), (numpy.zeros(8)[::2], "not contiguous"),
                         (numpy.zeros(8)[::-1], "not contiguous"), (numpy.zeros(3, dtype=">i4"), "other order"),
                         (numpy.broadcast_to(numpy.zeros(1), (5,)), "not contiguous"),
                         (numpy.array([None]), "Python objects"),
                         (numpy.zeros(2, dtype=[("a", "i4"), ("b", "O")]), "Python objects")):
            with self.subTest(why), self.assertRaisesRegex(tutti.InvalidArgumentError, f"call: send .*{why}"):
                view(bad)
        fixed = numpy.zeros(3)
        fixed.flags.writeable = False
        self.assertFalse(view(fixed).writable)
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "read-only"):
            view(fixed, writes=True)

    def test_buffers(self):
        data = bytearray(b"abcdef")
        at = ctypes.addressof(ctypes.c_char.from_buffer(data))
        self.expect(view(data), at, 6, 1, "uint8")
        self.expect(view(memoryview(data)[2:]), at + 2, 4, 1, "uint8")
        self.assertFalse(view(b"abc").writable)
        numbers = array.array("d", [1, 2, 3])
        self.expect(view(numbers), numbers.buffer_info()[0], 3, 8, "float64")
        held = view(numbers)
        with self.assertRaises(BufferError):  # memory that a call uses cannot move
            numbers.append(4)
        del held
        numbers.append(4)
        for kind, name in ((ctypes.c_int32, "int32"), (ctypes.c_uint64, "uint64"), (ctypes.c_float, "float32")):
            x = (kind * 7)()
            self.expect(view(x), ctypes.addressof(x), 7, ctypes.sizeof(kind), name)
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "not contiguous"):
            view(memoryview(data)[::2])
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "other order"):
            view((ctypes.c_int32.__ctype_be__ * 2)())

    def test_memory_of_another_type(self):
        x = numpy.zeros(6, dtype=numpy.uint16)
        self.expect(view(x, "bfloat16"), x.ctypes.data, 6, 2, "bfloat16")
        raw = numpy.zeros(12, dtype=numpy.uint8)
        self.expect(view(raw, "float32"), raw.ctypes.data, 3, 4, "float32")
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "12 bytes, which is not a multiple of the 8"):
            view(raw, "float64")
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "elements of 2 bytes"):
            view(x, "float64")
        self.assertEqual(view(numpy.ones(3), "float64").type_name, "float64")
        for other in ("int64", "uint64", "float32", "uint8"):
            with self.assertRaisesRegex(tutti.InvalidArgumentError, f"elements of float64, and dtype says {other}"):
                view(numpy.ones(3), other)

    def test_float8_with_infinities_is_another_type(self):
        """ml_dtypes has both; the library computes with the one without."""
        class Ieee:
            name = "float8_e4m3"

        class Finite:
            name = "float8_e4m3fn"

        self.assertIsNone(_types.by_name("float8_e4m3"))
        self.assertEqual(_types.data_type(Finite(), ""), tutti.DataType.FLOAT8_E4M3)
        with self.assertRaises(tutti.InvalidArgumentError):
            _types.data_type(Ieee(), "")
        raw = view(numpy.zeros(3, dtype=numpy.uint8), "float8_e4m3")
        self.assertEqual(_types.by_name(raw.type_name), tutti.DataType.FLOAT8_E4M3)

    @unittest.skipUnless(ml_dtypes, "ml_dtypes is not installed")
    def test_ml_dtypes(self):
        for name, ours in (("bfloat16", "bfloat16"), ("float8_e4m3fn", "float8_e4m3"), ("float8_e5m2", "float8_e5m2")):
            found = view(numpy.zeros(3, dtype=getattr(ml_dtypes, name)))
            self.assertEqual(_types.by_name(found.type_name), tutti.DataType[ours.upper()])

    def test_device_memory(self):
        self.expect(view(WithInterface()), 4096, 6, 4, "float32", on_device=True)
        self.expect(view(WithInterface(strides=(12, 4))), 4096, 6, 4, "float32", on_device=True)
        self.assertFalse(view(WithInterface(data=(4096, True))).writable)
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "not contiguous"):
            view(WithInterface(strides=(4, 8)))
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "mask"):
            view(WithInterface(mask=object()))

    def test_dlpack(self):
        x = numpy.zeros((2, 3), dtype="int16")
        for name in ("int16", "uint8", "float16", "float64", "complex128"):
            x = numpy.zeros((2, 3), dtype=name)
            for versioned in (False, True):
                self.expect(view(OnlyDlpack(x, versioned)), x.ctypes.data, 6, x.itemsize, name)
        with self.assertRaisesRegex(tutti.InvalidArgumentError, "not contiguous"):
            view(OnlyDlpack(x.T))
        found = view(OnlyDlpack(numpy.full(1000, 7.0)))  # nobody but the view keeps this array
        self.assertEqual((ctypes.c_double * 1000).from_address(found.address)[999], 7)

    def test_every_field_of_dlpack(self):
        self.expect(view(HandMade()), 4096, 6, 2, "bfloat16")
        self.expect(view(HandMade(byte_offset=32)), 4128, 6, 2, "bfloat16")
        self.expect(view(HandMade(strides=(3, 1))), 4096, 6, 2, "bfloat16")
        self.expect(view(HandMade(device=2, code=2)), 4096, 6, 2, "float16", on_device=True)
        self.expect(view(HandMade(device=3, code=10, bits=8)), 4096, 6, 1, "float8_e4m3fn")
        for options, why in (({"strides": (1, 2)}, "not contiguous"), ({"device": 7}, "device of DLPack's type 7"),
                             ({"vector": 4}, "elements of 16 bits in 4"), ({"bits": 4}, "elements of 4 bits")):
            with self.assertRaisesRegex(tutti.InvalidArgumentError, why):
                view(HandMade(**options))

    @unittest.skipUnless(torch, "torch is not installed")
    def test_torch(self):
        for name in ("int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool", "complex64"):
            x = torch.zeros(3, 5, dtype=getattr(torch, name))
            self.expect(view(x), x.data_ptr(), 15, x.element_size(), name)
            if name != "bool":  # which torch does not export before 2.0
                self.assertEqual(view(OnlyDlpack(x)).type_name, name)
        parameter = torch.zeros(4, requires_grad=True)
        self.expect(view(parameter), parameter.data_ptr(), 4, 4, "float32")
        for bad, why in ((torch.zeros(3, 4).t(), "not contiguous"), (torch.zeros(3, dtype=torch.complex64).conj(), "resolve_conj"),
                         (torch.zeros(3).to_sparse(), "layout"), (torch.empty(3, device="meta"), "device meta")):
            with self.subTest(why), self.assertRaisesRegex(tutti.InvalidArgumentError, f"send .*{why}"):
                view(bad)

    def test_no_array(self):
        for nothing in (5, "text", object(), [1, 2], 1.5):
            with self.assertRaisesRegex(TypeError, f"call: send is a {type(nothing).__name__}, which is not an array"):
                view(nothing)


class Types(unittest.TestCase):
    def test_names(self):
        for kind in tutti.DataType:
            self.assertEqual(_types.data_type(kind, ""), kind)
            self.assertEqual(_types.data_type(kind.name.lower(), ""), kind)
        self.assertEqual(_types.data_type(numpy.float32, ""), tutti.DataType.FLOAT32)
        self.assertEqual(_types.data_type(numpy.dtype("int64"), ""), tutti.DataType.INT64)
        with self.assertRaises(tutti.InvalidArgumentError):
            _types.data_type("bool", "")
        self.assertEqual([kind.itemsize for kind in tutti.DataType], [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 8, 16])

    def test_scalars_are_rounded_to_the_nearest(self):
        for value, name, expected in ((1.0, "bfloat16", 0x3F80), (1 + 2**-8, "bfloat16", 0x3F80), (1 + 3 * 2**-8, "bfloat16", 0x3F82),
                                      (-2.0, "bfloat16", 0xC000), (1.0, "float8_e4m3", 0x38), (-3.0, "float8_e4m3", 0xC4),
                                      (448.0, "float8_e4m3", 0x7E), (1.0, "float8_e5m2", 0x3C), (1.125, "float8_e5m2", 0x3C),
                                      (0.0, "float8_e5m2", 0), (1.5, "float16", 0x3E00)):
            encoded = _types.encode(value, tutti.DataType[name.upper()], "")
            self.assertEqual(int.from_bytes(encoded, "little"), expected, f"{value} as {name}")
        self.assertEqual(_types.encode(-5, tutti.DataType.INT64, ""), struct.pack("<q", -5))
        for value, name in ((300, "uint8"), (-1, "uint64"), (1.5, "int32"), ("x", "float32")):
            with self.assertRaises(tutti.InvalidArgumentError):
                _types.encode(value, tutti.DataType[name.upper()], "")


if __name__ == "__main__":
    unittest.main()
