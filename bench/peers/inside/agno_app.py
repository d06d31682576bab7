"""An AgentOS of agno with one agent, which keeps its sessions in SQLite; it runs in agno's environment."""

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import uvicorn
from agno.agent import Agent
from agno.db.sqlite import SqliteDb
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.os import AgentOS
from speaking import speak


@dataclass
class Speaking(Model):
    """A model that does what the newest message says, in this process."""

    id: str = "speaking"

    async def ainvoke(self, messages: list[Message], **_: Any) -> ModelResponse:
        text = "".join([piece async for piece in speak(str(messages[-1].content))])
        return ModelResponse(role="assistant", content=text)

    async def ainvoke_stream(self, messages: list[Message], **_: Any) -> AsyncIterator[ModelResponse]:
        async for piece in speak(str(messages[-1].content)):
            yield ModelResponse(role="assistant", content=piece)

    def invoke(self, *_: Any, **__: Any) -> ModelResponse:
        raise NotImplementedError

    def invoke_stream(self, *_: Any, **__: Any) -> Iterator[ModelResponse]:
        raise NotImplementedError

    def _parse_provider_response(self, response: Any, **_: Any) -> ModelResponse:
        return ModelResponse(content=response)

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return ModelResponse(content=response)


if __name__ == "__main__":
    agent = Agent(
        id="bench",
        model=Speaking(),
        db=SqliteDb(db_file=os.environ["BENCH_DB"]),
        telemetry=False,
        markdown=False,
    )
    app = AgentOS(id="bench", agents=[agent], telemetry=False).get_app()
    uvicorn.run(
        app, host="127.0.0.1", port=int(os.environ["BENCH_PORT"]), log_level="error", access_log=False
    )
