"""Rows to test with: plain ones, of which each test changes what it is about."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from clawdforge.core.ids import new_id
from clawdforge.core.models.events import Draft, draft_of
from clawdforge.core.models.rows import FileRow, MessageRow, PermissionRow, SessionRow, TurnRow
from clawdforge.core.ports import Store
from clawdforge.drivers.acp.updates import read_message
from clawdforge.wire.turn import TurnState

Reopen = Callable[[], Awaitable[Store]]
APP, OTHER = "alpha", "beta"
NO_LIMIT = 1 << 40


def a_session(**fields: Any) -> SessionRow:
    given: dict[str, Any] = {"app_name": APP, "session_id": new_id(), "agent": "demo", "cwd": "/w"}
    return SessionRow(**{**given, "created_at": 1_000, "updated_at": 1_000, **fields})


def a_turn(session_id: str, index: int = 1, **fields: Any) -> TurnRow:
    given = {"state": TurnState.QUEUED, "prompt": f"prompt {index}", "queued_at": 1_000 + index}
    return TurnRow(**{**given, "session_id": session_id, "turn_index": index, **fields})


def a_message(session_id: str, content: str = "hello", **fields: Any) -> MessageRow:
    return MessageRow(**{"session_id": session_id, "role": "user", "content": content, "ts": 1_000, **fields})


def a_permission(session_id: str, permission_id: str, **fields: Any) -> PermissionRow:
    given: dict[str, Any] = {"turn_index": 1, "tool": "bash", "kind": "execute", "request": {"a": [1]}}
    given |= {"permission_id": permission_id, "session_id": session_id, "requested_at": 1_000}
    return PermissionRow(**{**given, **fields})


def a_file(file_token: str, **fields: Any) -> FileRow:
    given: dict[str, Any] = {"file_token": file_token, "app_name": APP, "name": "a.txt", "size": 10}
    return FileRow(**{**given, "path": "/f", "created_at": 1_000, **fields})


def said(text: str, turn: int | None = None) -> Draft:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}
    return draft_of(read_message(message), turn, 1_000)


async def make(store: Store, row: SessionRow | None = None) -> str:
    row = row or a_session()
    await store.write(row.app_name, lambda tx: tx.add_session(row))
    return row.session_id


async def log_of(store: Store, session_id: str, app: str = APP) -> list[int]:
    events = await store.read(app, lambda v: v.events(session_id, after=0, limit=10**6, max_bytes=NO_LIMIT))
    assert [orjson.loads(event.data)["seq"] for event in events] == [event.seq for event in events]
    return [event.seq for event in events]
