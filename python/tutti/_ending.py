"""Is the program ending, and how? What is dropped then is not a mistake of the program."""
from __future__ import annotations

import atexit
import sys

_by_exception = False


def _note() -> None:
    """Before the end clears what tells it."""
    global _by_exception
    _by_exception = getattr(sys, "last_value", None) is not None


atexit.register(_note)


def is_by_exception() -> bool:
    """Whether an exception that nobody caught ends the program."""
    return _by_exception


def is_ordinary() -> bool:
    """Whether the program has come to its end without one."""
    return sys.is_finalizing() and not _by_exception
