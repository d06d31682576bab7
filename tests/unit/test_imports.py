"""Readers of other tools' session files: what is said is found, what is theirs alone is passed over."""

import contextlib
import gc
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawdforge.core.imports.formats import Imported, parse_time, read_import
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.session import ImportRequest

CLAUDE = [
    {"type": "summary", "summary": "Fix the build", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "m"},
    {"type": "user", "isMeta": True, "message": {"role": "user", "content": "Caveat: …"}},
    {"type": "user", "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
    {
        "type": "user",
        "timestamp": "2026-01-02T03:04:05.678Z",
        "message": {"role": "user", "content": "why does it fail?"},
    },
    {
        "type": "assistant",
        "message": {"model": "claude-x", "content": [{"type": "thinking", "thinking": "hm"}]},
    },
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "Let me look."}]}},
    {
        "type": "assistant",
        "message": {
            "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}]
        },
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "oops"}],
        },
    },
    {
        "type": "assistant",
        "isSidechain": True,
        "message": {"content": [{"type": "text", "text": "sub-agent"}]},
    },
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "It lacks a header."}]}},
    {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "thanks"}]}},
]
CODEX = [
    {"timestamp": "2026-01-02T03:04:05Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
    {"type": "turn_context", "payload": {"model": "gpt-x"}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>\n</environment_context>"}],
        },
    },
    {
        "timestamp": "2026-01-02T03:04:06Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "list"}]},
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "list"}},
    {
        "type": "response_item",
        "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    },
    {
        "type": "response_item",
        "payload": {"type": "function_call", "name": "shell", "arguments": '{"c":"ls"}', "call_id": "c1"},
    },
    {
        "type": "response_item",
        "payload": {"type": "function_call_output", "call_id": "c1", "output": "a.txt"},
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a.txt"}],
        },
    },
]


def from_file(kind: Any, lines: list[Any], junk: str = "") -> Imported:
    return read_import(ImportRequest(format=kind, text=junk + "\n".join(map(json.dumps, lines))))


def test_a_claude_code_session() -> None:
    found = from_file("claude", CLAUDE, "not json\n\n[1]\n")
    assert (found.title, found.settings) == ("Fix the build", {"model": "claude-x"})
    assert [(row.role, row.content) for row in found.messages] == [
        ("user", "why does it fail?"),
        ("assistant", "Let me look.\n\nIt lacks a header."),
        ("user", "thanks"),
    ]
    question, answer, _ = found.messages
    assert question.ts == 1_767_323_045_678_000
    assert answer.thinking == "hm"
    (tool,) = answer.tool_calls
    assert tool == {
        "toolCallId": "t1",
        "title": "Bash",
        "rawInput": {"command": "make"},
        "rawOutput": "oops",
        "status": "completed",
    }
    assert {row.turn for row in found.messages} == {0}
    assert found.skipped == 6


def test_a_codex_rollout_with_and_without_envelopes() -> None:
    found = from_file("codex", CODEX)
    assert found.settings == {"model": "gpt-x"}
    assert [(row.role, row.content) for row in found.messages] == [("user", "list"), ("assistant", "a.txt")]
    assert found.messages[1].thinking == "hm"
    assert found.messages[1].tool_calls[0]["rawOutput"] == "a.txt"
    bare = [line["payload"] for line in CODEX if line["type"] == "response_item"]
    assert [row.content for row in from_file("codex", bare).messages] == ["list", "a.txt"]


def test_rows_of_other_programs() -> None:
    rows = [
        {
            "role": "human",
            "content": [{"type": "text", "text": "a"}, {"type": "image"}, "b"],
            "ts": 1_700_000_000.5,
        },
        {"role": "AI", "content": None, "tool_calls": [{"id": "x"}, 3], "reasoning": "r"},
        {"role": "developer", "content": "s", "timestamp": "junk"},
    ]
    found = read_import(ImportRequest(messages=rows)).messages
    assert [(row.role, row.content) for row in found] == [
        ("user", "a\nb"),
        ("assistant", ""),
        ("system", "s"),
    ]
    assert found[0].ts == 1_700_000_000_500_000
    assert found[1].tool_calls == ({"id": "x"},)
    assert (found[1].thinking, found[2].ts) == ("r", 0)


def test_many_results_of_one_row_take_a_time_in_proportion() -> None:
    def seconds(count: int) -> float:
        asks = [{"id": f"c{number}", "name": "look", "input": {}} for number in range(count)]
        rows: list[dict[str, Any]] = [{"role": "assistant", "content": "", "tool_calls": asks}]
        rows += [{"role": "tool", "tool_call_id": f"c{number}", "content": "seen"} for number in range(count)]
        request = ImportRequest(messages=rows)
        gc.disable()  # it would look through what all other tests have left
        began = time.process_time()
        try:
            found = read_import(request)
        finally:
            took = time.process_time() - began
            gc.enable()
        assert found.messages[0].tool_calls[-1]["rawOutput"] == "seen"
        return took

    seconds(100)
    small, large = (min(seconds(count) for _ in range(3)) for count in (500, 8000))
    # Quadratic work would be 256 times as much; linear is 16, and the rest is room for a busy machine.
    assert large < 80 * max(small, 0.002)


@pytest.mark.parametrize(
    "value", [None, True, -1, 1e30, float("nan"), "", "yesterday", [], "0001-01-01T00:00:00Z"]
)
def test_a_time_that_is_none(value: Any) -> None:
    assert parse_time(value) == 0


WORDS = st.sampled_from(
    ["type", "role", "content", "message", "payload", "text", "user", "assistant", "tool_result", "id"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=15,
)


@given(st.lists(JSON, max_size=5), st.sampled_from(["claude", "codex", "clawdforge", "messages"]))
def test_nothing_that_is_sent_breaks_a_reader(lines: list[Any], kind: Any) -> None:
    rows = [line for line in lines if isinstance(line, dict)]
    export = {"session": rows[0] if rows else {}, "messages": rows, "turns": rows}
    with contextlib.suppress(InvalidRequest):
        read_import(
            ImportRequest(
                format=kind,
                text="\n".join(map(json.dumps, lines)),
                messages=rows,
                export=export if rows else None,
            )
        )
