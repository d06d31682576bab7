"""The methods of the protocol, each answered by calls to the server. Nothing is kept here that counts."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from clawdforge import __version__
from clawdforge.client import AsyncForge
from clawdforge.client import _calls as calls
from clawdforge.client.errors import ForgeError
from clawdforge.client.models import SessionState
from clawdforge.faces.acp import settings
from clawdforge.faces.acp.editor import Editor
from clawdforge.faces.acp.failures import NOT_FOUND, to_rpc
from clawdforge.faces.acp.live import LiveSession
from clawdforge.faces.acp.mcp import describe_missing, read_servers
from clawdforge.faces.acp.prompts import read_prompt
from clawdforge.faces.acp.replay import look, replay
from clawdforge.faces.link import Link
from clawdforge.faces.pace import Alone
from clawdforge.jsonrpc.pace import Pace
from clawdforge.jsonrpc.rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Connection,
    Pipe,
    RpcError,
)
from clawdforge.wire.base import Json, to_iso_seconds
from clawdforge.wire.local import project_key

PROTOCOL_VERSION: Final = 1
LISTED: Final = 50
MAX_READ: Final = 64
"""How many sessions an editor is shown at once; the one that was used least lately waits with its cursor."""

CAPABILITIES: Final[Json] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}},
}

Defaults = Callable[[str], dict[str, Any]]
"""What a new session in a folder is made with; raises ForgeError."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How sessions of an editor are made: `own_folders` if the server is to make a folder for each."""

    defaults: Defaults = lambda _folder: {}
    own_folders: bool = False


