"""How an agent comes to life: the plan, and the judgement of what the agent says when it is there."""

from pathlib import Path

import pytest

from clawdforge.core.model import MessageRow, TurnRow
from clawdforge.core.rules import memory
from clawdforge.core.rules.opening import How, Opening, Remembered, plan_opening
from clawdforge.wire.turn import Outcome, TurnState
from tests.conformance.stores.samples import a_message, a_session, a_turn

SESSION = "s"
RUNNING = 9


def ran(index: int, prompt: str, outcome: Outcome = Outcome.COMPLETED, **fields: object) -> TurnRow:
    given = {"state": TurnState.ENDED, "started_at": 100 + index, "first_seq": 10 * index, "context": 1}
    return a_turn(SESSION, index, prompt=prompt, outcome=outcome, **{**given, **fields})


def opening(plan: str, *turns: TurnRow, **fields: object) -> Opening:
    given = {"session_id": SESSION, "context_plan": plan, "agent_session_id": "mine"}
    return plan_opening(a_session(**{**given, **fields}), RUNNING, turns)


@pytest.mark.parametrize(
    ("plan", "load", "copy_of"),
    [
        (memory.NEW, None, None),
        (memory.TRANSCRIPT, None, None),
        (memory.LOAD, "mine", None),
        (memory.restore_plan(4), None, 4),
        (memory.restore_plan(0), None, 0),
    ],
)
def test_the_plan_says_what_is_loaded_or_put_back(plan: str, load: str | None, copy_of: int | None) -> None:
    made = opening(plan)
    assert (made.load, made.copy_of, made.files) == (load, copy_of, None)


def test_a_load_without_a_session_of_the_agents_is_a_new_one() -> None:
    assert opening(memory.LOAD, agent_session_id=None).load is None


def test_an_undo_of_files_that_was_cut_short_is_finished() -> None:
    assert opening(memory.LOAD, files_plan="tree").files == "tree"


def test_the_counter_is_that_of_the_last_turn_that_still_counts() -> None:
    turns = [
        ran(1, "one", usage={"counter": {"n": 1}}),
        ran(2, "two", usage={"counter": {"n": 2}}),
        ran(3, "three", usage={"input_tokens": 5}),
        ran(4, "four", usage={"counter": {"n": 4}}, cut=True),
    ]
    assert opening(memory.LOAD, *turns).counter == {"n": 2}
    assert opening(memory.LOAD).counter is None


ONE, TWO = ran(1, "one"), ran(2, "two")
CUT = ran(3, "three", cut=True)


@pytest.mark.parametrize(
    ("how", "remembered", "plan", "turns", "trusted"),
    [
        ("new", [], memory.LOAD, (ONE,), True),
        ("resumed", None, memory.LOAD, (ONE,), True),
        ("loaded", ["[Attached files]\n- a\n\none"], memory.LOAD, (ONE,), True),
        ("loaded", ["one", "two"], memory.LOAD, (ONE, TWO), True),
        ("loaded", ["one"], memory.LOAD, (ONE, TWO), False),
        ("loaded", [], memory.LOAD, (ONE,), False),
        ("loaded", [], memory.LOAD, (), True),
        ("loaded", [], memory.LOAD, (ran(1, "one", Outcome.FAILED),), True),
        ("loaded", [], memory.LOAD, (ran(1, "one", context=2),), True),
        ("loaded", ["two", "one"], memory.LOAD, (TWO, ran(1, "one", first_seq=99)), True),
        ("loaded", ["one", "three"], memory.LOAD, (ONE, CUT), False),
        ("loaded", ["one", "three"], memory.LOAD, (ONE, CUT, ran(4, "three")), True),
        ("loaded", ["one", "two"], memory.restore_plan(1), (ONE, TWO), True),
        ("loaded", ["two"], memory.restore_plan(1), (ONE, TWO), False),
        ("loaded", ["one", "three"], memory.restore_plan(1), (ONE, CUT), False),
    ],
)
def test_an_agent_is_trusted_with_the_memory_that_it_should_have(
    how: How, remembered: Remembered, plan: str, turns: tuple[TurnRow, ...], trusted: bool
) -> None:
    assert opening(plan, *turns).can_trust(how, remembered) is trusted


HALF = ran(3, "half", Outcome.INTERRUPTED)


