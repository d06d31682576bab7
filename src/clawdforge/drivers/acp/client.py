"""What an agent may ask of its client: files of the workspace, terminals, and leave to do something.

Whatever is asked goes through the session's permission mode: an agent that asks politely and one that
just reads, writes or runs something through us are held to the same rules.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from clawdforge.core.model import Ask, Verdict
from clawdforge.drivers.acp.files import WorkspaceFiles
from clawdforge.drivers.acp.rpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from clawdforge.drivers.acp.terminals import Terminals
from clawdforge.wire.base import Json

PERMISSION_DENIED: Final = -32003
MAX_TOOL_CHARS: Final = 200
MAX_SHOWN_CHARS: Final = 4000
ALLOW: Final = "allow"
OPTIONS: Final[tuple[Json, ...]] = (
    {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
)

CAPABILITIES: Final[Json] = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}

Asker = Callable[[Ask], Awaitable[Verdict]]
Answering = Callable[[Json], Awaitable[Json]]


class ClientSide:
    """Answers the requests of one agent."""

    def __init__(self, files: WorkspaceFiles, terminals: Terminals, ask: Asker) -> None:
        self._files = files
        self._terminals = terminals
        self._ask = ask
        self._methods: dict[str, Answering] = {
            "session/request_permission": self._permission,
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": self._create_terminal,
            "terminal/output": terminals.output,
            "terminal/wait_for_exit": terminals.wait_for_exit,
            "terminal/kill": terminals.kill,
            "terminal/release": terminals.release,
        }

    async def answer(self, method: str, params: Json) -> Json:
        """The result; RpcError with what the agent is to be told."""
        answering = self._methods.get(method)
        if answering is None:
            raise RpcError(METHOD_NOT_FOUND, f"this client has no method {method}")
        return await answering(params)

    async def _permission(self, params: Json) -> Json:
        call = params.get("toolCall")
        call = call if isinstance(call, dict) else {}
        options = params.get("options")
        kind = call.get("kind")
        tool = str(call.get("title") or kind or call.get("toolCallId") or "tool")
        verdict = await self._ask(
            Ask(
                tool=tool[:MAX_TOOL_CHARS],
                kind=kind if isinstance(kind, str) else None,
                options=tuple(o for o in options if isinstance(o, dict)) if isinstance(options, list) else (),
                request=params,
            )
        )
        if verdict.option_id is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": verdict.option_id}}

    async def _read(self, params: Json) -> Json:
        path = _text(params, "path")
        line, limit = _whole(params, "line"), _whole(params, "limit")
        self._files.check(path, write=False)
        await self._leave("fs/read_text_file", "read", f"Read {path}", {"path": path})
        return {"content": await asyncio.to_thread(self._files.read, path, line, limit)}

    async def _write(self, params: Json) -> Json:
        path, content = _text(params, "path"), _text(params, "content")
        self._files.check(path, write=True)
        shown = {"path": path, "content": content[:MAX_SHOWN_CHARS], "length": len(content)}
        await self._leave("fs/write_text_file", "edit", f"Write {path}", shown)
        await asyncio.to_thread(self._files.write, path, content)
        return {}

    async def _create_terminal(self, params: Json) -> Json:
        order = self._terminals.order(params)
        shown = {"command": order.shown[:MAX_SHOWN_CHARS], "cwd": str(order.cwd)}
        await self._leave("terminal/create", "execute", f"Run {order.shown}", shown)
        return await self._terminals.create(order)

    async def _leave(self, tool: str, kind: str, title: str, shown: Json) -> None:
        """Ask as an agent would have asked, so that whoever decides sees one shape."""
        call = {"toolCallId": tool, "title": title[:MAX_TOOL_CHARS], "kind": kind, "rawInput": shown}
        request = {"toolCall": call, "options": list(OPTIONS)}
        verdict = await self._ask(Ask(tool=tool, kind=kind, options=OPTIONS, request=request))
        if verdict.option_id != ALLOW:
            raise RpcError(PERMISSION_DENIED, f"{title[:MAX_TOOL_CHARS]}: not permitted in this session")


def _text(params: Json, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{name} must be a text")
    return value


def _whole(params: Json, name: str) -> int | None:
    value: Any = params.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RpcError(INVALID_PARAMS, f"{name} must be a whole number")
    return value
