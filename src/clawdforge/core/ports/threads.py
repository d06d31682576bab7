"""What core asks of the database in which graphs keep their checkpoints. Implemented in `stores`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class BegunThread:
    """What a graph that is about to start may use: the thread to load, if there is one, and its way in."""

    load: str | None
    env: Mapping[str, str] = field(repr=False)


class GraphThreads(Protocol):
    """Threads are named `{session}:{claim}:{number}`. A graph reaches those of its claim and no others."""

    async def begin(
        self, session_id: str, claim: int, load: str | None, *, is_certain: bool = False
    ) -> BegunThread:
        """Let a graph in under a claim; whoever has an earlier one is out from then on.

        What it is to remember, `load`, is copied to a thread of this claim. LeaseLost when there is a later
        claim, unless it is certain that this is the latest.
        """
        ...

    async def mark(self, session_id: str, turn_index: int, thread: str) -> None:
        """Note where the thread is at the end of that turn. The number of marks is limited."""
        ...

    async def find(self, session_id: str, turn_index: int) -> str | None:
        """What `begin` is to load, for the thread as it was then; None when that is not known."""
        ...

    async def branch(self, source: str, target: str, turn_index: int) -> str | None:
        """Give another session what was remembered then; likewise."""
        ...

    async def remove(self, session_id: str) -> None: ...
    async def close(self) -> None: ...
