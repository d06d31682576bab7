"""How much of the event loop a connection takes: it asks before each step, and computes elsewhere."""

from collections.abc import Callable
from typing import Protocol, TypeVar

Result = TypeVar("Result")


class Pace(Protocol):
    """A server shares its loop out between apps; a program with one connection need not."""

    async def enter(self) -> None:
        """Before a short step."""
        ...

    async def compute(self, work: Callable[[], Result], /) -> Result:
        """Do what takes long without holding up the loop."""
        ...
