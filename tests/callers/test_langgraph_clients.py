"""The clients of LangGraph and of deepagents on this server: they speak to another platform, and are told so.

Both packages are in the environment of developers; nothing is fetched.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from deepagents.middleware import async_subagents
from deepagents.middleware.async_subagents import AsyncSubAgent, AsyncSubAgentMiddleware
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError

from tests.api.harness import Server

THREAD = "6f6e1f0e-0000-4000-8000-000000000000"
NOTHING: dict[str, Any] = {"messages": []}
CALLS: dict[str, Callable[[LangGraphClient], Awaitable[Any]]] = {
    "POST /assistants/search": lambda client: client.assistants.search(),
    "POST /threads": lambda client: client.threads.create(),
    f"GET /threads/{THREAD}": lambda client: client.threads.get(THREAD),
    f"POST /threads/{THREAD}/runs": lambda client: client.runs.create(THREAD, "agent", input=NOTHING),
    "POST /runs": lambda client: client.runs.create(None, "agent", input=NOTHING),
    "PUT /store/items": lambda client: client.store.put_item(("a",), key="k", value={"v": 1}),
}
"""What `langgraph-sdk` asks for, and the call that does."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("graphs") / "data")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def headers(server: Server) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.app().token}"}


@pytest.mark.parametrize("asked", CALLS)
def test_the_platform_of_langgraph_is_not_served(server: Server, headers: dict[str, str], asked: str) -> None:
    async def ask() -> None:
        async with get_client(url=server.url, api_key=None, headers=headers) as client:
            await CALLS[asked](client)

    with pytest.raises(NotFoundError) as refusal:
        asyncio.run(ask())
    request = refusal.value.request
    assert f"{request.method} {request.url.path}" == asked
    assert refusal.value.response.json()["code"] == "route_not_found"


def test_a_subagent_of_deepagents_on_this_server_is_not_launched(
    server: Server, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model that wanted it is told why."""
    with get_sync_client(url=server.url, api_key=None, headers=headers) as client:
        # As it makes one itself, but closed in the end.
        monkeypatch.setattr(async_subagents, "get_sync_client", lambda **_: client)
        named = AsyncSubAgent(name="helper", description="helps", graph_id="agent", url=server.url)
        tools = {tool.name: tool for tool in AsyncSubAgentMiddleware(async_subagents=[named]).tools}
        start: Any = tools["start_async_task"]
        runtime = SimpleNamespace(state={}, context=None, config={}, tool_call_id="1")
        said = start.func(description="go", subagent_type="helper", runtime=runtime)
    assert said == "Failed to launch async subagent 'helper': no such route; GET /openapi.json lists them"
