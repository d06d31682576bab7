"""What a request of the OpenAI dialect asks for: a prompt and what was said before it, as plain texts.

Tools run here, so a caller can bring none; and what would be ignored silently is refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from clawdforge.wire.base import Json
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.message import Role
from clawdforge.wire.openai import ChatMessage, ChatRequest, ResponseRequest

MAX_PROMPT: Final = 16 * 1024 * 1024
MAX_NAME: Final = 128
PERSONA: Final = "persona"
TEXTS: Final = frozenset({"text", "input_text", "output_text"})
ROLES: Final = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
OWN_TOOLS: Final = "agents run their own tools on the server"


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Who is to answer: an agent or a persona, and perhaps a model of the agent's."""

    agent: str | None = None
    persona: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """`history` is what was said before `prompt`, instructions first."""

    wanted: Wanted
    history: tuple[Said, ...]
    prompt: str


def read_chat(body: ChatRequest) -> Asked:
    if body.n not in (None, 1):
        raise InvalidRequest("n must be 1: a session has one answer to a prompt")
    if body.functions:
        raise InvalidRequest(f"functions are not taken: {OWN_TOOLS}; leave them out")
    if body.logprobs:
        raise InvalidRequest("logprobs are not known of agents; leave them out")
    if body.audio is not None:
        raise InvalidRequest("audio is not taken; ask for text")
    _check_format(body.response_format, "response_format")
    return _ask(body, map(_read_message, body.messages))


def read_response(body: ResponseRequest) -> Asked:
    if body.background:
        raise InvalidRequest("background is not served here; POST /sessions/{id}/turns queues a prompt")
    if body.prompt is not None:
        raise InvalidRequest("prompt templates are not kept here; send the text as input")
    _check_format((body.text or {}).get("format"), "text.format")
    items = [Said(Role.USER, body.input)] if isinstance(body.input, str) else _read_items(body.input)
    lead = [Said(Role.SYSTEM, body.instructions)] if body.instructions else []
    return _ask(body, [*lead, *items])


def parse_model(name: str) -> Wanted:
    """`AGENT`, `AGENT/MODEL` or `persona/NAME`."""
    first, slash, rest = name.partition("/")
    if not first or (slash and not rest) or max(len(first), len(rest)) > MAX_NAME:
        raise InvalidRequest("model is AGENT, AGENT/MODEL or persona/NAME; GET /v1/models lists some")
    if slash and first == PERSONA:
        return Wanted(persona=rest)
    return Wanted(agent=first, model=rest or None)


def _ask(body: ChatRequest | ResponseRequest, said: Iterable[Said]) -> Asked:
    if body.tools:
        raise InvalidRequest(f"tools are not taken: {OWN_TOOLS}; leave them out")
    *history, last = said if (said := list(said)) else [Said(Role.SYSTEM, "")]
    if last.role is not Role.USER:
        raise InvalidRequest("the last message must be the user's: it is what the agent is asked")
    if not last.text.strip():
        raise InvalidRequest("the last message is empty; say something")
    if len(last.text) > MAX_PROMPT:
        raise InvalidRequest(f"the last message has more than {MAX_PROMPT:,} characters")
    kept = tuple(one for one in history if one.text.strip() or one.role is Role.ASSISTANT)
    return Asked(parse_model(body.model), kept, last.text)


def _read_message(message: ChatMessage) -> Said:
    role = ROLES.get(message.role)
    if role is None or message.tool_calls or message.function_call:
        raise InvalidRequest(f"messages of tools are not taken: {OWN_TOOLS}; leave them out")
    return Said(role, _read_content(message.content))


def _read_items(items: Iterable[Json]) -> Iterator[Said]:
    for item in items:
        kind = item.get("type") or "message"
        if kind == "reasoning":
            continue  # what we sent as progress; it is no part of what was said
        role = ROLES.get(str(item.get("role"))) if kind == "message" else None
        if role is None:
            raise InvalidRequest(
                f"input takes messages of the roles {', '.join(ROLES)}, not an item of type {kind!s:.40}"
            )
        yield Said(role, _read_content(item.get("content")))


def _read_content(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise InvalidRequest("the content of a message is text, or a list of parts with text")
    return "".join(map(_read_part, content))


def _read_part(part: Any) -> str:
    text = part.get("text") if isinstance(part, dict) and part.get("type") in TEXTS else None
    if not isinstance(text, str):
        kind = part.get("type") if isinstance(part, dict) else type(part).__name__
        raise InvalidRequest(
            f"a part of type {kind!s:.40} is not taken, only text; put files into the session's workspace"
        )
    return text


def _check_format(found: Any, name: str) -> None:
    if isinstance(found, dict) and found.get("type", "text") != "text":
        raise InvalidRequest(f"{name} must be text: no agent can be held to another")
