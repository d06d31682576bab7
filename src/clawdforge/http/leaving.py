"""What is left when a request has been answered: places that it took, and what it waited for."""

from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

KEY: Final = "leaving"
"""Where the state of a request keeps it."""

T = TypeVar("T")


class Leaving:
    """An ExitStack of the only kind that requests need, with a quarter of the calls."""

    __slots__ = ("_entered",)

    def __init__(self) -> None:
        self._entered: list[AbstractContextManager[Any]] = []

    def enter_context(self, what: AbstractContextManager[T]) -> T:
        found = what.__enter__()
        self._entered.append(what)
        return found

    def close(self) -> None:
        """The last that was entered is left first, and the others whatever that raises."""
        try:
            while self._entered:
                self._entered.pop().__exit__(None, None, None)
        finally:
            if self._entered:
                self.close()
