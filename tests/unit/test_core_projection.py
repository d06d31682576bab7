"""What an agent's events become in the transcript, and how much of them."""

from clawdforge.core.rules.projection import MAX_CHARS, MAX_TOOL_CALLS, Projection
from clawdforge.drivers.acp.updates import read_message
from clawdforge.wire.base import Json


def feed(projection: Projection, **update: object) -> None:
    message: Json = {"jsonrpc": "2.0", "method": "session/update", "params": {"update": update}}
    projection.feed(read_message(message))


def text(kind: str, words: str) -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": words}}


def test_text_and_thinking_are_joined_apart_and_the_users_echo_is_left_out() -> None:
    projection = Projection()
    for kind, words in (
        ("agent_thought_chunk", "hm "),
        ("agent_message_chunk", "he"),
        ("user_message_chunk", "prompt"),
        ("agent_message_chunk", "llo"),
        ("agent_thought_chunk", "yes"),
    ):
        feed(projection, **text(kind, words))
    message = projection.make_message("s", 3, 7)
    assert message is not None
    assert (message.content, message.thinking, message.turn, message.ts) == ("hello", "hm yes", 3, 7)
    assert not message.truncated


def test_a_tool_call_and_its_updates_are_one_entry() -> None:
    projection = Projection()
    feed(projection, sessionUpdate="tool_call", toolCallId="1", title="run", status="pending", kind="execute")
    feed(projection, sessionUpdate="tool_call_update", toolCallId="1", status="completed", rawOutput={"a": 1})
    feed(projection, sessionUpdate="tool_call", toolCallId="2", title="read", rawOutput="x" * 100_000)
    message = projection.make_message("s", 1, 1)
    assert message is not None
    first, second = message.tool_calls
    assert first["status"] == "completed"
    assert (first["title"], first["rawOutput"]) == ("run", {"a": 1})
    assert len(second["rawOutput"]) < 20_000, "the log has the whole"


def test_silence_is_no_message() -> None:
    projection = Projection()
    projection.feed(read_message({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}))
    assert projection.make_message("s", 1, 1) is None


def test_what_is_beyond_the_bounds_is_marked() -> None:
    projection = Projection()
    feed(projection, **text("agent_message_chunk", "a" * (MAX_CHARS - 1)))
    feed(projection, **text("agent_message_chunk", "bcd"))
    message = projection.make_message("s", 1, 1)
    assert message is not None
    assert message.truncated
    assert message.content.endswith("ab")
    assert len(message.content) == MAX_CHARS


def test_endless_tool_calls_do_not_grow_without_end() -> None:
    projection = Projection()
    for number in range(MAX_TOOL_CALLS + 10):
        feed(projection, sessionUpdate="tool_call", toolCallId=str(number), title="t")
    message = projection.make_message("s", 1, 1)
    assert message is not None
    assert len(message.tool_calls) == MAX_TOOL_CALLS
    assert message.truncated
