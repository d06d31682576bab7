"""The tools of the MCP server: what each needs, and the service that does it.

The agent of a session, which comes with a token of its own, may do here what it may do elsewhere: read its
session, and lead sub-sessions, which are only so deep and so many.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from clawdforge.core.models.principal import Principal
from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.rules.paging import Place
from clawdforge.core.rules.sessions import SessionState
from clawdforge.core.services.all import Services
from clawdforge.http.dialects.mcp.waiting import wait
from clawdforge.wire.base import Json, to_iso, to_iso_seconds
from clawdforge.wire.errors import Forbidden, ForgeAPIError, InvalidRequest
from clawdforge.wire.mcp_server import (
    CancelTool,
    DecideTool,
    ListTool,
    ReadTool,
    SearchTool,
    SendTool,
    StartTool,
    WaitTool,
)
from clawdforge.wire.scopes import Scope
from clawdforge.wire.session import CreateSession, PermissionMode, Retention
from clawdforge.wire.turn import DecideRequest, TurnRequest

LABEL: Final = "mcp"
MAX_CHARS: Final = 16 * 1024
"""So much of one message is shown by `read`."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Who calls. `is_agent` tells whether it is an agent of this server, whatever token it has.

    It looks through processes, so it is asked only by tools whose answer depends on it.
    """

    core: Services
    caller: Principal
    is_agent: Callable[[], Awaitable[bool]]

    @property
    def app(self) -> str:
        return self.caller.app

    @property
    def is_bound(self) -> bool:
        return self.caller.session_id is not None

    async def check(self, session_id: str, *, reads: bool) -> None:
        if self.is_bound:
            await self.core.sub_sessions.check(self.caller, session_id, reads=reads)

    async def refuse_agents(self) -> None:
        """An agent with an app's token could begin sessions that begin sessions, without an end."""
        if not self.is_bound and await self.is_agent():
            raise Forbidden(
                "an agent begins sessions and sends to them with a token of its own only, which keeps them"
                " from going ever deeper; let the operator set callback = true for this agent"
            )


async def start(desk: Desk, asked: StartTool) -> Json:
    await desk.refuse_agents()
    fields = asked.model_dump(exclude={"prompt"}, exclude_none=True)
    if desk.is_bound:
        made = await desk.core.sub_sessions.create(desk.caller, CreateSession(**fields))
    else:
        mode = None
        if asked.persona is not None:
            mode = (await desk.core.personas.get(desk.app, asked.persona)).permission_mode
        create = CreateSession(
            **fields, permission_mode=mode or PermissionMode.ASK, retention=Retention.KEEP, labels=[LABEL]
        )
        made = await desk.core.sessions.create(desk.app, create, may_decide=desk.caller.may_decide)
    session_id = made.row.session_id
    try:
        return await _submit(desk, session_id, asked.prompt)
    except ForgeAPIError:  # a session without its prompt is of no use to anybody
        await desk.core.sessions.delete(desk.app, session_id)
        raise


async def send(desk: Desk, asked: SendTool) -> Json:
    await desk.refuse_agents()
    await desk.check(asked.session_id, reads=False)
    return await _submit(desk, asked.session_id, asked.prompt)


async def wait_for(desk: Desk, asked: WaitTool) -> Json:
    await desk.check(asked.session_id, reads=True)
    return await wait(desk.core, desk.app, asked)


async def read(desk: Desk, asked: ReadTool) -> Json:
    await desk.check(asked.session_id, reads=True)
    span = await desk.core.messages.page(desk.app, asked.session_id, Place("after", asked.after), asked.limit)
    found = [
        {
            "seq": row.seq,
            "role": row.role,
            "turn": row.turn,
            "content": row.content[:MAX_CHARS],
            "is_cut": len(row.content) > MAX_CHARS,
        }
        for row in span.rows
    ]
    return {"session_id": asked.session_id, "messages": found, "next": span.next}


