"""What an agent says is gathered: lines that are alike are read as if each had been decoded."""

import json
from itertools import pairwise

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clawdforge.core.models.events import AgentEvent
from clawdforge.drivers.acp.gathering import Gathering
from clawdforge.drivers.acp.updates import read_message
from clawdforge.jsonrpc.alike import PROBE, Alike
from clawdforge.jsonrpc.ndjson import Framer, Line, decode_line
from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import plain_words

BEFORE, BEHIND = b'{"params":{"sessionId":"s","update":{"text":', b'}},"method":"session/update"}'


def chunk(text: str, word: str = "agent_message_chunk", session: str = "s", **more: object) -> Json:
    update = {"sessionUpdate": word, "content": {"type": "text", "text": text}, **more}
    return {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}


def gather_all(lines: list[bytes]) -> tuple[list[AgentEvent], int]:
    """What comes of them, in order; and how many were taken without being decoded."""
    gathering, found, quick = Gathering(), list[AgentEvent](), 0

    def hand_over() -> None:
        words = gathering.hand_over()
        found.extend([] if words is None else [event for event, _ in words.events()])

    def take(line: bytes | bytearray) -> bool:
        nonlocal quick
        is_taken = gathering.take_line(line)
        quick += is_taken
        return is_taken

    for frame in Framer().frames(b"".join(line + b"\n" for line in lines), take):
        assert isinstance(frame, Line)
        if not gathering.take(frame.message, frame.size):
            hand_over()
            found.append(read_message(frame.message))
    hand_over()
    return found, quick


WORDS = ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "plan")
MORE: tuple[Json, ...] = ({}, {}, {"messageId": "m1"}, {"messageId": "m2"}, {"_meta": {"x": 1}})
SAID = st.tuples(
    st.text(max_size=8), st.sampled_from(WORDS), st.sampled_from(["s", "t"]), st.sampled_from(MORE)
)


@given(st.lists(SAID, max_size=20), st.booleans())
@example([("a", WORDS[0], "s", {}), ("text", WORDS[0], "s", {}), ('"', WORDS[0], "s", {})] * 3, True)
@example([("", WORDS[0], "s", {})] * 9 + [("x", WORDS[1], "s", {})] * 3, False)
def test_what_is_gathered_is_what_was_said_in_its_order(
    said: list[tuple[str, str, str, Json]], escapes: bool
) -> None:
    messages = [chunk(text, word, session, **more) for text, word, session, more in said]
    lines = [json.dumps(one, ensure_ascii=escapes).encode() for one in messages]
    found, _ = gather_all(lines)
    assert found == [read_message(one) for one in messages]


VALUES = (1, True, 1.0, 0, False, -0.0, PROBE, "foo", {"p": 1, "q": 2}, {"q": 2, "p": 1})


@pytest.mark.parametrize("place", ["update", "params"])
@pytest.mark.parametrize("text", ["said", PROBE, "1"])
def test_what_json_tells_apart_is_not_alike(text: str, place: str) -> None:
    """To Python 1, true and 1.0 are the same; and a text may be the one that others are tried with."""
    lines = []
    for value in (value for value in VALUES for _ in range(3)):
        one = chunk(text)
        (one["params"]["update"] if place == "update" else one["params"])["x"] = value
        lines.append(orjson.dumps(one))
    for session in (PROBE, PROBE, "other"):
        one = chunk(text)
        one["params"] = {"update": one["params"]["update"], "sessionId": session}
        lines.append(orjson.dumps(one))
    found, _ = gather_all(lines)
    expected = [read_message(orjson.loads(line)) for line in lines]
    assert [orjson.dumps(event.fields) for event in found] == [orjson.dumps(one.fields) for one in expected]


def test_most_of_a_flood_is_not_even_decoded() -> None:
    lines = [orjson.dumps(chunk(f"word {number}\n", messageId="m")) for number in range(200)]
    found, quick = gather_all(lines)
    assert [event.fields["content"] for event in found] == [f"word {number}\n" for number in range(200)]
    assert quick == 198


@pytest.mark.parametrize(
    "said",
    [
        b'"a","text":"b"',
        b'"a\\"',
        b'"a"b"',
        b'"\xff"',
        b'"\\ud800"',
        b'"a\tb"',
        b"null",
        b"[1]",
        b"",
        b'"',
        b'"a"},"x":{"y":"b"',
    ],
)
def test_what_is_no_text_is_not_taken_for_one(said: bytes) -> None:
    """An agent may send what it likes between the words that stand around a text."""
    alike = Alike(BEFORE, BEHIND)
    assert alike.read(BEFORE + b'"a \\u0041 \\" b"' + BEHIND) == 'a A " b'
    assert alike.read(BEFORE + said + BEHIND) is None
    assert alike.read(BEFORE[: len(BEFORE) // 2] + BEHIND) is None
    assert alike.read(BEFORE + BEHIND[1:]) is None


@pytest.mark.parametrize(
    "text", ["text", "type", "agent_message_chunk", "s", "2.0", "session/update", "é", ""]
)
def test_a_text_is_found_where_it_stands_and_nowhere_else(text: str) -> None:
    """It may be a word that stands in each of these lines."""

    def says(message: Json, said: str) -> bool:
        return plain_words(message) == (EventType.TEXT, {"agent_session_id": "s"}, said)

    line = orjson.dumps(chunk(text))
    alike = Alike.learn(line, text, says)
    if alike is not None:
        for other in ("another", '"', "\\", "{}"):
            said = orjson.dumps(chunk(other))
            assert alike.read(said) == other
            assert says(decode_line(said) or {}, other)


def test_types_and_sessions_are_kept_apart() -> None:
    said = [*("ab" * 3), *("cd" * 3)]
    messages = [chunk(text, session=f"s{number // 3}") for number, text in enumerate(said)]
    found, _ = gather_all([orjson.dumps(one) for one in messages])
    sessions = [event.fields["agent_session_id"] for event in found]
    assert sessions == [f"s{number // 3}" for number in range(12)]
    assert all(one <= other for one, other in pairwise(sessions))
    assert {event.kind for event in found} == {EventType.TEXT}
