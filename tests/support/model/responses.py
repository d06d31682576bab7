"""The OpenAI Responses protocol: a request read, an answer written, whole or as a stream."""

from collections.abc import Iterator
from typing import Any

from tests.support.model import chat
from tests.support.model.conversation import Conversation, Said, dicts, text_of, tools_of
from tests.support.model.script import Plan

Frame = tuple[str | None, Any]


def read(body: dict[str, Any], _path: str) -> Conversation:
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else dicts(given)
    system, said = [text_of(body.get("instructions"))], []
    for item in items:
        if item.get("type", "message") == "message":
            text, role = text_of(item.get("content")), str(item.get("role"))
            if role in ("system", "developer"):
                system.append(text)
            else:
                said.append(Said(role, text))
        elif str(item.get("type")).endswith("_output"):
            said.append(Said("tool", text_of(item.get("output"))))
    return Conversation(
        model=str(body.get("model", "")),
        stream=body.get("stream") is True,
        system="\n".join(system),
        said=said,
        schema=_schema(body.get("text")),
        tools=tools_of(_tools(body)),
    )


def _tools(body: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Those that come in a namespace, as Codex sends those of an MCP server, are `NAMESPACE.NAME` here."""
    for tool in dicts(body.get("tools")):
        if tool.get("type") == "namespace":
            for inner in dicts(tool.get("tools")):
                yield f"{tool.get('name')}.{inner.get('name')}", inner.get("parameters")
        else:
            yield tool.get("name"), tool.get("parameters")


def whole(plan: Plan, model: str, number: int) -> dict[str, Any]:
    return _response(plan, model, number, "completed", [_item(plan, number)])


def frames(plan: Plan, model: str, number: int) -> Iterator[Frame]:
    count = iter(range(1_000_000))

    def frame(kind: str, **fields: Any) -> Frame:
        return kind, {"type": kind, "sequence_number": next(count), **fields}

    item = _item(plan, number)
    place = {"item_id": item["id"], "output_index": 0}
    yield frame("response.created", response=_response(plan, model, number, "in_progress", []))
    if plan.call is not None:
        yield frame("response.output_item.added", output_index=0, item={**item, "arguments": ""})
        yield frame("response.function_call_arguments.delta", **place, delta=plan.call.text)
        yield frame("response.function_call_arguments.done", **place, arguments=plan.call.text)
    else:
        empty = {"type": "output_text", "text": "", "annotations": []}
        yield frame("response.output_item.added", output_index=0, item={**item, "content": []})
        yield frame("response.content_part.added", **place, content_index=0, part=empty)
        for word in plan.words:
            yield frame("response.output_text.delta", **place, content_index=0, delta=word)
        yield frame("response.output_text.done", **place, content_index=0, text=plan.text)
        yield frame("response.content_part.done", **place, content_index=0, part=item["content"][0])
    yield frame("response.output_item.done", output_index=0, item=item)
    yield frame("response.completed", response=_response(plan, model, number, "completed", [item]))


def failure(plan: Plan) -> dict[str, Any]:
    """The same as in Chat Completions."""
    return chat.failure(plan)


def _schema(text: Any) -> dict[str, Any] | None:
    wanted = text.get("format") if isinstance(text, dict) else None
    schema = wanted.get("schema") if isinstance(wanted, dict) else None
    return schema if isinstance(schema, dict) else None


def _item(plan: Plan, number: int) -> dict[str, Any]:
    if plan.call is not None:
        namespace, dot, name = plan.call.name.rpartition(".")
        return {
            "id": f"fc_{number}",
            "type": "function_call",
            "status": "completed",
            "call_id": plan.call.id,
            "name": name,
            **({"namespace": namespace} if dot else {}),
            "arguments": plan.call.text,
        }
    part = {"type": "output_text", "text": plan.text, "annotations": []}
    return {
        "id": f"item_{number}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _response(
    plan: Plan, model: str, number: int, status: str, output: list[dict[str, Any]]
) -> dict[str, Any]:
    taken = plan.usage.taken + plan.usage.cached
    usage = {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": plan.usage.cached},
        "output_tokens": plan.usage.given,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": taken + plan.usage.given,
    }
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000 + number,
        "status": status,
        "model": model,
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if status == "completed" else None,
    }
