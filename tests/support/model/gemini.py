"""The Gemini protocol (`generateContent`): a request read, an answer written, whole or as a stream."""

import json
from collections.abc import Iterator
from typing import Any, Final

from tests.support.model.conversation import Conversation, Said, dicts, text_of, tools_of
from tests.support.model.script import Plan

Frame = tuple[str | None, Any]


def read(body: dict[str, Any], path: str) -> Conversation:
    said = []
    for content in dicts(body.get("contents")):
        parts = dicts(content.get("parts"))
        said += [
            Said("tool", json.dumps(part["functionResponse"].get("response")))
            for part in parts
            if isinstance(part.get("functionResponse"), dict)
        ]
        text = "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
        if text:
            said.append(Said("assistant" if content.get("role") == "model" else "user", text))
    system, config = body.get("systemInstruction"), body.get("generationConfig")
    schema = None
    if isinstance(config, dict):
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
    declared = (one for tool in dicts(body.get("tools")) for one in dicts(tool.get("functionDeclarations")))
    return Conversation(
        model=path.rpartition("/")[2].partition(":")[0],
        stream="streamGenerateContent" in path,
        system=text_of(system.get("parts")) if isinstance(system, dict) else "",
        said=said,
        schema=schema if isinstance(schema, dict) else None,
        tools=tools_of(
            (one.get("name"), one.get("parametersJsonSchema", one.get("parameters"))) for one in declared
        ),
    )


def whole(plan: Plan, model: str, _number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": plan.text}] if plan.words else []
    if plan.call is not None:
        parts.append({"functionCall": {"name": plan.call.name, "args": plan.call.arguments}})
    return {**_candidate(parts, "STOP"), "usageMetadata": _usage(plan), "modelVersion": model}


def frames(plan: Plan, model: str, number: int) -> Iterator[Frame]:
    for word in plan.words:
        yield None, {**_candidate([{"text": word}], None), "modelVersion": model}
    last = whole(plan, model, number)
    if plan.call is None:
        last["candidates"][0]["content"]["parts"] = [{"text": ""}]
    yield None, last


FAILURES: Final = {
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    429: (
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    529: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}


def failure(plan: Plan) -> dict[str, Any]:
    name, words = FAILURES.get(
        plan.status,
        ("INVALID_ARGUMENT" if plan.status < 500 else "UNAVAILABLE", f"the script says {plan.status}"),
    )
    if plan.too_long:
        words = "The input token count (1212104) exceeds the maximum number of tokens allowed (1048576)."
    return {"error": {"code": plan.status, "message": words, "status": name}}


def _candidate(parts: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate]}


def _usage(plan: Plan) -> dict[str, Any]:
    taken = plan.usage.taken + plan.usage.cached
    return {
        "promptTokenCount": taken,
        "candidatesTokenCount": plan.usage.given,
        "cachedContentTokenCount": plan.usage.cached,
        "totalTokenCount": taken + plan.usage.given,
    }