class AcpFace:
    """One editor, from its first message until it is gone. Whatever runs then goes on in the server."""

    def __init__(self, pipe: Pipe, link: Link, manner: Manner, pace: Pace | None = None) -> None:
        self._link = link
        self._manner = manner
        self.is_ready = False
        self._live: OrderedDict[str, LiveSession] = OrderedDict()
        self._methods: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "session/new": self._new,
            "session/list": self._list,
            "session/load": partial(self._open, replays=True),
            "session/resume": partial(self._open, replays=False),
            "session/fork": self._fork,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "session/set_model": self._set_model,
        }
        self._connection = Connection(pipe, self, pace or Alone(), answers_garbage=True)
        self._editor = Editor(self._connection)

    async def run(self) -> None:
        """Until the editor is gone."""
        try:
            await self._connection.wait_closed()
        finally:
            await self._connection.close()
            for live in self._live.values():
                await live.pause()

    async def take_message(self, message: Json, size: int) -> None:  # noqa: ARG002 - part of the port
        params = message.get("params")
        if message.get("method") == "session/cancel" and message.get("id") is None:
            live = self._live.get(str(params.get("sessionId"))) if isinstance(params, dict) else None
            if live is not None:
                live.cancel()

    async def report_lost_line(self, size: int) -> None:
        """The connection answers for it."""

    async def answer_request(self, method: str, params: Json) -> Json:
        if method == "initialize":
            self.is_ready = True
            return _introduce()
        if not self.is_ready:
            raise RpcError(INVALID_REQUEST, "the first request must be initialize")
        answering = self._methods.get(method)
        if answering is None:
            raise RpcError(METHOD_NOT_FOUND, f"there is no method {method[:200]}")
        try:
            return await answering(params)
        except ForgeError as error:
            raise to_rpc(error) from error

    async def _new(self, params: Json) -> Json:
        folder = _read_folder(params)
        _refuse_extras(params)
        servers = read_servers(params)
        made = await asyncio.to_thread(self._manner.defaults, folder)
        made |= {"mcp_servers": servers} if servers else {}
        cwd = None if self._manner.own_folders else folder
        session = await self._link.repeat(
            lambda forge: forge.create_session(cwd=cwd, retention="keep", **made), once=True
        )
        return await self._start(session.session_id)

    async def _list(self, params: Json) -> Json:
        folder, cursor = params.get("cwd"), params.get("cursor")
        wanted: Json = {"limit": LISTED, "cursor": cursor if isinstance(cursor, str) else None}
        if isinstance(folder, str) and not self._manner.own_folders:
            wanted["project"] = project_key(await asyncio.to_thread(os.path.realpath, folder))
        page = await self._link.repeat(lambda forge: forge.transport.call(calls.LIST_SESSIONS(params=wanted)))
        found: Json = {"sessions": [_describe_row(row) for row in page.items]}
        if page.next is not None:
            found["nextCursor"] = page.next
        return found

    async def _open(self, params: Json, *, replays: bool) -> Json:
        session_id = _read_id(params)
        _refuse_extras(params)
        forge, state = await self._look_up(session_id)
        await self._check_folder(params, state)
        missing = describe_missing(params, state.mcp_servers)
        if state.state == "ended":
            await forge.attach(session_id).reopen()
        live = self._live.get(session_id)
        if live is not None:
            if live.is_busy:
                raise RpcError(INVALID_REQUEST, "a prompt of yours is running in this session")
            await live.pause()
        stand = await self._link.repeat(partial(look, session_id=session_id))
        if replays:
            async for updates in replay(await self._link.open(), stand):
                await self._editor.show_all(session_id, updates)
        return await self._start(session_id, stand.state, remark=missing)

    async def _fork(self, params: Json) -> Json:
        session_id = _read_id(params)
        _refuse_extras(params)
        _, state = await self._look_up(session_id)
        await self._check_folder(params, state)
        missing = describe_missing(params, state.mcp_servers)
        made = await self._link.repeat(lambda forge: forge.attach(session_id).fork(), once=True)
        return await self._start(made.session_id, remark=missing)

    async def _close(self, params: Json) -> Json:
        """The editor has done with it: its turn is stopped and the agent ends. The session stays."""
        session_id = _read_id(params)
        await self._look_up(session_id)
        live = self._live.pop(session_id, None)
        if live is not None:
            await live.end()
        await self._link.repeat(lambda forge: forge.attach(session_id).let_agent_go())
        return {}

    async def _delete(self, params: Json) -> Json:
        session_id = _read_id(params)
        await self._link.repeat(lambda forge: forge.attach(session_id).purge())
        live = self._live.pop(session_id, None)
        if live is not None:
            await live.pause()
        return {}

    async def _prompt(self, params: Json) -> Json:
        session_id = _read_id(params)
        known = session_id in self._live
        live = await self._use(session_id)
        try:  # what was read is not kept for as long as the turn takes: it may be large
            return await live.prompt(lambda: read_prompt(params.pop("prompt", None)))
        finally:
            if not known and live.cursor is None:  # there is no such session
                self._live.pop(session_id, None)

    async def _set_mode(self, params: Json) -> Json:
        await self._change(_read_id(params), settings.read_mode(params))
        return {}

    async def _set_option(self, params: Json) -> Json:
        session_id = _read_id(params)
        forge, state = await self._look_up(session_id)
        changes = settings.read_option(params, state)
        if changes:
            state = await self._change(session_id, changes)
        return {"configOptions": settings.options_of(state, await forge.agents())}

    async def _set_model(self, params: Json) -> Json:
        await self._set_option({**params, "configId": settings.MODEL, "value": params.get("modelId")})
        return {}

    async def _change(self, session_id: str, changes: dict[str, Any]) -> SessionState:
        return await self._link.repeat(lambda forge: forge.attach(session_id).patch(**changes))

    async def _look_up(self, session_id: str) -> tuple[AsyncForge, SessionState]:
        state = await self._link.repeat(lambda forge: forge.get_session(session_id))
        return await self._link.open(), state

    async def _start(self, session_id: str, state: SessionState | None = None, remark: str = "") -> Json:
        """Read on from here, and say what can be chosen."""
        forge = await self._link.open()
        state = state or await forge.get_session(session_id)
        live = await self._use(session_id)
        live.cursor, live.remark = state.head, remark
        agents = await forge.agents()
        if state.pending_permissions:
            live.ask_again(await forge.attach(session_id).permissions())
        live.follow()
        return {"sessionId": session_id, **settings.describe(state, agents)}

    async def _use(self, session_id: str) -> LiveSession:
        live = self._live.setdefault(session_id, LiveSession(self._link, self._editor, session_id))
        self._live.move_to_end(session_id)
        resting = [one for one in self._live.values() if not one.is_busy and one.is_read and one is not live]
        if len(resting) >= MAX_READ:
            await resting[0].pause()
        return live

    async def _check_folder(self, params: Json, state: SessionState) -> None:
        folder = params.get("cwd")
        if self._manner.own_folders or not isinstance(folder, str):
            return
        if state.cwd not in (folder, await asyncio.to_thread(os.path.realpath, folder)):
            raise RpcError(
                INVALID_PARAMS, f"this session works in {state.cwd}, not in {folder[:1000]}; open it there"
            )


def _introduce() -> Json:
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": CAPABILITIES,
        "agentInfo": {"name": "clawdforge", "title": "clawdforge", "version": __version__},
        "authMethods": [],
    }


def _read_id(params: Json) -> str:
    session_id = params.get("sessionId")
    if not isinstance(session_id, str) or not session_id:
        raise RpcError(INVALID_PARAMS, "sessionId must be a string")
    if not all(letter.isalnum() or letter == "-" for letter in session_id[:200]) or len(session_id) > 200:
        raise RpcError(NOT_FOUND, "there is no such session")
    return session_id


def _read_folder(params: Json) -> str:
    folder = params.get("cwd")
    if not isinstance(folder, str) or not folder.startswith("/"):
        raise RpcError(INVALID_PARAMS, "cwd must be an absolute path")
    return folder


def _refuse_extras(params: Json) -> None:
    if params.get("additionalDirectories"):
        raise RpcError(INVALID_PARAMS, "a session works in one folder; give no additional directories")


def _describe_row(row: SessionState) -> Json:
    found = {"sessionId": row.session_id, "cwd": row.cwd, "updatedAt": to_iso_seconds(row.updated_at * 10**6)}
    return {**found, "title": row.title} if row.title else found
