"""One server and the way to it: its address, the token, the options, the connections."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Self

from clawdforge.client import _calls as calls
from clawdforge.client._local import find_server, is_left_to_us
from clawdforge.client._options import DEFAULT_TIMEOUT_SECS, Options
from clawdforge.client._sync.admin import Admin
from clawdforge.client._sync.catalog import Catalog
from clawdforge.client._sync.raw import Raw
from clawdforge.client._sync.schedules import Schedules
from clawdforge.client._sync.transport import Pool, Transport
from clawdforge.client._sync.webhooks import Webhooks
from clawdforge.client._waits import FINDS_AT_ONCE

if TYPE_CHECKING:
    import httpx2

    from clawdforge.client._reconnects import OnReconnect
    from clawdforge.client.models import SessionState


class Connection(Catalog, Schedules, Webhooks):
    """What a client and its sessions stand on: `Forge` without the making of sessions."""

    def __init__(
        self,
        base_url: str | None = None,
        token: str | None = None,
        default_timeout_secs: float | None = DEFAULT_TIMEOUT_SECS,
        *,
        retries: int = 2,
        reconnect_secs: float = 60.0,
        headers: Mapping[str, str] | None = None,
        http_client: httpx2.Client | None = None,
        start: bool = True,
        timeout: float | EllipsisType | None = ...,
        max_retries: int | None = None,
        on_reconnect: OnReconnect | None = None,
    ) -> None:
        find = partial(find_server, base_url, token, os.environ, start=start)
        is_ours = start and is_left_to_us(base_url, token, os.environ)
        options = Options(default_timeout_secs, retries, reconnect_secs, dict(headers or {}), on_reconnect)
        options = options.with_changes(timeout, max_retries)
        self._owns_client = http_client is None
        transport = Transport(options, Pool(http_client), find if is_ours else None)
        if FINDS_AT_ONCE or not is_ours:  # a start takes a second, which a loop has for others
            transport.use(*find())
        self._use(transport)

    def _use(self, transport: Transport) -> None:
        self.transport = transport
        self.admin = Admin(transport)
        self.raw = Raw(transport)

    @property
    def base_url(self) -> str:
        """Where the server is. Empty as long as one of ours was neither entered nor called."""
        return self.transport.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.base_url!r})"

    def __enter__(self) -> Self:
        self.transport.find_server()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A copy made by `with_options`, or a client of yours, is left alone."""
        if self._owns_client:
            self.transport.close()

    def with_options(
        self,
        *,
        timeout: float | EllipsisType | None = ...,
        retries: int | None = None,
        headers: Mapping[str, str] | None = None,
        reconnect_secs: float | None = None,
        max_retries: int | None = None,
        on_reconnect: OnReconnect | None = None,
    ) -> Self:
        """A copy with other options, over the same connections. `max_retries` is `retries`."""
        copy = object.__new__(type(self))
        copy._owns_client = False
        retries = retries if max_retries is None else max_retries
        options = self.transport.options.with_changes(timeout, retries, headers, reconnect_secs, on_reconnect)
        copy._use(self.transport.with_changes(options))
        return copy

    def get_session(self, session_id: str) -> SessionState:
        """A session's row and state."""
        return self.transport.call(calls.GET_SESSION(session_id))
