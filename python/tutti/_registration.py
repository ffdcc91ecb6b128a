"""Memory that a program has announced, and who keeps it."""
from __future__ import annotations

from ctypes import c_void_p
from typing import Any

from ._library import lib


class Registration:
    """Memory that was announced as often used; made by Communicator.register. The communicator keeps the array until
    deregister or its own end, also where this object is dropped."""

    def __init__(self, communicator: Any, owner: Any) -> None:
        self._communicator, self._handle = communicator, c_void_p()
        communicator._registered[id(self._handle)] = self._handle, owner

    def deregister(self) -> None:
        """Takes the announcement back. Errors: InvalidArgumentError (that was done already)."""
        result = lib.tuttiCommDeregister(self._communicator._handle, self._handle)
        self._communicator._check(result, "Registration.deregister")
        self._communicator._registered.pop(id(self._handle), None)

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, *error: Any) -> None:
        self.deregister()
