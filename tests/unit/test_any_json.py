"""An agent may send any JSON in any field: whatever reads or shows it goes on, and no terminal is steered."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clawdforge.cli.output import render
from clawdforge.cli.output.lines import clean
from clawdforge.cli.output.live_view import View
from clawdforge.cli.output.painter import Painter
from clawdforge.cli.output.steps import Steps
from clawdforge.core.rules.projection import Projection
from clawdforge.drivers.acp.updates import read_message
from clawdforge.http.dialects.hermes.frames import encode_parts, parts_of, tool_id
from clawdforge.wire.event import Event, EventType

FIELDS = st.sampled_from(
    [
        *(
            "toolCallId",
            "title",
            "kind",
            "status",
            "content",
            "entries",
            "locations",
            "rawInput",
            "rawOutput",
        ),
        *("text", "type", "path", "oldText", "newText", "used", "size", "availableCommands", "name"),
        *("message", "sessionUpdate", "toolCall", "priority"),
    ]
)
ODD_WORDS = st.sampled_from(["completed", "failed", "\x1b[2J\x1b]0;title\x07", "\u202eback", "a\nb", "diff"])
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text() | ODD_WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(FIELDS | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(FIELDS, ANYTHING, max_size=8)
OWN_FIELDS = st.sampled_from(
    [
        *("prompt", "outcome", "error", "stop_reason", "usage", "duration_ms", "tool", "kind", "request"),
        *("permission_id", "decision", "reason", "changes", "turns", "how"),
    ]
)
TOP = st.dictionaries(OWN_FIELDS, ANYTHING, max_size=8)
KINDS = st.sampled_from([kind.value for kind in EventType])
STATUS_IS_A_LIST = {"toolCallId": "1", "status": ["completed"], "title": {}, "content": 5}


def event(kind: str, /, **fields: Any) -> Event:
    return Event.model_validate({"seq": 1, "ts": "", "turn": 1, "type": kind, **fields})


@pytest.mark.parametrize("form", ["update", "params"])
@given(events=st.lists(st.tuples(KINDS, TOP, ANYTHING | OBJECTS), max_size=5))
@example(events=[("tool_call", {}, STATUS_IS_A_LIST), ("turn.ended", {"usage": {"input_tokens": [1]}}, None)])
@example(
    events=[("permission.requested", {"kind": "\x1b[2J", "tool": ["x"], "request": {"toolCall": []}}, None)]
)
@example(events=[("permission.decided", {"decision": {"a": 1}, "reason": "\x1b[31m"}, None)])
def test_the_view_shows_anything(form: str, events: list[tuple[str, dict[str, Any], Any]]) -> None:
    """In the compact form, and in the nested one of an older server."""
    view, steps = View(), Steps()
    for kind, top, said in events:
        taken = event(kind, **{**top, form: said})
        steps.take(taken)
        shown = Painter().paint(view.take(taken), 80)
        assert clean(shown) == shown
        live = "".join(words for line in view.live_lines(80) for _, words in line)
        assert clean(live) == live


@given(OBJECTS, TOP)
@example({"status": {"a": 1}}, {})
def test_every_part_of_a_transcript_is_shown(tool: dict[str, Any], row: dict[str, Any]) -> None:
    items = [*render.message({**row, "tool_calls": [tool], "role": tool.get("kind"), "content": tool})]
    items += [
        *render.plan([tool]),
        *render.turn_end(row),
        *render.permission_request({**row, "request": {"toolCall": tool}}),
    ]
    shown = Painter().paint([*items, *render.permission_decision(row)], 80)
    assert clean(shown) == shown


@pytest.mark.parametrize("form", ["update", "params"])
@given(
    events=st.lists(
        st.tuples(st.sampled_from(["tool_call", "tool_update", "text", "plan"]), OBJECTS), max_size=4
    )
)
@example(events=[("tool_call", STATUS_IS_A_LIST)])
def test_what_the_server_makes_of_it_can_be_sent(form: str, events: list[tuple[str, dict[str, Any]]]) -> None:
    names: dict[str, str] = {}
    for kind, said in events:
        fields = {"type": kind, "turn": 1, "content": "", form: said}
        assert isinstance(encode_parts("s", 1, parts_of(fields, "s", names), None), bytes)
        names[tool_id(fields)] = "named"


@given(st.lists(OBJECTS | ANYTHING, max_size=4))
def test_it_is_kept_as_a_message(updates: list[Any]) -> None:
    projection = Projection()
    for update in updates:
        projection.feed(read_message({"method": "session/update", "params": {"update": update}}))
    projection.make_message("s", 1, 0)


@pytest.mark.parametrize("word", ["\ud800", "\x9b", "\x1b[2J"])
def test_no_character_that_steers_or_cannot_be_written_is_left(word: str) -> None:
    assert clean(f"a{word}b") == "ab"