async def list_sessions(desk: Desk, asked: ListTool) -> Json:
    query = SessionQuery(
        limit=asked.limit, cursor=asked.cursor, activity=asked.activity, parent=desk.caller.session_id
    )
    states, following = await desk.core.sessions.list(desk.app, query)
    seen = [state for state in states if desk.core.sub_sessions.may_see(desk.caller, state.row)]
    return {"sessions": [_describe(state) for state in seen], "next": following}


async def search(desk: Desk, asked: SearchTool) -> Json:
    if desk.is_bound:
        raise Forbidden("an agent's own token reads its session and those that it made; it searches nothing")
    hits, following = await desk.core.history.search(desk.app, asked.q, asked.limit, asked.cursor, None)
    found = [
        {
            "session_id": hit.session_id,
            "title": hit.title,
            "seq": hit.seq,
            "role": hit.role,
            "ts": to_iso(hit.ts),
            "snippet": hit.snippet,
        }
        for hit in hits
    ]
    return {"hits": found, "next": following}


async def cancel(desk: Desk, asked: CancelTool) -> Json:
    await desk.check(asked.session_id, reads=False)
    turns = desk.core.turns
    if asked.turn is not None:
        count = int(await turns.stop(desk.app, asked.session_id, asked.turn))
    else:
        count = await turns.cancel(desk.app, asked.session_id)
    return {"session_id": asked.session_id, "cancelled": count}


async def decide(desk: Desk, asked: DecideTool) -> Json:
    if desk.is_bound or await desk.is_agent():
        raise Forbidden("an agent cannot decide what agents may do")
    request = DecideRequest(decision=asked.decision)
    row = await desk.core.permissions.decide(desk.app, asked.session_id, asked.permission_id, request)
    return {"permission_id": row.permission_id, "decision": row.decision}


async def _submit(desk: Desk, session_id: str, prompt: str) -> Json:
    request = TurnRequest(prompt=prompt)
    made = await desk.core.turns.submit(desk.app, session_id, request, None, desk.caller)
    return {"session_id": session_id, "turn": made.turn.turn_index, "cursor": made.head}


def _describe(state: SessionState) -> Json:
    row = state.row
    return {
        "session_id": row.session_id,
        "title": row.title,
        "agent": row.agent,
        "activity": row.activity.value,
        "state": "active" if row.closed_at is None else "ended",
        "updated_at": to_iso_seconds(row.updated_at),
    }


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: the shape of what it is given, the scope that it needs, and what it does.

    `waits` if it goes on while its caller wants it to, and is there; `is_whole` if it is not ended halfway:
    a session without its prompt is of no use to anybody.
    """

    name: str
    shape: type[BaseModel]
    scope: Scope
    run: Callable[[Desk, Any], Awaitable[Json]]
    waits: bool = False
    is_whole: bool = False

    def describe(self) -> Json:
        words = " ".join((self.shape.__doc__ or "").split())
        schema = self.shape.model_json_schema()
        schema.pop("description", None)
        only_reads = self.scope is Scope.READ
        return {
            "name": self.name,
            "description": words,
            "inputSchema": schema,
            "annotations": {"readOnlyHint": only_reads, "openWorldHint": not only_reads},
        }

    async def call(self, desk: Desk, arguments: Json) -> Json:
        if self.scope not in desk.caller.scopes:
            raise Forbidden(f"this needs a token with the scope {self.scope}")
        try:
            asked = self.shape.model_validate(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise InvalidRequest(f"{where}: {first['msg']}" if where else first["msg"]) from None
        return await self.run(desk, asked)


DECIDE: Final = "decide"
TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool("start", StartTool, Scope.PROMPT, start, is_whole=True),
        Tool("send", SendTool, Scope.PROMPT, send),
        Tool("wait", WaitTool, Scope.READ, wait_for, waits=True),
        Tool("read", ReadTool, Scope.READ, read),
        Tool("list", ListTool, Scope.READ, list_sessions),
        Tool("search", SearchTool, Scope.READ, search),
        Tool("cancel", CancelTool, Scope.PROMPT, cancel),
        Tool(DECIDE, DecideTool, Scope.DECIDE, decide),
    )
}
