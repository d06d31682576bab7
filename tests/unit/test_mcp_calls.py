"""How long a call of an MCP tool may take, and what becomes of it when its caller hangs up."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.requests import Request

from clawdforge.core.models.principal import Principal
from clawdforge.core.services.all import Services
from clawdforge.http.dialects.mcp.routers import answer
from clawdforge.wire.mcp_server import RpcMessage
from clawdforge.wire.scopes import Scope


class Slow:
    """Stands for the services: a session is made after a while, and whatever is read never comes."""

    def __init__(self) -> None:
        self.submitted: list[str] = []
        self.ended = 0

    async def create(self, *_: Any, **__: Any) -> Any:
        await asyncio.sleep(0.05)
        return SimpleNamespace(row=SimpleNamespace(session_id="s"))

    async def submit(self, _app: str, session_id: str, *_: Any) -> Any:
        self.submitted.append(session_id)
        return SimpleNamespace(turn=SimpleNamespace(turn_index=1), head=1)

    async def hang(self, *_: Any, **__: Any) -> Any:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.ended += 1

    list = search = page = get = hang


async def call(slow: Slow, request_secs: float, tool: str, **arguments: Any) -> Any:
    """By a caller that has hung up as soon as it has asked."""

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    settings = SimpleNamespace(request_secs=request_secs, mcp_decide=False, version="1")
    state = SimpleNamespace(settings=settings)
    scope: Any = {"type": "http", "app": SimpleNamespace(state=state), "headers": [], "client": None}
    core = SimpleNamespace(sessions=slow, turns=slow, history=slow, messages=slow)
    caller = Principal(app="a", scopes=frozenset(Scope))
    params = {"name": tool, "arguments": arguments}
    body = RpcMessage(jsonrpc="2.0", id=1, method="tools/call", params=params)
    return await answer(Request(scope, receive), cast(Services, core), caller, body)


@pytest.fixture(autouse=True)
def from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_from_agent(_: Request) -> bool:
        return False

    monkeypatch.setattr("clawdforge.http.dialects.mcp.routers.is_from_agent", is_from_agent)


async def test_a_caller_that_hangs_up_leaves_no_session_without_its_prompt() -> None:
    """Nor does one that is made for longer than a request may take."""
    slow = Slow()
    reply = await call(slow, 0.001, "start", prompt="hi")
    assert slow.submitted == ["s"], reply.body


async def test_a_wait_ends_when_its_caller_hangs_up() -> None:
    slow = Slow()
    async with asyncio.timeout(30):
        reply = await call(slow, 0.001, "wait", session_id="s", turn=1)
    assert (reply.body, slow.ended) == (b"", 1)


@pytest.mark.parametrize(
    ("tool", "arguments"), [("search", {"q": "x"}), ("list", {}), ("read", {"session_id": "s"})]
)
async def test_what_is_read_has_the_deadline_of_a_request(tool: str, arguments: dict[str, Any]) -> None:
    slow = Slow()
    async with asyncio.timeout(30):
        reply = await call(slow, 0.01, tool, **arguments)
    assert b'"isError":true' in reply.body
    assert b"request_timed_out" in reply.body
    assert slow.ended == 1
