"""The Anthropic Messages protocol: a request read, an answer written, whole or as a stream."""

from collections.abc import Iterator
from typing import Any, Final

from tests.support.model.conversation import Conversation, Said, dicts, text_of, tools_of
from tests.support.model.script import Plan

Frame = tuple[str | None, Any]


def read(body: dict[str, Any], _path: str) -> Conversation:
    said = []
    for message in dicts(body.get("messages")):
        content = message.get("content")
        results = [part for part in dicts(content) if part.get("type") == "tool_result"]
        said += [Said("tool", text_of(part.get("content"))) for part in results]
        parts = [part for part in dicts(content) if part.get("type") == "text"]
        text = content if isinstance(content, str) else text_of(parts)
        if text:
            said.append(Said(str(message.get("role")), text))
    return Conversation(
        model=str(body.get("model", "")),
        stream=body.get("stream") is True,
        system=text_of(body.get("system")),
        said=said,
        tools=tools_of((tool.get("name"), tool.get("input_schema")) for tool in dicts(body.get("tools"))),
    )


def whole(plan: Plan, model: str, number: int) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": plan.text}] if plan.words else []
    if plan.call is not None:
        content.append(
            {"type": "tool_use", "id": plan.call.id, "name": plan.call.name, "input": plan.call.arguments}
        )
    return {**_message(plan, model, number), "content": content, "stop_reason": _stop(plan)}


def frames(plan: Plan, model: str, number: int) -> Iterator[Frame]:
    started = _message(plan, model, number)
    started["usage"] = {**started["usage"], "output_tokens": 1}
    yield _frame("message_start", message={**started, "content": [], "stop_reason": None})
    yield _frame("content_block_start", index=0, content_block=_block(plan))
    for word in plan.words:
        yield _frame("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
    if plan.call is not None:
        delta = {"type": "input_json_delta", "partial_json": plan.call.text}
        yield _frame("content_block_delta", index=0, delta=delta)
    yield _frame("content_block_stop", index=0)
    stop = {"stop_reason": _stop(plan), "stop_sequence": None}
    yield _frame("message_delta", delta=stop, usage=_message(plan, model, number)["usage"])
    yield _frame("message_stop")


FAILURES: Final = {
    400: ("invalid_request_error", "the script says 400"),
    401: ("authentication_error", "invalid x-api-key"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    529: ("overloaded_error", "Overloaded"),
}


def failure(plan: Plan) -> dict[str, Any]:
    kind, words = FAILURES.get(plan.status, ("api_error", f"the script says {plan.status}"))
    if plan.too_long:
        words = "prompt is too long: 212104 tokens > 200000 maximum"
    return {"type": "error", "error": {"type": kind, "message": words}}


def _frame(kind: str, **fields: Any) -> Frame:
    return kind, {"type": kind, **fields}


def _block(plan: Plan) -> dict[str, Any]:
    if plan.call is None:
        return {"type": "text", "text": ""}
    return {"type": "tool_use", "id": plan.call.id, "name": plan.call.name, "input": {}}


def _message(plan: Plan, model: str, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "stop_sequence": None,
        "usage": {
            "input_tokens": plan.usage.taken,
            "output_tokens": plan.usage.given,
            "cache_read_input_tokens": plan.usage.cached,
            "cache_creation_input_tokens": 0,
        },
    }


def _stop(plan: Plan) -> str:
    return "end_turn" if plan.call is None else "tool_use"
