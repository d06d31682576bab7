"""The client: the sessions on one server, made, found and listed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clawdforge.client import _calls as calls
from clawdforge.client._sync.connection import Connection
from clawdforge.client._sync.session import Session
from clawdforge.client._sync.stream import follow_changes

if TYPE_CHECKING:
    from clawdforge.client.models import (
        ActivityWord,
        Change,
        ChangePage,
        Export,
        ImportFormat,
        OnInterruptWord,
        PermissionModeWord,
        RetentionWord,
        SessionState,
        SessionStateWord,
    )


class Forge(Connection):
    """A client of one server. One is enough for a whole program: it may be shared by all its threads.

    Without arguments it looks at `CLAWDFORGE_URL` and `CLAWDFORGE_TOKEN`, then for a server on this machine,
    and starts one in the background if none runs, as the command line does; not with `start=False`.
    `timeout` (or `default_timeout_secs`) is how many seconds an answer may take, None for ever; `max_retries`
    (or `retries`) how often a call that is safe to repeat is sent again.
    """

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
        permission_mode: PermissionModeWord | None = None,
        on_interrupt: OnInterruptWord | None = None,
        retention: RetentionWord | None = None,
        labels: Sequence[str] | None = None,
        parent_session_id: str | None = None,
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Iterator[Session]:
        """A new session for the length of a block; it is always closed at the end."""
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
            mcp_servers=mcp_servers,
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
        permission_mode: PermissionModeWord | None = None,
        on_interrupt: OnInterruptWord | None = None,
        retention: RetentionWord | None = None,
        labels: Sequence[str] | None = None,
        parent_session_id: str | None = None,
        mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Session:
        """A new session that you close yourself. Without `agent`, the server's default agent answers."""
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
            "mcp_servers": mcp_servers,
        }
        return self.handle(self.transport.call(calls.CREATE_SESSION(body=body)))

    def attach(self, session_id: str) -> Session:
        """A handle on an existing session; sends no request. Without `with`, the session stays open."""
        if not session_id:
            raise ValueError("session_id is empty")
        return self.handle({"session_id": session_id})

    def handle(self, info: Mapping[str, Any]) -> Session:
        """A handle on the session that a reply of the server describes."""
        return Session(self, info)

    def list_sessions(
        self,
        *,
        include_closed: bool | None = None,
        agent: str | None = None,
        state: SessionStateWord | None = None,
        activity: ActivityWord | None = None,
        label: str | None = None,
        project: str | None = None,
        prefix: str | None = None,
        q: str | None = None,
    ) -> list[SessionState]:
        """All sessions that fit, including closed ones unless you exclude them."""
        rows = self.sessions(
            include_closed=include_closed,
            agent=agent,
            state=state,
            activity=activity,
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
        state: SessionStateWord | None = None,
        activity: ActivityWord | None = None,
        label: str | None = None,
        project: str | None = None,
        prefix: str | None = None,
        q: str | None = None,
        page_size: int | None = None,
    ) -> Iterator[SessionState]:
        """The same sessions as `list_sessions`, page by page, as far as you read."""
        params = {
            "include_closed": include_closed,
            "agent": agent,
            "state": state,
            "activity": activity,
            "label": label,
            "project": project,
            "prefix": prefix,
            "q": q,
            "limit": page_size,
        }
        return self.transport.pages(lambda at: calls.LIST_SESSIONS(params={**params, "cursor": at}))

    def changes(self, after: int | None = None, *, limit: int | None = None) -> ChangePage:
        """What changed in the list of sessions after a cursor: each session and permission once, as it is.

        Without a cursor it returns the present one. After a `reset`, read the list again.
        """
        return self.transport.call(calls.CHANGES(params={"after": after, "limit": limit}))

    def follow_changes(self, after: int | None = None) -> Iterator[Change]:
        """What changes, as it happens, for ever, through lost connections and restarts."""
        return follow_changes(self.transport, after)

    def import_session(
        self,
        *,
        export: Export | Mapping[str, Any] | None = None,
        messages: Sequence[Mapping[str, Any]] | None = None,
        text: str | None = None,
        format: ImportFormat | None = None,  # noqa: A002 - the name on the wire
        title: str | None = None,
        agent: str | None = None,
        model: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        retention: RetentionWord | None = None,
    ) -> Session:
        """A session from a transcript: an `export` of ours, a list of messages, or another tool's text."""
        exported = export if export is None or isinstance(export, Mapping) else export.model_dump(mode="json")
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
