"""The one Work of several calls that a caller puts together."""
from __future__ import annotations

from typing import Any, List


class Together:
    """Of works that were made one after another; each may have failed."""

    def __init__(self, works: List[Any]) -> None:
        self._works = works

    def wait(self, *arguments: Any, **options: Any) -> bool:
        """Errors: of the first work that has one."""
        for work in self._works:
            work.wait(*arguments, **options)
        return True

    synchronize = wait

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)
