"""The ACP methods of a graph's host: sessions are threads, with checkpoints where the server wants them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel

from clawdforge.graphs.connection import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNKNOWN_SESSION,
    Connection,
    Json,
    RpcError,
)
from clawdforge.graphs.loading import compile_graph
from clawdforge.graphs.places import Place, open_saver
from clawdforge.graphs.turn import Turn, read_text


class Host:
    """Serves one client. `source` is a graph, or a function that makes one."""

    def __init__(self, source: Any, place: Place) -> None:
        self._source = source
        self._place = place
        self._running: dict[str, asyncio.Task[Json]] = {}
        self._methods: dict[str, Callable[[Json], Awaitable[Json]]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
        }
        self._connection: Connection
        self._saver: BaseCheckpointSaver[Any]
        self._graph: Pregel[Any, Any, Any, Any]

    async def serve(self, connection: Connection) -> None:
        async with open_saver(self._place) as saver:
            self._connection, self._saver = connection, saver
            self._graph = await compile_graph(self._source, saver)
            await connection.serve(self._handle)

    async def _handle(self, method: str, params: Json) -> Json:
        handler = self._methods.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"a graph has no method {method}")
        return await handler(params)

    async def _initialize(self, _params: Json) -> Json:
        return {
            "protocolVersion": 1,
            "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}},
            "agentInfo": {"name": "clawdforge-graph", "title": self._graph.get_name(), "version": "1"},
            "authMethods": [],
        }

    async def _new(self, _params: Json) -> Json:
        """Threads are named `{session}:{context}`, or as the server says, and numbered."""
        number = 1
        while await self._saver.aget_tuple(_config(f"{self._place.threads}{number}")) is not None:
            number += 1
        return {"sessionId": f"{self._place.threads}{number}"}

    async def _load(self, params: Json) -> Json:
        thread = _read_thread(params)
        for message in await self._read_messages(thread):
            text = read_text(message.content, last=isinstance(message, HumanMessage))
            if text and isinstance(message, HumanMessage | AIMessage):
                kind = "user_message_chunk" if isinstance(message, HumanMessage) else "agent_message_chunk"
                update: Json = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
                if message.id:
                    update["messageId"] = message.id
                await self._connection.notify("session/update", {"sessionId": thread, "update": update})
        return {}

    async def _resume(self, params: Json) -> Json:
        await self._read_messages(_read_thread(params))
        return {}

    async def _read_messages(self, thread: str) -> list[Any]:
        if await self._saver.aget_tuple(_config(thread)) is None:
            raise RpcError(UNKNOWN_SESSION, f"there is no session {thread[:100]}")
        state = await self._graph.aget_state(_config(thread))
        found = state.values.get("messages") if isinstance(state.values, dict) else None
        return found if isinstance(found, list) else []

    async def _prompt(self, params: Json) -> Json:
        thread, blocks = _read_thread(params), params.get("prompt")
        if thread in self._running:
            raise RpcError(INVALID_PARAMS, "this session is busy with another prompt")
        if not isinstance(blocks, list) or not blocks:
            raise RpcError(INVALID_PARAMS, "prompt must be a list of blocks")
        config = _config(thread, _read_traceparent(params))
        turn = Turn(self._graph, self._connection, thread, config)
        task = self._running[thread] = asyncio.create_task(turn.run(blocks))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            return {"stopReason": "cancelled", **turn.usage()}
        finally:
            del self._running[thread]

    async def _cancel(self, params: Json) -> Json:
        """The turn's task ends at its next await. A tool in a thread continues, but its result is ignored."""
        task = self._running.get(_read_thread(params))
        if task is not None:
            task.cancel()
        return {}


def _read_thread(params: Json) -> str:
    thread = params.get("sessionId")
    if not isinstance(thread, str) or not thread:
        raise RpcError(INVALID_PARAMS, "sessionId is missing")
    return thread


def _read_traceparent(params: Json) -> str | None:
    """The span of a trace that the client wants this turn to be below."""
    meta = params.get("_meta")
    found = meta.get("traceparent") if isinstance(meta, dict) else None
    return found if isinstance(found, str) else None


def _config(thread: str, traceparent: str | None = None) -> RunnableConfig:
    config: RunnableConfig = {"configurable": {"thread_id": thread}}
    return config if traceparent is None else {**config, "metadata": {"traceparent": traceparent}}
