"""Which trace a turn belongs to, what is kept of a caller's header, and which tools a turn used."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from clawdforge.core.models.events import StoredEvent
from clawdforge.core.models.rows import TurnRow
from clawdforge.core.rules.traces import (
    MOST_CHARS,
    MOST_TOOLS,
    ToolCalls,
    find_place,
    find_tool_place,
    find_traceparent,
    name_tool,
    read_calls,
    read_traceparent,
)
from clawdforge.wire.turn import TurnState

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def a_turn(**fields: Any) -> TurnRow:
    known = {"session_id": "s", "turn_index": 1, "state": TurnState.ENDED, "prompt": "hi", "queued_at": 1}
    return TurnRow(**{**known, **fields})


def an_event(seq: int, type_: str, /, **update: Any) -> StoredEvent:
    fields = {"seq": seq, "ts": f"2026-11-17T12:00:{seq % 60:02d}.000001Z", "turn": 1, "type": type_}
    return StoredEvent(
        seq, type_, 1, json.dumps({**fields, "update": {"toolCallId": "c", **update}}).encode()
    )


def collect(events: list[StoredEvent], *, with_content: bool = False) -> ToolCalls:
    calls = ToolCalls(with_content=with_content)
    for said in read_calls(events, with_content=with_content):
        calls.take(said)
    return calls


@given(st.text(max_size=80) | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}.*"))
@example(CALLER + "\n")
@example(f"{CALLER}\0")
@example("\u0660\u0660" + CALLER[2:])
def test_whatever_a_header_says_what_is_kept_is_a_header_of_the_first_version(text: str) -> None:
    kept = read_traceparent(text)
    if kept is not None:
        assert read_traceparent(kept) == kept
        assert (len(kept), kept[:3], kept[-3:]) == (55, "00-", "-01")
        assert kept[3:52] == text[3:52]


def test_a_caller_who_does_not_record_is_still_the_caller() -> None:
    assert read_traceparent(CALLER[:-2] + "00") == CALLER
    assert read_traceparent(None) is None


def test_the_place_of_a_turn_is_the_same_whenever_it_is_asked_for() -> None:
    own, below = a_turn(), a_turn(traceparent=CALLER)
    assert find_place(own) == find_place(a_turn(outcome=None))
    assert find_place(own).parent_id is None
    assert (find_place(below).trace_id, find_place(below).parent_id) == (CALLER[3:35], CALLER[36:52])
    others = {find_place(a_turn(turn_index=index)).span_id for index in range(1, 50)}
    others |= {find_tool_place(own, number).span_id for number in range(1, 50)}
    assert len(others) == 98
    assert find_tool_place(below, 1).parent_id == find_place(below).span_id
    assert read_traceparent(find_traceparent(below)) == find_traceparent(below)


def test_a_call_is_named_by_what_it_does_or_by_a_plain_name() -> None:
    assert name_tool("execute", "curl -H 'key: abc'") == "execute"
    assert name_tool("other", "search_docs") == "search_docs"
    assert name_tool(None, "mcp__files__read") == "mcp__files__read"
    assert name_tool("made-up secret", "two words") == "other"
    assert name_tool(None, "x" * 65) == "other"


def test_calls_are_put_together_and_have_one_end() -> None:
    calls = collect(
        [
            an_event(1, "tool_call", title="look", kind="read", status="pending"),
            an_event(2, "tool_update", status="completed", rawOutput="a secret"),
            an_event(3, "tool_update", status="completed"),
            an_event(4, "tool_call", toolCallId="d", kind=7, status=["odd"]),
        ]
    )
    first, second = calls.list()
    assert (first.name, first.status, first.number) == ("read", "completed", 1)
    assert (first.ended_at or 0) - first.started_at == 1_000_000
    assert (first.title, first.given, first.got) == ("", None, None)
    assert (second.name, second.kind, second.status, second.ended_at) == ("other", None, None, None)


def test_with_content_what_went_in_and_came_out_is_there_cut_short() -> None:
    told = an_event(1, "tool_update", title="t", rawInput={"a": "x" * 10**6}, rawOutput="y" * 10**6)
    (call,) = collect([told], with_content=True).list()
    assert (call.title, call.given, len(call.got or "")) == ("t", '{"truncated":true}', 16_384)


def test_of_many_long_results_only_so_much_is_held_and_each_call_is_there() -> None:
    events = [
        an_event(n, "tool_update", toolCallId=str(n), title="t" * 9999, rawOutput="y" * 9999)
        for n in range(MOST_TOOLS)
    ]
    calls = collect(events, with_content=True)
    held = [call.got for call in calls.list() if call.got]
    assert len(held) == MOST_CHARS // 9999
    assert len(calls.list()) == MOST_TOOLS
    assert sum(len(call.title) for call in calls.list()) == MOST_TOOLS * 1000


def test_a_result_that_is_told_again_and_again_takes_its_room_once() -> None:
    events = [an_event(n, "tool_update", rawOutput=str(n).zfill(9999)) for n in range(MOST_TOOLS)]
    (call,) = collect(events, with_content=True).list()
    assert call.got == str(MOST_TOOLS - 1).zfill(9999)


def test_a_turn_with_too_many_calls_is_told_as_not_whole() -> None:
    calls = collect([an_event(n, "tool_call", toolCallId=str(n)) for n in range(MOST_TOOLS + 5)])
    assert (len(calls.list()), calls.is_whole) == (MOST_TOOLS, False)
