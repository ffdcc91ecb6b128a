"""Element types for tests: small integers as each of tutti's types, exact in all of them."""
import numpy

# 0, 1, 2, 3, 4 in the formats that numpy does not have.
_SMALL = {
    "bfloat16": (numpy.uint16, [0, 0x3F80, 0x4000, 0x4040, 0x4080]),
    "float8_e4m3": (numpy.uint8, [0, 0x38, 0x40, 0x44, 0x48]),
    "float8_e5m2": (numpy.uint8, [0, 0x3C, 0x40, 0x42, 0x44]),
}


class Kind:
    """`dtype` is for the call, None where numpy's own type says it; `limit`: inputs are less than that."""

    def __init__(self, name):
        self.name = name
        self.small = name in _SMALL
        self.dtype = name if self.small else None
        self.limit = 2 if self.small else 4
        self.numpy_type = _SMALL[name][0] if self.small else numpy.dtype(name).type

    def __repr__(self):
        return self.name

    def of(self, integers):
        """An array of these values."""
        if self.small:
            return numpy.array(_SMALL[self.name][1], dtype=self.numpy_type)[integers]
        return numpy.asarray(integers).astype(self.numpy_type)

    def blank(self, count, offset=0):
        """An array that begins `offset` bytes behind an aligned address, filled with ones in every bit."""
        raw = numpy.full(count * numpy.dtype(self.numpy_type).itemsize + offset, 0xFF, dtype=numpy.uint8)
        return raw[offset:].view(self.numpy_type)

    def copy(self, values, offset=0):
        placed = self.blank(len(values), offset)
        placed[:] = values
        return placed


REDUCED = [Kind(name) for name in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
                                   "bfloat16", "float8_e4m3", "float8_e5m2")]
# Types that are moved and never computed with.
MOVED = REDUCED + [Kind(name) for name in ("int16", "uint16", "bool", "complex64", "complex128")]
COUNTS = (0, 1, 3, 64, 1001)


def inputs(kind, rank, count, salt=0):
    """Integers that every rank can compute for every other."""
    return numpy.random.default_rng((rank, count, salt)).integers(0, kind.limit, count)
