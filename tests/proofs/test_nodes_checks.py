"""What the proof of nodes checks turns red for each thing that may not be."""

import json
from pathlib import Path
from typing import Any

from proofs.nodes.checks import check_heard, check_log, check_reader
from proofs.nodes.load import Talk
from proofs.nodes.proxy import Messages

PROMPTS = {1: "echo 0.1:0\nsleep 0.25\necho 0.1:1", 2: "echo 0.2:0"}
ENDED = {"type": "turn.ended", "outcome": "completed", "code": None}


def text(turn: int, content: str) -> dict[str, Any]:
    return {"type": "text", "turn": turn, "content": content}


def begun(turn: int) -> dict[str, Any]:
    return {"type": "turn.started", "turn": turn}


FIRST = [begun(1), text(1, "0.1:0"), text(1, "0.1:1"), {**ENDED, "turn": 1}]
SECOND = [begun(2), text(2, "0.2:0"), {**ENDED, "turn": 2}]


def number(*events: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"seq": seq, **event} for seq, event in enumerate(events, 1)]


def found(*events: dict[str, Any]) -> str:
    return "; ".join(check_log(Talk("s", dict(PROMPTS)), number(*events)))


def test_a_log_that_is_right_is_let_pass() -> None:
    assert found(*FIRST, *SECOND) == ""


def test_words_of_another_holder_are_found() -> None:
    late = [*FIRST, begun(2), text(1, "0.1:1"), *SECOND[1:]]
    assert "words of turn 1 at 6, while 2 runs" in found(*late)
    assert "words of turn 1 at 5, while None runs" in found(*FIRST, text(1, "0.1:1"), *SECOND)
    assert "turn 2 begins in turn 1" in found(*FIRST[:2], begun(2), *FIRST[2:], *SECOND[1:])


def test_turns_that_begin_or_end_twice_or_never_are_found() -> None:
    assert "begun twice" in found(*FIRST, begun(1), *SECOND)
    assert "ended Counter" in found(*FIRST, *SECOND, SECOND[-1])
    assert "ended Counter" in found(*FIRST)


def test_words_that_are_missing_or_a_failure_are_found() -> None:
    assert "instead of" in found(FIRST[0], *FIRST[2:], *SECOND)
    failed = {**ENDED, "turn": 2, "outcome": "failed", "code": "agent_failed"}
    assert "agent_failed" in found(*FIRST, *SECOND[:2], failed)
    away = {**failed, "code": "store_unavailable", "heard": False}
    assert found(*FIRST, SECOND[0], away) == ""


def test_gaps_are_found() -> None:
    events = number(*FIRST, *SECOND)
    assert any("gaps" in words for words in check_log(Talk("s", dict(PROMPTS)), [*events[:3], *events[4:]]))


def test_readers_that_saw_something_else_are_found() -> None:
    events = number(*FIRST)
    told = {event["seq"]: json.dumps(event).encode() for event in events}
    good = Talk("s", seen=[1, 2, 3, 4], told=told)
    assert list(check_reader(good, events)) == []
    assert list(check_reader(Talk("s", seen=[1, 2, 2, 3, 4], told=told), events))
    assert list(check_reader(Talk("s", seen=[1, 2, 4], told=told), events))
    lost = {**told, 2: json.dumps({**events[1], "content": "it was told, and is lost"}).encode()}
    assert list(check_reader(Talk("s", seen=[1, 2, 3, 4], told=lost), events))


def test_a_prompt_that_was_heard_at_two_nodes_is_found(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text(json.dumps({"prompt": PROMPTS[1]}) + "\n")
    talk = Talk("s", dict(PROMPTS))
    assert list(check_heard([talk], paths[:1])) == []
    assert list(check_heard([talk], paths)) == ["s turn 1 was heard 2 times"]


def test_messages_of_postgres_are_told_apart_wherever_the_stream_is_cut() -> None:
    first, second = b"\x00\x00\x00\x08\x00\x03\x00\x00", b"Q\x00\x00\x00\x0aBEGIN\x00"
    for cut in range(len(first + second)):
        messages = Messages(has_letter=False)
        stream = first + second
        assert [*messages.split(stream[:cut]), *messages.split(stream[cut:])] == [first, second]
