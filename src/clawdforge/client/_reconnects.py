"""What a caller's own function is told while a stream has lost its server, and once it is back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeAlias

    OnReconnect: TypeAlias = Callable[["Reconnect"], None]
    AsyncOnReconnect: TypeAlias = Callable[["Reconnect"], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Reconnect:
    """A stream is connecting again for the `attempt`th time, or `is_back`.

    `why` says how the connection was lost, and `away_secs` for how long the server has not been heard.
    """

    why: str
    attempt: int
    away_secs: float
    is_back: bool
