"""Which reads are long: pages of very many rows. A thousand messages would keep the event loop for 8 ms."""

from collections.abc import Callable
from typing import Final, TypeVar

from clawdforge.core.ports import Store, View

T = TypeVar("T")
FEW_ROWS: Final = 200
"""As many as a page has where nobody says how many: to read them takes two milliseconds."""


async def read_rows(
    store: Store, app: str, rows: int, work: Callable[[View], T], count: Callable[[View], int] | None = None
) -> T:
    """Read up to so many rows: at once where they are few, and else beside the event loop.

    `count` says how many there are at most, where that is known before.
    """
    if rows > FEW_ROWS and count is not None:
        rows = min(rows, await store.read(app, count))
    return await (store.read(app, work) if rows <= FEW_ROWS else store.read_long(app, work))