@pytest.mark.parametrize(
    ("how", "remembered", "turns", "unheard"),
    [
        ("new", [], (ONE,), None),
        ("loaded", ["one"], (ONE,), set()),
        ("resumed", None, (ONE, HALF), set()),
        ("loaded", ["one", "two"], (ONE, TWO, HALF), {3}),
        ("loaded", ["one", "two", "half"], (ONE, TWO, HALF), set()),
        ("loaded", ["one"], (ONE, ran(2, "half", Outcome.INTERRUPTED), HALF), {2, 3}),
        ("loaded", ["half"], (ran(1, "half"), HALF), {3}),
        ("loaded", ["half", "half"], (ran(1, "half"), HALF), set()),
        ("loaded", ["one"], (ONE, ran(3, "half", Outcome.INTERRUPTED, cut=True)), set()),
        ("loaded", ["one"], (ONE, HALF, ran(4, "after")), set()),
        ("loaded", ["one"], (ONE, ran(RUNNING, "now", Outcome.INTERRUPTED)), set()),
        ("loaded", ["one"], (ONE, a_turn(SESSION, 4)), set()),
    ],
)
def test_what_was_cut_off_and_not_heard_is_told(
    how: How, remembered: Remembered, turns: tuple[TurnRow, ...], unheard: set[int] | None
) -> None:
    assert opening(memory.LOAD, *turns).find_unheard(how, remembered) == unheard


@pytest.mark.parametrize(
    ("plan", "how", "number"),
    [
        (memory.LOAD, "loaded", 3),
        (memory.LOAD, "resumed", 3),
        (memory.LOAD, "new", 4),
        (memory.NEW, "new", 3),
        (memory.TRANSCRIPT, "new", 3),
        (memory.restore_plan(2), "loaded", 3),
        (memory.restore_plan(2), "new", 3),
    ],
)
def test_only_a_load_that_failed_makes_a_context_that_nobody_planned(
    plan: str, how: How, number: int
) -> None:
    assert opening(plan, context=3).number_context(how) == number


@pytest.mark.parametrize(
    ("plan", "how", "told", "name"),
    [
        (memory.NEW, "new", "", "new"),
        (memory.LOAD, "new", "words", "transcript"),
        (memory.restore_plan(2), "new", "words", "transcript"),
        (memory.restore_plan(0), "new", "", "new"),
        (memory.LOAD, "loaded", "", "loaded"),
        (memory.LOAD, "loaded", "what was cut off", "loaded"),
        (memory.LOAD, "resumed", "", "resumed"),
        (memory.restore_plan(2), "loaded", "", "restored"),
        (memory.restore_plan(2), "resumed", "", "restored"),
    ],
)
def test_the_event_calls_the_start_by_its_name(plan: str, how: How, told: str, name: str) -> None:
    assert opening(plan).name_start(how, told) == name


def test_only_an_agent_that_remembers_nothing_gets_its_instructions() -> None:
    made = opening(memory.LOAD, instructions="Be kind.")
    assert made.write_preface("loaded", "") == ""
    assert made.write_preface("new", "") == "[Instructions]\nBe kind."
    conversation = "[Conversation so far]\nUser: hi\n[End of the conversation so far]"
    assert made.write_preface("loaded", "User: hi") == conversation
    assert made.write_preface("new", "User: hi") == f"[Instructions]\nBe kind.\n\n{conversation}"


def said(role: str, content: str, turn: int | None) -> MessageRow:
    return a_message(SESSION, content, role=role, turn=turn)


def test_a_transcript_holds_what_belongs_to_turns_and_not_the_running_one() -> None:
    messages = [
        said("user", "one", 1),
        said("assistant", "", 1),
        said("assistant", "ONE", 1),
        said("user", "only posted", None),
        said("user", "two", 2),
        said("user", "now", RUNNING),
    ]
    assert memory.write_transcript(messages, RUNNING) == "User: one\n\nAssistant: ONE\n\nUser: two"
    assert memory.write_transcript(messages, RUNNING, {2}) == "User: two"


def test_a_long_transcript_loses_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_TRANSCRIPT_CHARS", 20)
    messages = [said("user", "x" * 30, 1), said("user", "last", 2)]
    assert memory.write_transcript(messages, RUNNING) == "(what came before is left out)\n\nUser: last"


def test_files_are_named_before_the_prompt() -> None:
    assert memory.name_files("go", []) == "go"
    named = memory.name_files("go", [Path("/h/a"), Path("/h/b")])
    assert named == "[Attached files]\n- /h/a\n- /h/b\n\ngo"
