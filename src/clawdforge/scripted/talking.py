"""Commands that speak: chunks, thoughts, tools, plans, usage, and how a turn ends."""

from __future__ import annotations

import time

from clawdforge.scripted.connection import RpcError
from clawdforge.scripted.plain_json import decode
from clawdforge.scripted.script import Command
from clawdforge.scripted.turn import Turn

TOOL_KINDS = frozenset(
    ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
)
WORLD = (
    "z\u00df\u6c34\U0001f30d e\u0301 \u05e9\u05dc\u05d5\u05dd \u2028 \u0000 \ufeff "
    '\U0001f469\u200d\U0001f680 \\ " \t end'
)


def echo(turn: Turn, text: str = "") -> None:
    turn.say(text)


def chunks(turn: Turn, count: int, size: int = 0, delay_ms: int = 0) -> None:
    if delay_ms:
        for number in range(1, count + 1):
            turn.say(_chunk(number, size).decode())
            turn.sleep(delay_ms / 1000)
        return
    step = turn.batch(size or 8)
    for first in range(1, count + 1, step):
        turn.say_many([_chunk(number, size) for number in range(first, min(first + step, count + 1))])


def flood(turn: Turn, count: int, size: int) -> None:
    step, text = turn.batch(size), b"x" * size
    for first in range(0, count, step):
        turn.say_many([text] * min(step, count - first))


def large(turn: Turn, size: int) -> None:
    turn.say_large(size)


def think(turn: Turn, text: str) -> None:
    turn.update("agent_thought_chunk", content=_text(text))


def tool(turn: Turn, name: str, delay_ms: int = 0, output: str = "") -> None:
    call = turn.tool_id()
    kind = name if name in TOOL_KINDS else "other"
    turn.update(
        "tool_call", toolCallId=call, title=name, kind=kind, status="pending", rawInput={"name": name}
    )
    turn.update("tool_call_update", toolCallId=call, status="in_progress")
    turn.sleep(delay_ms / 1000)
    content = [{"type": "content", "content": _text(output or f"{name} done")}]
    turn.update("tool_call_update", toolCallId=call, status="completed", content=content)


def tools(turn: Turn, count: int, delay_ms: int) -> None:
    for number in range(1, count + 1):
        tool(turn, f"tool-{number}", delay_ms)


def plan(turn: Turn, entries: str) -> None:
    show_plan(turn, [(entry.strip(), "pending") for entry in entries.split("|")])


def show_plan(turn: Turn, entries: list[tuple[str, str]]) -> None:
    turn.update(
        "plan",
        entries=[{"content": text, "priority": "medium", "status": status} for text, status in entries],
    )


def sleep(turn: Turn, seconds: float) -> None:
    turn.sleep(seconds)


def at(turn: Turn, seconds: float) -> None:
    turn.sleep(turn.begun + seconds - time.monotonic())


def usage(turn: Turn, taken: int, given: int, cached: int = 0) -> None:
    turn.usage = {
        "inputTokens": taken,
        "outputTokens": given,
        "cachedReadTokens": cached,
        "totalTokens": taken + given + cached,
    }


def usage_update(turn: Turn, used: int, size: int) -> None:
    turn.update("usage_update", used=used, size=size)


def cost(turn: Turn, amount: float) -> None:
    turn.update("usage_update", used=0, size=0, cost={"amount": amount, "currency": "USD"})


def call_usage(turn: Turn, taken: int, given: int) -> None:
    """As agents do that tell the tokens of each call to the model."""
    tokens = {"inputTokens": taken, "outputTokens": given, "totalTokens": taken + given}
    turn.update("agent_thought_chunk", content=_text(""), _meta={"usage": tokens})


def mode(turn: Turn, name: str) -> None:
    turn.session.mode = name
    turn.update("current_mode_update", currentModeId=name)


def notice(turn: Turn, text: str) -> None:
    turn.update("notice", level="info", content=_text(text))


def other(turn: Turn, kind: str) -> None:
    turn.update(kind, note="a kind that nobody knows")


def update(turn: Turn, raw: str) -> None:
    try:
        fields = decode(raw)
    except ValueError as problem:
        turn.say(f"error: {problem}")
        return
    turn.connection.update(turn.session.name, fields)


def unicode_text(turn: Turn) -> None:
    turn.say(WORLD)


def error(turn: Turn, message: str) -> None:
    turn.error = RpcError(-32603, message)


def stop(turn: Turn, reason: str) -> None:
    turn.stop = reason


def refuse(turn: Turn) -> None:
    turn.stop = "refusal"


def max_tokens(turn: Turn) -> None:
    turn.stop = "max_tokens"


def _chunk(number: int, size: int) -> bytes:
    return b"%d " % number if not size else (b"%d" % number).ljust(size - 1, b".") + b" "


def _text(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


COMMANDS = (
    Command("echo", "[TEXT]", echo, "one chunk with TEXT"),
    Command("chunks", "N [SIZE] [DELAY_MS]", chunks, "N numbered chunks, `1 `, `2 ` …, padded to SIZE bytes"),
    Command("flood", "N SIZE", flood, "N equal chunks of SIZE bytes, as fast as the pipe takes them"),
    Command("bytes", "SIZE", large, "one chunk of SIZE bytes: one huge line"),
    Command(
        "unicode", "", unicode_text, "one chunk with emoji, right-to-left, combining marks, U+2028 and NUL"
    ),
    Command("think", "TEXT", think, "one thought"),
    Command("tool", "NAME [DELAY_MS]", tool, "a tool call: pending, in_progress, after the delay completed"),
    Command("tools", "N DELAY_MS", tools, "N tool calls, one after the other: tool-1, tool-2 …"),
    Command("plan", "LIST", plan, "a plan; its entries stand between bars: `plan read|think|write`"),
    Command("sleep", "SECS", sleep, "wait; a cancel ends it"),
    Command("at", "SECS", at, "wait until SECS after the beginning of the turn, however long the rest took"),
    Command("usage", "IN OUT [CACHED]", usage, "what this turn reports as its usage"),
    Command("usage-update", "USED SIZE", usage_update, "a usage_update: tokens used of the context's size"),
    Command("cost", "USD", cost, "a usage_update with what the session has cost so far, in dollars"),
    Command(
        "call-usage", "IN OUT", call_usage, "an empty thought with the tokens of one call in `_meta.usage`"
    ),
    Command("mode", "NAME", mode, "change the mode and say so with current_mode_update"),
    Command("notice", "TEXT", notice, "a notice"),
    Command("other", "KIND", other, "an update of a kind that nobody knows"),
    Command("update", "JSON", update, "any update, as written"),
    Command("error", "MESSAGE", error, "answer the prompt with a JSON-RPC error at the end of the turn"),
    Command("stop", "REASON", stop, "end the turn with this stop reason"),
    Command("refuse", "", refuse, "end the turn with `refusal`"),
    Command("max-tokens", "", max_tokens, "end the turn with `max_tokens`"),
)
