"""The OpenAI Chat Completions protocol: a request read, an answer written, whole or as a stream."""

from collections.abc import Iterator
from typing import Any, Final

from tests.support.model.conversation import Conversation, Said, dicts, text_of, tools_of
from tests.support.model.script import Plan

Frame = tuple[str | None, Any]


def read(body: dict[str, Any], _path: str) -> Conversation:
    messages = dicts(body.get("messages"))
    said = [
        Said(str(message.get("role")), text_of(message.get("content")))
        for message in messages
        if message.get("role") not in ("system", "developer")
    ]
    functions = dicts([tool.get("function") for tool in dicts(body.get("tools"))])
    return Conversation(
        model=str(body.get("model", "")),
        stream=body.get("stream") is True,
        system="\n".join(
            text_of(message.get("content"))
            for message in messages
            if message.get("role") in ("system", "developer")
        ),
        said=said,
        tools=tools_of((one.get("name"), one.get("parameters")) for one in functions),
    )


def whole(plan: Plan, model: str, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": plan.text or None}
    if plan.call is not None:
        message["tool_calls"] = [_call(plan)]
    choice = {"index": 0, "message": message, "finish_reason": _stop(plan)}
    return {**_head(model, number), "object": "chat.completion", "choices": [choice], "usage": _usage(plan)}


def frames(plan: Plan, model: str, number: int) -> Iterator[Frame]:
    head = {**_head(model, number), "object": "chat.completion.chunk"}
    yield None, {**head, "choices": [_delta({"role": "assistant", "content": ""})]}
    for word in plan.words:
        yield None, {**head, "choices": [_delta({"content": word})]}
    if plan.call is not None:
        yield None, {**head, "choices": [_delta({"tool_calls": [{"index": 0, **_call(plan)}]})]}
    yield None, {**head, "choices": [{**_delta({}), "finish_reason": _stop(plan)}]}
    yield None, {**head, "choices": [], "usage": _usage(plan)}
    yield None, "[DONE]"


FAILURES: Final = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided: x."),
    429: ("tokens", "rate_limit_exceeded", "Rate limit reached for this model. Please try again in 20s."),
    529: ("server_error", "server_is_overloaded", "Our servers are currently overloaded."),
}
TOO_LONG: Final = (
    *("invalid_request_error", "context_length_exceeded"),
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
)


def failure(plan: Plan) -> dict[str, Any]:
    kind, code, words = FAILURES.get(
        plan.status, ("server_error" if plan.status >= 500 else "invalid_request_error", None, "")
    )
    if plan.too_long:
        kind, code, words = TOO_LONG
    message = words or f"the script says {plan.status}"
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _head(model: str, number: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "created": 1_700_000_000 + number, "model": model}


def _delta(delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": None}


def _call(plan: Plan) -> dict[str, Any]:
    if plan.call is None:
        return {}
    function = {"name": plan.call.name, "arguments": plan.call.text}
    return {"id": plan.call.id, "type": "function", "function": function}


def _stop(plan: Plan) -> str:
    return "stop" if plan.call is None else "tool_calls"


def _usage(plan: Plan) -> dict[str, Any]:
    taken = plan.usage.taken + plan.usage.cached
    return {
        "prompt_tokens": taken,
        "completion_tokens": plan.usage.given,
        "total_tokens": taken + plan.usage.given,
        "prompt_tokens_details": {"cached_tokens": plan.usage.cached},
    }
