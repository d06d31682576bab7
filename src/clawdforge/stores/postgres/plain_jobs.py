"""Which work is run in the plain way, a statement for each call, because it was found to need that."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

MOST_TIMES: Final = 64
"""So often at most a job of that kind is run so, before it is tried otherwise again."""
MOST_KINDS: Final = 1000


class PlainJobs:
    """Works that are of one kind have the same code."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        self._left: dict[int, int] = {}

    def is_plain(self, work: Callable[[Any], Any]) -> bool:
        return self._left.get(kind_of(work), 0) > 0

    def note(self, work: Callable[[Any], Any]) -> None:
        """It is needed: the first time for one, and for twice as many each time that follows."""
        if len(self._times) >= MOST_KINDS:
            self._times.clear()
            self._left.clear()
        kind = kind_of(work)
        self._times[kind] = self._left[kind] = min(MOST_TIMES, 2 * self._times.get(kind, 0) or 1)

    def count(self, work: Callable[[Any], Any]) -> None:
        """It was run so once more."""
        kind = kind_of(work)
        if self._left.get(kind, 0) > 0:
            self._left[kind] -= 1

    def forget(self, work: Callable[[Any], Any]) -> None:
        """It was not needed."""
        self._times.pop(kind_of(work), None)


def kind_of(work: Callable[[Any], Any]) -> int:
    """Its code: a function is made anew for each job.

    Which it is, and not what it says: Python would look at all of that each time. Should another one ever
    stand in the place of one that is gone, it is only run in the slower way for a while.
    """
    while isinstance(work, partial):
        work = work.func
    return id(getattr(work, "__code__", type(work)))
