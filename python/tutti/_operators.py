"""Operators that a program makes for the reductions of a communicator."""
from __future__ import annotations

from ctypes import c_byte, c_int
from typing import Any, Callable, Optional

from . import _types
from ._library import OperatorFunction, lib


class _OfCommunicator:
    """What `op` of a call may be beside tutti.RedOp."""

    def __init__(self, communicator: Any, number: int) -> None:
        self._communicator, self._tutti_op = communicator, number

    def destroy(self) -> None:
        """Frees the operator; calls on streams may still use it. Errors: InvalidArgumentError (it was freed already)."""
        result = lib.tuttiRedOpDestroy(self._tutti_op, self._communicator._handle)
        self._communicator._check(result, f"{type(self).__name__}.destroy")


class PreMulSum(_OfCommunicator):
    """A sum whose inputs are first multiplied by this rank's scalar; made by Communicator.create_pre_mul_sum."""


class Operator(_OfCommunicator):
    """A function of the program as an operator; made by Communicator.create_operator."""

    def __init__(self, communicator: Any, function: Callable[[memoryview, memoryview], Any],
                 kind: _types.DataType) -> None:
        if not callable(function):
            raise TypeError(f"create_operator: function is a {type(function).__name__}, which cannot be called")
        self._error: Optional[BaseException] = None
        letter = _types.format_of(kind)

        def combine(first: int, inout: int, count: int, _type: int, _context: Any) -> None:
            try:
                views = [memoryview((c_byte * (count * kind.itemsize)).from_address(at)).cast("B") for at in (first, inout)]
                if letter is not None:
                    views = [view.cast(letter) for view in views]
                function(views[0].toreadonly(), views[1])
            except BaseException as error:  # nothing may leave by C; the call that waits raises it
                self._error = self._error or error

        self._combine = OperatorFunction(combine)
        number = c_int()
        communicator._check(lib.tuttiRedOpCreate(number, self._combine, None, kind, communicator._handle),
                            "create_operator")
        super().__init__(communicator, number.value)

    def raise_error(self) -> None:
        """Raises the first exception of the function that no call has raised yet."""
        error, self._error = self._error, None
        if error is not None:
            raise error
