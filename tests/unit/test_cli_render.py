"""Events to lines: what a person sees of each, as plain values."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawdforge.cli.output import render
from clawdforge.cli.output.lines import Block, Code, Item, Line, clean, wrap, wrap_line
from clawdforge.cli.output.live_view import TAIL_LINES, View
from clawdforge.cli.output.markdown import MarkdownStream
from clawdforge.cli.output.menu import Menu
from clawdforge.cli.output.painter import Painter, make_painter
from clawdforge.cli.tables import (
    age,
    align,
    kept_until,
    money,
    one_line,
    session_fields,
    session_lines,
    tokens,
)
from clawdforge.wire.event import Event
from clawdforge.wire.event_forms import compact_fields
from clawdforge.wire.turn import Decision


def text(items: list[Item]) -> str:
    return Painter().paint(items, 80)


def event(kind: str, turn: int | None = 1, /, **fields: Any) -> Event:
    return Event.model_validate({"seq": 1, "ts": "", "turn": turn, "type": kind, **fields})


def update(kind: str, **fields: Any) -> Event:
    """What the agent sent, in the form that the command line asks for."""
    sent = {"method": "session/update", "params": {"update": {"sessionUpdate": kind, **fields}}}
    return event(kind, **compact_fields(kind, sent))


def test_markdown_is_given_out_block_by_block() -> None:
    stream = MarkdownStream()
    assert stream.feed("# Title\nsome ") == []
    assert stream.tail(2) == "# Title\nsome "
    assert stream.feed("words\n\nnext") == [Block("# Title\nsome words")]
    assert stream.end() == [Block("next")]
    assert stream.end() == []


def test_code_is_given_out_line_by_line_and_diffs_have_colours() -> None:
    stream = MarkdownStream()
    items = stream.feed("before\n```diff\n@@ 1 @@\n+new\n-old\n\n same\n```\nafter\n\n")
    assert items[0] == Block("before")
    assert items[-1] == Block("after")
    styles = [item[1][0] for item in items if isinstance(item, list)]
    assert styles == ["hunk", "added", "removed", "dim", "dim"]


def test_a_long_list_does_not_wait_for_its_end() -> None:
    stream = MarkdownStream()
    items = [item for number in range(50) for item in stream.feed(f"{number}. entry\n")]
    assert len(items) >= 2
    table = MarkdownStream()
    assert [item for _ in range(50) for item in table.feed("| a | b |\n")] == []


@given(st.lists(st.text(alphabet="ab`~\n #-1.|", max_size=12), max_size=30))
def test_no_word_is_lost_however_the_text_is_cut(pieces: list[str]) -> None:
    cut, whole = MarkdownStream(), MarkdownStream()
    items = [item for piece in pieces for item in cut.feed(piece)] + cut.end()
    assert items == whole.feed("".join(pieces)) + whole.end()
    shown = "".join(char for char in text(items) if char in "ab")
    fences = [line for line in "".join(pieces).split("\n") if line.lstrip().startswith(("```", "~~~"))]
    if not fences:
        assert shown == "".join(char for char in "".join(pieces) if char in "ab")


def test_what_steers_a_terminal_is_taken_out() -> None:
    assert (
        clean("a\x1b[31mb\x1b]0;title\x07c\x1b]8;;http://x\x1b\\d\x07\x9b2Je\u202ef\r\ng\th")
        == "abcd2Jef\ng\th"
    )
    assert clean("\x1bPq#0\x1b\\x") == "x"


@given(st.text(), st.integers(2, 40))
def test_wrapping_loses_nothing(words: str, width: int) -> None:
    rows = wrap(words, width)
    assert "".join(rows).replace(" ", "") == words.replace(" ", "")  # a space at a break is the break
    assert all(len(row) <= width for row in rows)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (["```console", "one", "```"], ["  └ one"]),
        (["one", "", "two", "three", "four"], ["  └ one", "    two", "    three", "    four"]),
        ([*"abcde"], ["  └ a", "    b", "    c", "    … 2 more lines; Ctrl-O shows all"]),
        (["```", "```"], []),
    ],
)
def test_the_first_real_lines_of_an_output_are_shown_and_all_on_a_key(
    rows: list[str], shown: list[str]
) -> None:
    view = View()
    content = [{"type": "content", "content": {"type": "text", "text": "\n".join(rows)}}]
    lines = view.take(update("tool_call", toolCallId="1", title="Run", status="completed", content=content))
    assert text(lines).splitlines() == ["✓ Run", *shown]
    assert view.last_tool is not None
    real = [row for row in rows if row and not row.startswith("```")]
    assert text(render.tool(view.last_tool, whole=True)).splitlines() == [
        "✓ Run",
        *(f"    {r}" for r in real),
    ]


def test_a_tool_call_is_folded_to_a_line_with_its_status() -> None:
    view = View()
    assert view.take(update("tool_call", toolCallId="1", title="Read file", status="pending")) == []
    assert ("tool", "Read file") in view.live_lines(80)[0]
    content = [{"type": "content", "content": {"type": "text", "text": "first\nsecond\nthird"}}]
    lines = view.take(update("tool_update", toolCallId="1", status="completed", content=content))
    assert text(lines) == "✓ Read file\n  └ first\n    second\n    third\n"
    assert view.live_lines(80) == []
    view.take(update("tool_call", toolCallId="2", title="Run it"))
    failed = view.take(update("tool_update", toolCallId="2", status="failed"))
    assert failed[0] == [("bad", "✗ "), ("tool", "Run it"), ("dim", "  failed")]


def test_a_diff_is_coloured_counted_and_cut() -> None:
    lines = render.diff("a.py", "one\ntwo\n", "one\n2\n")
    assert text(lines).splitlines()[0] == "  └ a.py  +1 -1"
    assert [("", "    "), ("removed", "-two")] in lines
    assert [("", "    "), ("added", "+2")] in lines
    long = render.diff("b.py", None, "\n".join(map(str, range(200))))
    assert len(long) == render.MOST_DIFF + 2
    assert "more lines" in text(long)


def test_a_turn_from_queue_to_end() -> None:
    view = View(sent=["typed here"])
    assert view.take(event("turn.queued", prompt="typed here")) == []
    assert text(view.take(event("turn.queued", 2, prompt="from elsewhere\nin two lines"))) == (
        "> from elsewhere\n  in two lines\n  from another terminal or program\n"
    )
    view.take(event("turn.started"))
    assert view.running == 1
    assert "1 queued" in str(view.live_lines(80))
    view.take(event("thinking", content="hm, let me see"))
    assert "hm" in str(view.live_lines(80))
    assert text(view.take(event("text", content="The answer"))) == "∴ hm, let me see\n"
    ended = view.take(
        event("turn.ended", outcome="completed", stop_reason="end_turn", duration_ms=1500,
              usage={"input_tokens": 1200, "output_tokens": 30, "cost_usd": 0.0123})
    )  # fmt: skip
    assert text(ended) == "The answer\n\n1.2k in · 30 out · $0.0123 · 1.5 s\n"
    assert view.running is None


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("cancelled", "the answer so far is kept"),
        ("interrupted", "/retry"),
        ("failed", "failed: no luck"),
        ("timed_out", "took too long: no luck"),
    ],
)
def test_every_other_end_is_told(outcome: str, words: str) -> None:
    assert words in text(render.turn_end({"outcome": outcome, "error": "no luck"}))


def test_an_odd_stop_is_told() -> None:
    assert "max_tokens" in text(render.turn_end({"outcome": "completed", "stop_reason": "max_tokens"}))
    assert render.turn_end({"outcome": "completed", "stop_reason": "end_turn"}) == []


def test_nothing_is_chosen_until_somebody_chooses() -> None:
    menu = Menu({"tool": "Write", "kind": "edit"})
    found = [menu.decision]
    assert "▸" not in str(menu.lines())
    for step in (1, -1, 1, 1, 1):
        menu.move(step)
        found.append(menu.decision)
    once, always, no = Decision.ALLOW_ONCE, Decision.ALLOW_ALWAYS, Decision.REJECT
    assert found == [None, once, once, always, no, no]
    assert "▸ 3 refuse" in str(menu.lines())
    menu.choose(2)
    assert menu.decision is always
    upwards = Menu({})
    upwards.move(-1)
    assert upwards.decision is no


def test_a_question_shows_a_diff_once_and_all_of_it_when_asked() -> None:
    new = "".join(f"row {number}\n" for number in range(100))
    change = {"type": "diff", "path": "/a.py", "oldText": "", "newText": new}
    asked = {
        "tool": "Write a.py",
        "request": {"toolCall": {"content": [change], "rawInput": {"path": "/a.py", "text": new}}},
    }
    short = text(render.permission_request(asked))
    assert short.count("row 7\n") == 1
    assert "… 61 more lines" in short
    assert "row 99" not in short
    whole = text(render.permission_request(asked, whole=True))
    assert "row 99" in whole
    assert '"path": "/a.py"' in whole


def test_a_command_that_the_title_says_is_not_said_again() -> None:
    call = {"toolCall": {"rawInput": {"command": "ls -l"}}}
    assert len(render.permission_request({"tool": "`ls -l`", "request": call})) == 1
    assert "$ ls -l" in text(render.permission_request({"tool": "Bash", "request": call}))


def test_until_when_a_session_is_kept() -> None:
    day = r"\d{4}-\d\d-\d\d \d\d:\d\d"
    at = {"retention": "ttl", "closes_at": 1_794_900_000, "deletes_at": 1_794_986_400}
    assert re.fullmatch(f"closes {day} and is deleted {day}", kept_until(at))
    assert re.fullmatch(f"is deleted {day}", kept_until({**at, "closes_at": None}))
    assert kept_until({**at, "retention": "keep"}) == "until you delete it"
    assert kept_until({"retention": "ttl"}) == "-"


def test_what_a_turn_takes_so_far_is_counted_anew_for_each() -> None:
    view = View()
    view.take(event("turn.started"))
    assert view.progress(view.since + 3.9) == ["◒ working 3 s; Ctrl-C stops it"]
    view.take(event("thinking", content="fünf"))
    view.take(event("text", content="x" * 4000))
    assert view.progress(view.since + 4)[0] == "~1.0k tokens"
    assert view.progress(view.since - 1)[-1].startswith("◐ working 0 s")
    view.take(event("turn.started", 2))
    assert len(view.progress(view.since)) == 1


def test_a_question_waits_until_it_is_decided() -> None:
    view = View()
    call = {"toolCall": {"rawInput": {"command": "rm -r x"}}}
    asked = view.take(
        event("permission.requested", permission_id="p", tool="Delete", kind="execute", request=call)
    )
    assert "? Delete  execute" in text(asked)
    assert "rm -r x" in text(asked)
    assert "allow always, in this session: Delete (execute)" in str(view.live_lines(80))
    assert "refused" in text(view.take(event("permission.decided", permission_id="p", decision="reject")))
    assert view.pending == {}
    assert view.take(event("permission.decided", permission_id="q", decision="allow_once")) == []


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("history.cut", {"turns": [2, 3]}, "undone: 2 turns"),
        ("history.restored", {}, "brought back"),
        ("history.cleared", {}, "cleared"),
        ("history.compacted", {}, "compacted"),
        ("session.changed", {"changes": {"model": "m2"}}, "changed: model m2"),
        ("session.closed", {}, "ended"),
        ("context.started", {"how": "transcript"}, "conversation restored"),
        ("output.truncated", {}, "dropped"),
        ("notice", {"update": {"message": "mind\x1b[31m this"}}, "! mind this"),
    ],
)
def test_what_happens_to_the_session_is_told(kind: str, fields: dict[str, Any], words: str) -> None:
    assert words in text(View().take(event(kind, None, **fields)))


@pytest.mark.parametrize("kind", ["other", "response", "info", "mode", "config", "user", "something.new"])
def test_what_says_nothing_to_a_person_is_not_shown(kind: str) -> None:
    assert View().take(event(kind, update={"x": 1})) == []


def test_a_server_that_knows_no_compact_form_is_understood() -> None:
    view = View()
    view.take(event("tool_call", params={"toolCallId": "1", "title": "Read file", "status": "pending"}))
    lines = view.take(event("tool_update", params={"toolCallId": "1", "status": "completed"}))
    assert text(lines) == "✓ Read file\n"


def test_the_live_part_is_bounded() -> None:
    view = View()
    view.take(event("text", content="x" * 1_000_000))
    for number in range(50):
        view.take(update("tool_call", toolCallId=str(number), title="t" * 1000))
    view.take(event("text", content="y" * 100_000))
    lines = view.live_lines(80)
    assert len(lines) <= 3 * TAIL_LINES
    assert all(len("".join(words for _, words in line)) <= 110 for line in lines)


def test_a_plan_is_shown_with_what_is_done() -> None:
    view = View()
    view.take(update("plan", entries=[{"content": "read", "status": "completed"}, {"content": "write"}]))
    assert "✓ read\n  · write" in text(view.take(event("turn.ended", outcome="completed")))


def test_a_transcript() -> None:
    call = {"title": "Look", "status": "completed", "content": []}
    assert text(render.message({"role": "user", "content": "hi", "archived": True})) == "(archived)\n> hi\n"
    shown = text(render.message({"role": "assistant", "content": "**yes**", "tool_calls": [call]}))
    assert shown == "✓ Look\n**yes**\n\n"
    assert text(render.message({"role": "tool", "content": "out"})) == "tool: out\n"


def test_colours_are_left_out_when_nobody_wants_them() -> None:
    items: list[Item] = [[("bad", "no"), ("", " way")], Block("**bold**")]
    assert "\x1b" not in make_painter(colour=False).paint(items, 80)
    assert "\x1b[31mno" in make_painter(colour=True).paint(items, 80)


def test_rows_for_people_and_for_pipes() -> None:
    row = {
        "session_id": "0123456789ab", "state": "active", "running_turn": None, "updated_at": 1000,
        "agent": "demo", "turn_count": 1, "title": "a\ttitle\nin lines",
    }  # fmt: skip
    assert session_lines([row], colour=False, now=1000 + 7200) == [
        "01234567  open  2h  demo  1 turn  a title in lines"
    ]
    assert session_fields(row) == ["0123456789ab", "open", "1000", "demo", "1", "a title in lines"]
    assert align([], colour=True) == []
    assert [age(secs) for secs in (5, 61, 3600, 200_000)] == ["now", "1m", "1h", "2d"]
    assert [tokens(count) for count in (0, 999, 1234, 5_000_000)] == ["0", "999", "1.2k", "5.0M"]
    assert [money(cost) for cost in (None, 0.01234, 12.5)] == ["", "$0.0123", "$12.50"]
    assert one_line("a" * 50, 10) == "a" * 9 + "…"


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ([("dim", "the quick brown fox")], ["the quick", "brown fox"]),
        ([("good", "  ✓ "), ("", "quick brown")], ["  ✓ quick", "  brown"]),
        ([("bold", "/a   "), ("dim", "some words")], ["/a   some", "     words"]),
        ([("bold", "/longer   "), ("dim", "some")], ["/longer  ", "some"]),
        ([("", "the output of a program")], ["the output of a program"]),
        ([("", "  "), ("code", "x = a_long_line()")], ["  x = a_long_line()"]),
    ],
)
def test_a_line_of_ours_is_broken_between_words_and_code_is_not(line: Line, rows: list[str]) -> None:
    broken = wrap_line(line, 11)
    assert ["".join(part for _, part in row) for row in broken] == rows
    assert wrap_line(line, 0) == [line]


@given(st.text(alphabet="ab  ·漢", max_size=60), st.integers(4, 30))
def test_no_letter_and_no_style_is_lost_when_a_line_is_broken(words: str, width: int) -> None:
    rows = wrap_line([("dim", words), ("bad", words)], width)
    for style in ("dim", "bad"):
        shown = "".join(part for row in rows for at, part in row if at == style)
        assert shown.replace(" ", "") == words.replace(" ", "")


def test_code_has_the_colours_of_its_language() -> None:
    painter = make_painter(colour=True)
    shown = painter.paint([Code("def f():  # why", "python"), Code("plain", ""), Code("x", "no-such")], 20)
    assert "\x1b[" in shown.split("\n")[0]
    assert shown.split("\n")[1:3] == ["  plain", "  x"]


def test_a_prompt_says_where_it_came_from_and_a_long_one_is_cut() -> None:
    view = View(sent=["mine"])
    assert view.take(event("turn.queued", prompt="mine")) == []
    assert text(view.take(event("turn.queued", prompt="theirs"))) == (
        "> theirs\n  from another terminal or program\n"
    )
    assert text(view.take(event("turn.queued", prompt="mine", retry_of=1))) == "> mine\n  again\n"
    for lines in (render.MOST_PROMPT, render.MOST_PROMPT + 1):
        assert "more lines" not in text(render.prompt("x\n" * (lines - 1), most=render.MOST_PROMPT))
    cut = text(render.prompt("x\n" * (render.MOST_PROMPT + 1), most=render.MOST_PROMPT))
    assert cut.endswith("… 2 more lines\n")
