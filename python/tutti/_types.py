"""Element types and reduction operators, and the names that other libraries have for them."""
from __future__ import annotations

import enum
import struct
import sys
from typing import Any, Callable, Dict, List, Optional, Union

from ._errors import InvalidArgumentError


class DataType(enum.IntEnum):
    """tuttiDataType_t: the types that reductions compute with. Other types can be moved but not reduced."""

    INT8 = 0
    UINT8 = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT8_E4M3 = 10
    FLOAT8_E5M2 = 11
    # Reduced in host memory alone.
    INT16 = 64
    UINT16 = 65
    COMPLEX64 = 66
    COMPLEX128 = 67

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _SIZES[self]


_SIZES: Dict[int, int] = dict(zip(DataType, (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 8, 16)))


class RedOp(enum.IntEnum):
    """tuttiRedOp_t: the operators of reductions. See Communicator.create_pre_mul_sum and create_operator for more.

    Those on bits and truth are for integers in host memory. Truth is every number but 0, and gives 0 or 1. MAX and MIN
    are not for complex numbers. AVG of floats is finite wherever they are; SUM of those of 16 and 8 bits may overflow on
    its way, see tuttiSum in types.h.
    """

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    AVG = 4
    BIT_AND = 6
    BIT_OR = 7
    BIT_XOR = 8
    LOGICAL_AND = 9
    LOGICAL_OR = 10
    LOGICAL_XOR = 11


# Names that arrays of numpy, ml_dtypes, torch and DLPack give their types. Their "float8_e4m3" is another one, which
# has infinities.
_ARRAY_NAMES: Dict[DataType, str] = {
    kind: "float8_e4m3fn" if kind is DataType.FLOAT8_E4M3 else kind.name.lower() for kind in DataType}
_BY_NAME: Dict[str, DataType] = {name: kind for kind, name in _ARRAY_NAMES.items()}
TYPE_NAMES = ", ".join(_BY_NAME)


def by_name(name: str) -> Optional[DataType]:
    """The type that arrays call so; None: not one that reductions compute with."""
    return _BY_NAME.get(name)


def array_name(kind: DataType) -> str:
    """What by_name takes."""
    return _ARRAY_NAMES[kind]


def name_of(dtype: Any) -> str:
    """Name of a DataType, a numpy or torch dtype or a scalar type, as in "float32"."""
    if isinstance(dtype, DataType):
        return dtype.name.lower()
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).rpartition(".")[2]


def data_type(dtype: Any, call: str) -> DataType:
    """Of a DataType, its name, or a type of an array. Errors: InvalidArgumentError."""
    known = dtype if isinstance(dtype, DataType) else by_name(name_of(dtype))
    if known is None and isinstance(dtype, str) and dtype.upper() == DataType.FLOAT8_E4M3.name:
        known = DataType.FLOAT8_E4M3
    if known is None:
        raise InvalidArgumentError(f"{dtype!r} is not one of tutti's types: {TYPE_NAMES}", call)
    return known


def reduction(op: Union[RedOp, str, Any], call: str) -> int:
    """The number of a RedOp, of its name in any case, or of an operator of the program."""
    if isinstance(op, str):
        try:
            return RedOp[op.upper()]
        except KeyError:
            pass
    elif isinstance(op, RedOp):
        return op
    elif hasattr(op, "_tutti_op"):
        return int(op._tutti_op)
    names = ", ".join(kind.name.lower() for kind in RedOp)
    raise InvalidArgumentError(f"op {op!r} is none of {names}, and not from create_pre_mul_sum or create_operator", call)


