"""Runs one prompt through a graph: its stream becomes updates, its interrupts become questions."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError
from langgraph.pregel import Pregel
from langgraph.types import Command

from clawdforge.graphs.connection import INTERNAL, Connection, Json, RpcError
from clawdforge.graphs.questions import ask_interrupt

STOPS: Final = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "MAX_TOKENS": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "SAFETY": "refusal",
}


class Turn:
    """Runs a graph on one thread until it has nothing left to do."""

    def __init__(
        self, graph: Pregel[Any, Any, Any, Any], connection: Connection, thread: str, config: RunnableConfig
    ) -> None:
        self._graph = graph
        self._connection = connection
        self._thread = thread
        self._meter = UsageMetadataCallbackHandler()
        self._config: RunnableConfig = {**config, "callbacks": [self._meter]}
        self._sent: set[str] = set()
        self._stop = "end_turn"

    async def run(self, blocks: Sequence[Any]) -> Json:
        try:
            prompt = HumanMessage(content=_convert_prompt(blocks))
            given: Any = {"messages": [*await self._close_open_calls(), prompt]}
            while given is not None:
                given = await self._run_once(given)
        except GraphRecursionError:
            self._stop = "max_turn_requests"
        except RpcError:
            raise
        except Exception as error:
            raise RpcError(INTERNAL, f"{type(error).__name__}: {error}") from error
        return {"stopReason": self._stop, **self.usage()}

    def usage(self) -> Json:
        """The sum over all model calls of the turn, also of sub-agents; empty if none was reported."""
        calls = list(self._meter.usage_metadata.values())
        if not calls:
            return {}
        cached = sum(call.get("input_token_details", {}).get("cache_read", 0) for call in calls)
        taken = sum(call["input_tokens"] for call in calls) - cached
        given = sum(call["output_tokens"] for call in calls)
        counts = {"inputTokens": taken, "outputTokens": given, "cachedReadTokens": cached}
        return {"usage": {**counts, "totalTokens": taken + given + cached}}

    async def _close_open_calls(self) -> list[ToolMessage]:
        """Results for tool calls that a cancel or a crash left without one, since models require a result."""
        state = await self._graph.aget_state(self._config)
        found = state.values.get("messages") if isinstance(state.values, dict) else None
        known = found if isinstance(found, list) else []
        answered = {message.tool_call_id for message in known if isinstance(message, ToolMessage)}
        calls = [call for message in known if isinstance(message, AIMessage) for call in message.tool_calls]
        return [
            ToolMessage("It was stopped before it ended.", tool_call_id=str(call["id"]), status="error")
            for call in calls
            if call["id"] not in answered
        ]

    async def _run_once(self, given: Any) -> Any:
        """Run until the graph ends (None) or interrupts. Then return what to resume it with."""
        interrupts: dict[str, Any] = {}
        stream = self._graph.astream(
            given, self._config, stream_mode=["messages", "updates"], subgraphs=True, durability="sync"
        )
        async for _path, mode, data in stream:
            if mode == "messages":
                message: Any = data[0]
                await self._send_message(message)
            elif isinstance(data, dict):
                for found in data.get("__interrupt__") or ():
                    interrupts[found.id] = found.value
                for returned in _find_messages(data):
                    await self._send_tools(returned)
        if not interrupts:
            return None
        return Command(
            resume={key: await ask_interrupt(self._ask, value) for key, value in interrupts.items()}
        )

    async def _send_message(self, message: BaseMessage) -> None:
        """Send a token, or a whole message of a node that does not stream."""
        if not isinstance(message, AIMessage):
            return
        thought = read_thought(message.content)
        if thought:
            await self._send_update("agent_thought_chunk", content={"type": "text", "text": thought})
        text = read_text(message.content)
        if text:
            await self._send_update("agent_message_chunk", content={"type": "text", "text": text})
        metadata = message.response_metadata
        reason = metadata.get("finish_reason") or metadata.get("stop_reason")
        if reason:
            self._stop = STOPS.get(str(reason), "end_turn")
        if not isinstance(message, AIMessageChunk):
            await self._send_tools(message)

    async def _send_tools(self, message: BaseMessage) -> None:
        """Send tool calls and their results, each of them once."""
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                number = str(call.get("id") or call["name"])
                if number not in self._sent:
                    self._sent.add(number)
                    await self._send_update(
                        "tool_call",
                        toolCallId=number,
                        title=call["name"],
                        kind="other",
                        status="in_progress",
                        rawInput=call["args"],
                    )
        elif isinstance(message, ToolMessage) and f"{message.tool_call_id} done" not in self._sent:
            self._sent.add(f"{message.tool_call_id} done")
            block = {"type": "content", "content": {"type": "text", "text": read_text(message.content)}}
            status = "failed" if message.status == "error" else "completed"
            await self._send_update(
                "tool_call_update", toolCallId=message.tool_call_id, status=status, content=[block]
            )

    async def _send_update(self, update: str, **fields: Any) -> None:
        params = {"sessionId": self._thread, "update": {"sessionUpdate": update, **fields}}
        await self._connection.notify("session/update", params)

    async def _ask(self, call: Json, options: list[Json]) -> str | None:
        """The chosen option's id; None when nobody decides."""
        params = {"sessionId": self._thread, "toolCall": call, "options": options}
        reply = await self._connection.request("session/request_permission", params)
        outcome = reply.get("outcome")
        chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
        return chosen if isinstance(chosen, str) else None


def read_text(content: Any, *, last: bool = False) -> str:
    """The text of a message; with `last` only of its last block, since we put the blocks before it."""
    if isinstance(content, str):
        return content
    found = [str(b.get("text", "")) for b in _blocks(content) if b.get("type", "text") == "text"]
    return "".join(found[-1:] if last else found)


def read_thought(content: Any) -> str:
    found = _blocks(content) if not isinstance(content, str) else []
    return "".join(str(b.get("thinking") or b.get("reasoning") or "") for b in found)


def _blocks(content: Any) -> list[Json]:
    given = content if isinstance(content, list) else []
    return [
        {"type": "text", "text": b} if isinstance(b, str) else b for b in given if isinstance(b, str | dict)
    ]


def _convert_prompt(blocks: Sequence[Any]) -> Any:
    """A prompt with a single text becomes that text, which is all that simple graphs expect."""
    texts = [_convert_block(block) for block in blocks if isinstance(block, dict)]
    return texts[0]["text"] if len(texts) == 1 else texts


def _convert_block(block: Json) -> Json:
    if block.get("type") == "text":
        return {"type": "text", "text": str(block.get("text", ""))}
    resource = block.get("resource")
    inner = resource if isinstance(resource, dict) else block
    return {"type": "text", "text": str(inner.get("text") or inner.get("uri") or "")}


def _find_messages(data: Json) -> Iterator[BaseMessage]:
    """The messages in the updates that nodes returned."""
    for update in data.values():
        found = update.get("messages") if isinstance(update, dict) else None
        found = getattr(found, "value", found)  # a whole channel that was overwritten
        for message in found if isinstance(found, list) else [found]:
            if isinstance(message, BaseMessage):
                yield message
