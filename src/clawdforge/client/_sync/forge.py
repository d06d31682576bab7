"""The client: where the server is, and the sessions on it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import EllipsisType, TracebackType
from typing import Any, Self

import httpx2

from clawdforge.client import _calls as calls
from clawdforge.client._local import find_server
from clawdforge.client._options import DEFAULT_TIMEOUT_SECS, Options
from clawdforge.client._sync.admin import Admin
from clawdforge.client._sync.catalog import Catalog
from clawdforge.client._sync.raw import Raw
from clawdforge.client._sync.session import Session
from clawdforge.client._sync.transport import Transport, make_client
from clawdforge.client.models import Export


class Forge(Catalog):
    """A client of one server. One is enough for a whole program: it may be shared by all its threads.

    Without arguments it looks at `CLAWDFORGE_URL` and `CLAWDFORGE_TOKEN`, then at what a server on this
    machine left in its data folder. `default_timeout_secs` is how long an answer may take, None for ever.
    """

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
    ) -> None:
        url, found = find_server(base_url, token, os.environ)
        options = Options(default_timeout_secs, retries, reconnect_secs, dict(headers or {}))
        self.base_url = url
        self._owns_client = http_client is None
        self._use(Transport(url, found, options, http_client or make_client(url)))

    def _use(self, transport: Transport) -> None:
        self.transport = transport
        self.admin = Admin(transport)
        self.raw = Raw(transport)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={self.base_url!r})"

    def __enter__(self) -> Self:
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
    ) -> Self:
        """A copy with other options, over the same connections."""
        copy = object.__new__(type(self))
        copy.base_url = self.base_url
        copy._owns_client = False
        options = self.transport.options.changed(timeout, retries, headers, reconnect_secs)
        copy._use(self.transport.changed(options))
        return copy

    @contextmanager
    def session(
        self,
        agent: str | None = None,
        meta: Mapping[str, Any] | None = None,
        *,
        persona: str | None = None,
        model: str | None = None,
        title: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        permission_mode: str | None = None,
        on_interrupt: str | None = None,
        retention: str | None = None,
        labels: Sequence[str] | None = None,
        parent_session_id: str | None = None,
    ) -> Iterator[Session]:
        """A new session for the length of a block; it is closed at the end, come what may."""
        made = self.create_session(
            agent,
            meta,
            persona=persona,
            model=model,
            title=title,
            cwd=cwd,
            permission_mode=permission_mode,
            on_interrupt=on_interrupt,
            retention=retention,
            labels=labels,
            parent_session_id=parent_session_id,
        )
        with made as session:
            yield session

    def create_session(
        self,
        agent: str | None = None,
        meta: Mapping[str, Any] | None = None,
        *,
        persona: str | None = None,
        model: str | None = None,
        title: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        permission_mode: str | None = None,
        on_interrupt: str | None = None,
        retention: str | None = None,
        labels: Sequence[str] | None = None,
        parent_session_id: str | None = None,
    ) -> Session:
        """A new session, yours to close. Without an agent the server's default one answers."""
        body = {
            "agent": agent,
            "meta": meta,
            "persona": persona,
            "model": model,
            "title": title,
            "cwd": None if cwd is None else os.fspath(cwd),
            "permission_mode": permission_mode,
            "on_interrupt": on_interrupt,
            "retention": retention,
            "labels": None if labels is None else list(labels),
            "parent_session_id": parent_session_id,
        }
        return self.handle(self.transport.call(calls.CREATE_SESSION(body=body)))

    def attach(self, session_id: str) -> Session:
        """A handle on a session that exists; sends nothing. Use it without `with` to leave it open."""
        if not session_id:
            raise ValueError("session_id is empty")
        return self.handle({"session_id": session_id})

    def handle(self, info: Mapping[str, Any]) -> Session:
        """The session that a reply of the server tells about."""
        return Session(self, info)

    def get_session(self, session_id: str) -> dict[str, Any]:
        """A session's row and state."""
        return self.transport.call(calls.GET_SESSION(session_id))

    def list_sessions(
        self,
        *,
        include_closed: bool | None = None,
        agent: str | None = None,
        state: str | None = None,
        label: str | None = None,
        project: str | None = None,
        prefix: str | None = None,
        q: str | None = None,
    ) -> list[dict[str, Any]]:
        """All rows that fit, closed ones too unless told otherwise."""
        rows = self.sessions(
            include_closed=include_closed,
            agent=agent,
            state=state,
            label=label,
            project=project,
            prefix=prefix,
            q=q,
        )
        return list(rows)

    def sessions(
        self,
        *,
        include_closed: bool | None = None,
        agent: str | None = None,
        state: str | None = None,
        label: str | None = None,
        project: str | None = None,
        prefix: str | None = None,
        q: str | None = None,
        page_size: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """The same rows page by page, as far as you read."""
        params = {
            "include_closed": include_closed,
            "agent": agent,
            "state": state,
            "label": label,
            "project": project,
            "prefix": prefix,
            "q": q,
            "limit": page_size,
        }
        return self.transport.pages(lambda at: calls.LIST_SESSIONS(params={**params, "cursor": at}))

    def import_session(
        self,
        *,
        export: Export | Mapping[str, Any] | None = None,
        messages: Sequence[Mapping[str, Any]] | None = None,
        text: str | None = None,
        format: str | None = None,  # noqa: A002 - the name on the wire
        title: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        retention: str | None = None,
    ) -> Session:
        """A session from a transcript: one of ours (`export`), a list of messages, or another tool's text."""
        exported = export.model_dump(mode="json") if isinstance(export, Export) else export
        body = {
            "format": format or ("clawdforge" if exported is not None else None),
            "title": title,
            "messages": None if messages is None else [dict(message) for message in messages],
            "export": exported,
            "text": text,
            "agent": agent,
            "model": model,
            "cwd": None if cwd is None else os.fspath(cwd),
            "meta": meta,
            "retention": retention,
        }
        return self.handle(self.transport.call(calls.IMPORT_SESSION(body=body)))
