"""What an agent may ask of its client: files of the workspace, terminals, and permissions.

Whatever is asked goes through the session's permission mode: an agent that asks politely and one that
just reads, writes or runs something through us are held to the same rules.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from clawdforge.core.models.agents import Ask, Verdict
from clawdforge.drivers.acp.budget import AnswerBudget
from clawdforge.drivers.acp.call_names import MAX_TOOL_CHARS, name_call, shorten_name
from clawdforge.drivers.acp.files import WorkspaceFiles
from clawdforge.drivers.acp.grants import Grants, describe_variables
from clawdforge.drivers.acp.terminals import Terminals
from clawdforge.jsonrpc.rpc import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from clawdforge.wire.base import Json

PERMISSION_DENIED: Final = -32003
MAX_SHOWN_CHARS: Final = 4000
ALLOW: Final = "allow"
ALWAYS: Final = "always"
SCOPES: Final = {
    "read": "Always allow to read files of this session",
    "edit": "Always allow to write files of this session",
    "execute": "Always allow this very command",
}
"""What is allowed for good, in the words that whoever decides is shown, by kind of request."""

CAPABILITIES: Final[Json] = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}

Asker = Callable[[Ask], Awaitable[Verdict]]
Answering = Callable[[Json], Awaitable[Json]]


class ClientSide:
    """Answers the requests of one agent."""

    def __init__(self, files: WorkspaceFiles, terminals: Terminals, ask: Asker) -> None:
        self._files = files
        self._terminals = terminals
        self._ask = ask
        self._grants = Grants()
        self._budget = AnswerBudget()
        self._methods: dict[str, Answering] = {
            "session/request_permission": self._ask_permission,
            "fs/read_text_file": self._read_file,
            "fs/write_text_file": self._write_file,
            "terminal/create": self._create_terminal,
            "terminal/output": self._read_output,
            "terminal/wait_for_exit": terminals.wait_for_exit,
            "terminal/kill": terminals.kill,
            "terminal/release": terminals.release,
        }

    def end_turn(self) -> None:
        """What was decided in it holds no longer, but for what was allowed for good."""
        self._grants.clear()

    async def answer(self, method: str, params: Json) -> Json:
        """Answer a request of the agent; RpcError holds the refusal that it gets."""
        answering = self._methods.get(method)
        if answering is None:
            raise RpcError(METHOD_NOT_FOUND, f"this client has no method {method[:MAX_TOOL_CHARS]}")
        return await answering(params)

    async def _ask_permission(self, params: Json) -> Json:
        call = params.get("toolCall")
        call = call if isinstance(call, dict) else {}
        options = params.get("options")
        kind = call.get("kind")
        offered = tuple(o for o in options if isinstance(o, dict)) if isinstance(options, list) else ()
        chosen = self._grants.find(call, offered)
        if chosen is None:
            verdict = await self._ask(
                Ask(
                    tool=name_call(call),
                    kind=kind if isinstance(kind, str) else None,
                    options=offered,
                    request=params,
                )
            )
            chosen = verdict.option_id
            if chosen is None:
                return {"outcome": {"outcome": "cancelled"}}
            self._grants.note(call, offered, chosen)
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async def _read_file(self, params: Json) -> Json:
        path = _read_text(params, "path")
        line, limit = _read_number(params, "line"), _read_number(params, "limit")
        await self._check_path(path, write=False)
        await self._need_permission("fs/read_text_file", "read", f"Read {path}", {"path": path})
        async with self._budget.work():
            size = await asyncio.to_thread(self._files.measure, path)
        await self._budget.take(size)
        async with self._budget.work():
            text = await asyncio.to_thread(self._files.read, path, line, limit, size)
        return {"content": text if text.is_long else str(text)}

    async def _write_file(self, params: Json) -> Json:
        path, content = _read_text(params, "path"), _read_text(params, "content")
        await self._check_path(path, write=True)
        shown = {"path": path, "content": content[:MAX_SHOWN_CHARS], "length": len(content)}
        await self._need_permission("fs/write_text_file", "edit", f"Write {path}", shown)
        async with self._budget.work():
            await asyncio.to_thread(self._files.write, path, content)
        return {}

    async def _create_terminal(self, params: Json) -> Json:
        async with self._budget.work():
            order = await asyncio.to_thread(self._terminals.check_order, params)
        shown = {"command": order.shown[:MAX_SHOWN_CHARS], "cwd": str(order.cwd)}
        usual = order.cwd == self._terminals.cwd
        variables = describe_variables(params.get("env"))
        if not (usual and not variables and self._grants.take(params)):
            place = "" if usual else f" in {order.cwd}"
            title = f"Run {order.shown}{place}{f' with {variables}' if variables else ''}"
            shown |= {"env": variables[:MAX_SHOWN_CHARS]} if variables else {}
            await self._need_permission(shorten_name(title), "execute", title, shown)
        return await self._terminals.create(order)

    async def _read_output(self, params: Json) -> Json:
        await self._budget.take(self._terminals.output_size(params))
        return await self._terminals.output(params)

    async def _check_path(self, path: str, *, write: bool) -> None:
        """In a thread: what is looked at for a path may lie on a slow disk, and there may be many links."""
        async with self._budget.work():
            await asyncio.to_thread(self._files.check, path, write=write)

    async def _need_permission(self, tool: str, kind: str, title: str, shown: Json) -> None:
        """Ask for permission in the same shape as an agent does, so that whoever decides sees only one."""
        call = {"toolCallId": tool, "title": title[:MAX_TOOL_CHARS], "kind": kind, "rawInput": shown}
        options: tuple[Json, ...] = (
            {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
            {"optionId": ALWAYS, "name": SCOPES[kind], "kind": "allow_always"},
            {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
        )
        request = {"toolCall": call, "options": list(options)}
        verdict = await self._ask(Ask(tool=tool, kind=kind, options=options, request=request))
        if verdict.option_id not in (ALLOW, ALWAYS):
            raise RpcError(PERMISSION_DENIED, f"{title[:MAX_TOOL_CHARS]}: not permitted in this session")


def _read_text(params: Json, name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{name} must be a string")
    return value


def _read_number(params: Json, name: str) -> int | None:
    value: Any = params.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RpcError(INVALID_PARAMS, f"{name} must be a whole number")
    return value
