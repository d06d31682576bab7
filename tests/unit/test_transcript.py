"""What an agent is told of a conversation that it does not know: as much as fits, and how turns ended."""

from typing import Any

import pytest

from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.rules.projection import MAX_TOOL_CHARS, read_output
from clawdforge.core.rules.transcript import NAMED_TOOLS, tell_last_words, write_transcript
from clawdforge.wire.turn import Outcome, TurnState
from tests.conformance.stores.samples import a_message, a_turn

SESSION = "s"
RUNNING = 9


def said(role: str, content: str, turn: int | None, **more: Any) -> MessageRow:
    return a_message(SESSION, content, role=role, turn=turn, **more)


def ran(index: int, outcome: Outcome = Outcome.COMPLETED, **more: Any) -> TurnRow:
    return a_turn(SESSION, index, state=TurnState.ENDED, started_at=1, outcome=outcome, **more)


def told(messages: list[MessageRow], *turns: TurnRow, **more: Any) -> str:
    known = {turn.turn_index: turn for turn in turns}
    return write_transcript(messages, RUNNING, known.get, **more)


def call(title: str, result: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "toolCallId": title,
        "title": title,
        "kind": "execute",
        "status": "completed",
        "rawOutput": result,
        **more,
    }


def test_it_holds_what_belongs_to_turns_and_not_the_running_one() -> None:
    messages = [
        said("user", "one", 1),
        said("assistant", "", 1),
        said("assistant", "ONE", 1),
        said("user", "only posted", None),
        said("user", "two", 2),
        said("user", "now", RUNNING),
    ]
    assert told(messages) == "User: one\n\nAssistant: ONE\n\nUser: two"
    assert told(messages, only={2}) == "User: two"


def test_a_long_one_loses_its_beginning_and_says_how_much() -> None:
    messages = [said("user", "x" * 30, 1), said("assistant", "y", 1), said("user", "last", 2)]
    text = told(messages, room=20)
    assert text == "(what came before is left out: 2 messages)\n\nUser: last"
    assert told([*messages[:2], said("user", "z" * 4, 2)], room=23).startswith(
        "(what came before is left out: 1 m"
    )


def test_a_last_message_that_does_not_fit_loses_its_middle() -> None:
    text = told([said("user", "a" * 600 + "b" * 600, 1)], room=1000)
    assert text.startswith("User: aaa")
    assert text.endswith("bbb")
    assert "characters are left out" in text
    assert len(text) <= 1000


def test_calls_of_tools_are_told_with_what_they_were_given_and_gave() -> None:
    answer = said("assistant", "Done.", 1, tool_calls=(call("ls", "a.txt", rawInput={"command": "ls"}),))
    assert told([answer]) == (
        '[Tool: ls, execute, completed]\nGiven: {"command":"ls"}\nResult: a.txt\n\nAssistant: Done.'
    )


def test_the_newest_calls_are_whole_and_the_oldest_only_named() -> None:
    calls = tuple(call(f"tool-{n}", "r" * 400) for n in range(NAMED_TOOLS + 10))
    text = told([said("assistant", "Done.", 1, tool_calls=calls)], room=4000)
    assert text.count("Result:") == 4
    assert f"Result: {'r' * 400}\n\nAssistant: Done." in text
    named = text.split("\n")[0]
    assert named.startswith("[Tools, without what they were given and gave: 6 and then tool-6, execute")
    assert "tool-25" in named
    assert "tool-26" not in named
    assert len(text) < 4000


def test_a_plan_is_told_with_how_far_it_is() -> None:
    plan = ({"content": "read", "status": "completed"}, {"content": "write"}, "odd")
    assert told([said("assistant", "", 1, plan=plan)]) == "[Plan]\n- read (completed)\n- write (pending)"


@pytest.mark.parametrize(
    ("turn", "mark"),
    [
        (ran(1), ""),
        (ran(1, Outcome.CANCELLED), "\n\n(this turn was cancelled here)"),
        (ran(1, Outcome.INTERRUPTED), "\n\n(the answer was cut off here)"),
        (ran(1, Outcome.TIMED_OUT), "\n\n(the answer was cut off here, because it took too long)"),
        (ran(1, Outcome.FAILED, error="claude:\nboom"), "\n\n(the turn failed here: claude: boom)"),
        (ran(1, Outcome.FAILED), "\n\n(the turn failed here)"),
        (
            ran(1, stop_reason="max_tokens"),
            "\n\n(the answer ends here, because the model may not say more at once)",
        ),
    ],
)
def test_a_turn_that_did_not_run_its_course_is_marked_once_and_at_its_end(turn: TurnRow, mark: str) -> None:
    messages = [said("user", "go", 1), said("assistant", "I was say", 1)]
    assert told(messages, turn) == f"User: go\n\nAssistant: I was say{mark}"
    assert told(messages[:1], turn) == f"User: go{mark}"


def test_a_prompt_that_nobody_heard_is_not_told() -> None:
    messages = [said("user", "one", 1), said("user", "two", 2)]
    assert told(messages, ran(1, Outcome.FAILED, error_extra={"heard": False}), ran(2)) == "User: two"


def test_what_was_not_kept_of_an_answer_is_said() -> None:
    assert told([said("assistant", "a", 1, truncated=True)]).endswith("(a part of this answer was not kept)")


def test_last_words_are_those_of_the_turn_and_end_where_it_ended() -> None:
    turn = ran(2, Outcome.INTERRUPTED)
    messages = [said("assistant", "old", 1), said("user", "go", 2), said("assistant", "I was say", 2)]
    assert tell_last_words(messages, turn) == "Assistant: I was say"
    assert tell_last_words(messages, turn, room=3) == "(…)\nsay"
    assert tell_last_words(messages[:2], turn) == ""


def test_the_output_of_a_tool_is_read_from_what_is_shown_to_people() -> None:
    text = {"type": "content", "content": {"type": "text", "text": "a.txt"}}
    assert (
        read_output([text, {"type": "diff", "path": "/w/b", "newText": "x"}, 7, {}]) == "a.txt\nchanged /w/b"
    )
    assert read_output("no list") == ""
    long = {"type": "content", "content": {"type": "text", "text": "x" * MAX_TOOL_CHARS}}
    assert len(read_output([long, long])) == MAX_TOOL_CHARS