def _small_float(bits: int, exponent_bits: int, mantissa_bits: int, infinities: bool) -> float:
    """Value of an 8-bit float."""
    sign = -1.0 if bits & 0x80 else 1.0
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = bits & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    if exponent == (1 << exponent_bits) - 1:
        if infinities:
            return sign * float("inf") if mantissa == 0 else float("nan")
        if mantissa == (1 << mantissa_bits) - 1:
            return float("nan")
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def _nearest_small(value: float, exponent_bits: int, mantissa_bits: int, infinities: bool) -> bytes:
    """The 8-bit float nearest to `value`, of two the even one."""
    values = [_small_float(bits, exponent_bits, mantissa_bits, infinities) for bits in range(256)]
    if value != value:
        return bytes([0x7F])
    finite: List[int] = [bits for bits, known in enumerate(values) if abs(known) < float("inf")]
    same_sign = [bits for bits in finite if (bits >= 0x80) == (value < 0)]
    return bytes([min(same_sign, key=lambda bits: (abs(values[bits] - value), bits & 1))])


def _bfloat16(value: float) -> bytes:
    """Rounded from float32 to the nearest, of two the even one."""
    bits = struct.unpack("=I", struct.pack("=f", value))[0]
    if value == value:
        bits += 0x7FFF + (bits >> 16 & 1)
    else:
        bits |= 0x400000
    return struct.pack("=H", bits >> 16 & 0xFFFF)


_FORMATS = {
    DataType.INT8: "b", DataType.UINT8: "B", DataType.INT32: "i", DataType.UINT32: "I", DataType.INT64: "q",
    DataType.INT16: "h", DataType.UINT16: "H", DataType.UINT64: "Q", DataType.FLOAT16: "e", DataType.FLOAT32: "f", DataType.FLOAT64: "d"}
_ENCODERS: Dict[DataType, Callable[[float], bytes]] = {
    DataType.BFLOAT16: _bfloat16,
    DataType.FLOAT8_E4M3: lambda value: _nearest_small(value, 4, 3, False),
    DataType.FLOAT8_E5M2: lambda value: _nearest_small(value, 5, 2, True),
}


def format_of(kind: DataType) -> Optional[str]:
    """The format of memoryviews that have such elements; None: there is none."""
    return _FORMATS.get(kind) if kind is not DataType.FLOAT16 else None


def encode(value: Union[int, float], kind: DataType, call: str) -> bytes:
    """One element of `kind`. Errors: InvalidArgumentError (out of range, or not an integer)."""
    try:
        if kind in _ENCODERS:
            return _ENCODERS[kind](float(value))
        if kind not in _FORMATS:
            raise TypeError("complex numbers have none")
        return struct.pack("=" + _FORMATS[kind], value)
    except (struct.error, OverflowError, TypeError) as error:
        raise InvalidArgumentError(f"scalar {value!r} is not a value of {kind.name.lower()}: {error}", call) from None


# The letters of `__array_interface__` and of the buffer protocol, with the size in bytes behind them.
_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex", "b": "bool"}
_FORMAT_KINDS = {"b": "i", "h": "i", "i": "i", "l": "i", "q": "i", "n": "i", "B": "u", "H": "u", "I": "u", "L": "u",
                 "Q": "u", "N": "u", "c": "u", "e": "f", "f": "f", "d": "f", "g": "f", "?": "b"}
NATIVE = "<" if sys.byteorder == "little" else ">"


def name_of_kind(kind: str, itemsize: int) -> str:
    """("f", 4) is "float32"; other kinds are named by their letter and size."""
    word = _KINDS.get(kind)
    if word is None:
        return f"{kind}{itemsize}"
    return "bool" if word == "bool" else f"{word}{8 * itemsize}"


def name_of_format(code: str, itemsize: int) -> str:
    """Name of a format of the buffer protocol. Errors: ValueError (bytes in the other order)."""
    order, letter = (code[0], code[1:]) if code[:1] in "@=<>!" and code else ("@", code)
    if order in "<>!" and itemsize > 1 and (">" if order == "!" else order) != NATIVE:
        raise ValueError(f"its bytes are in the other order (format {code!r})")
    kind = _FORMAT_KINDS.get(letter)
    return name_of_kind(kind, itemsize) if kind else f"{letter or 'B'}{itemsize}"
