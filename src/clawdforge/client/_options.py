"""What a caller may set for all calls of a client, or for a copy of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Final

from clawdforge import __version__
from clawdforge.client import _lazy as lazy
from clawdforge.client._calls import Call

if TYPE_CHECKING:
    import httpx2

    from clawdforge.client._reconnects import Reconnect

DEFAULT_TIMEOUT_SECS: Final = 600.0
CONNECT_SECS: Final = 10.0
GRACE_SECS: Final = 30.0
"""What the answer to a turn with a time limit may take beyond that limit."""

SILENCE_SECS: Final = 60.0
"""A live stream that says nothing for so long, not even a heartbeat, is taken for dead."""

KEEP_ALIVE_SECS: Final = 2.0
"""Shorter than a server keeps an idle connection: a request must not meet one that is just being closed."""


@dataclass(frozen=True, slots=True)
class Options:
    timeout_secs: float | None = DEFAULT_TIMEOUT_SECS
    retries: int = 2
    reconnect_secs: float = 60.0
    headers: Mapping[str, str] = field(default_factory=dict)
    on_reconnect: Callable[[Reconnect], Any] | None = None

    def with_changes(
        self,
        timeout: float | EllipsisType | None,
        retries: int | None = None,
        headers: Mapping[str, str] | None = None,
        reconnect_secs: float | None = None,
        on_reconnect: Callable[[Reconnect], Any] | None = None,
    ) -> Options:
        return Options(
            timeout_secs=self.timeout_secs if isinstance(timeout, EllipsisType) else timeout,
            retries=self.retries if retries is None else retries,
            reconnect_secs=self.reconnect_secs if reconnect_secs is None else reconnect_secs,
            headers={**self.headers, **(headers or {})},
            on_reconnect=on_reconnect or self.on_reconnect,
        )

    def timeout(self, call: Call[object]) -> httpx2.Timeout:
        """The longer of the client's own limit and what the work itself was given."""
        secs = self.timeout_secs
        if secs is not None and call.wait_secs is not None:
            secs = max(secs, call.wait_secs + GRACE_SECS)
        return lazy.httpx2.Timeout(secs, connect=CONNECT_SECS if secs is None else min(CONNECT_SECS, secs))


def common_headers(token: str) -> dict[str, str]:
    headers = {"User-Agent": f"clawdforge-python/{__version__}", "Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return headers
