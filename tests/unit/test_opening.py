"""How an agent comes to life: the plan, and the judgement of what the agent says when it is there."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.ports import Store, Tx
from clawdforge.core.rules import memory
from clawdforge.core.rules.opening import How, Opening, Remembered, describe_context, plan_opening
from clawdforge.stores import open_store
from clawdforge.wire.turn import Outcome, TurnState
from tests.conformance.stores.samples import APP, a_message, a_session, a_turn

SESSION = "s"
RUNNING = 9


def ran(index: int, prompt: str, outcome: Outcome = Outcome.COMPLETED, **fields: Any) -> TurnRow:
    given: dict[str, Any] = {
        "state": TurnState.ENDED,
        "started_at": 100 + index,
        "first_seq": 10 * index,
        "context": 1,
    }
    given |= {"session_id": SESSION, "prompt": prompt, "outcome": outcome}
    where = {**given, **fields}
    return a_turn(where.pop("session_id"), index, **where)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


async def opening(store: Store, plan: str, *turns: TurnRow, **fields: object) -> Opening:
    given = {"session_id": SESSION, "context_plan": plan, "agent_session_id": "mine", "last_turn": RUNNING}
    session = a_session(**{**given, **fields})

    def work(tx: Tx) -> Opening:
        if tx.session(SESSION) is None:
            tx.add_session(session)
        for turn in turns:
            tx.add_turn(turn)
        return plan_opening(tx, session, a_turn(SESSION, RUNNING))

    return await store.write(APP, work)


@pytest.mark.parametrize(
    ("plan", "load", "copy_of"),
    [
        (memory.NEW, None, None),
        (memory.TRANSCRIPT, None, None),
        (memory.LOAD, "mine", None),
        (memory.plan_restore(4), None, 4),
        (memory.plan_restore(0), None, 0),
    ],
)
async def test_the_plan_says_what_is_loaded_or_put_back(
    store: Store, plan: str, load: str | None, copy_of: int | None
) -> None:
    made = await opening(store, plan)
    assert (made.load, made.copy_of, made.files) == (load, copy_of, None)


async def test_a_load_without_a_session_of_the_agents_is_a_new_one(store: Store) -> None:
    assert (await opening(store, memory.LOAD, agent_session_id=None)).load is None


async def test_an_undo_of_files_that_was_cut_short_is_finished(store: Store) -> None:
    assert (await opening(store, memory.LOAD, files_plan="tree")).files == "tree"


async def test_the_counter_is_that_of_the_last_turn_that_still_counts(store: Store) -> None:
    turns = [
        ran(1, "one", usage={"counter": {"n": 1}}),
        ran(2, "two", usage={"counter": {"n": 2}}),
        ran(3, "three", usage={"input_tokens": 5}),
        ran(4, "four", usage={"counter": {"n": 4}}, cut=True),
    ]
    assert (await opening(store, memory.LOAD)).counter is None
    assert (await opening(store, memory.LOAD, *turns)).counter == {"n": 2}


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
        ("loaded", ["one", "two"], memory.plan_restore(1), (ONE, TWO), True),
        ("loaded", ["two"], memory.plan_restore(1), (ONE, TWO), False),
        ("loaded", ["one", "three"], memory.plan_restore(1), (ONE, CUT), False),
    ],
)
async def test_an_agent_is_trusted_with_the_memory_that_it_should_have(
    store: Store, how: How, remembered: Remembered, plan: str, turns: tuple[TurnRow, ...], trusted: bool
) -> None:
    """X-21: only what our own log tells as well is believed."""
    assert (await opening(store, plan, *turns)).can_trust(how, remembered) is trusted


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
async def test_what_was_cut_off_and_not_heard_is_told(
    store: Store, how: How, remembered: Remembered, turns: tuple[TurnRow, ...], unheard: set[int] | None
) -> None:
    assert (await opening(store, memory.LOAD, *turns)).find_unheard(how, remembered) == unheard


@pytest.mark.parametrize(
    ("plan", "how", "number"),
    [
        (memory.LOAD, "loaded", 3),
        (memory.LOAD, "resumed", 3),
        (memory.LOAD, "new", 4),
        (memory.NEW, "new", 3),
        (memory.TRANSCRIPT, "new", 3),
        (memory.plan_restore(2), "loaded", 3),
        (memory.plan_restore(2), "new", 3),
    ],
)
async def test_only_a_load_that_failed_makes_a_context_that_nobody_planned(
    store: Store, plan: str, how: How, number: int
) -> None:
    assert (await opening(store, plan, context=3)).number_context(how) == number


@pytest.mark.parametrize(
    ("plan", "how", "told", "name"),
    [
        (memory.NEW, "new", "", "new"),
        (memory.LOAD, "new", "words", "transcript"),
        (memory.plan_restore(2), "new", "words", "transcript"),
        (memory.plan_restore(0), "new", "", "new"),
        (memory.LOAD, "loaded", "", "loaded"),
        (memory.LOAD, "loaded", "what was cut off", "loaded"),
        (memory.LOAD, "resumed", "", "resumed"),
        (memory.plan_restore(2), "loaded", "", "restored"),
        (memory.plan_restore(2), "resumed", "", "restored"),
    ],
)
async def test_the_event_calls_the_start_by_its_name(
    store: Store, plan: str, how: How, told: str, name: str
) -> None:
    assert (await opening(store, plan)).name_start(how, told) == name


async def test_only_an_agent_that_remembers_nothing_gets_its_instructions(store: Store) -> None:
    made = await opening(store, memory.LOAD, instructions="Be kind.")
    assert made.write_preface("loaded", "") == ""
    assert made.write_preface("new", "") == "[Instructions]\nBe kind."
    conversation = "[Conversation so far]\nUser: hi\n[End of the conversation so far]"
    assert made.write_preface("loaded", "User: hi") == conversation
    assert made.write_preface("new", "User: hi") == f"[Instructions]\nBe kind.\n\n{conversation}"


def said(role: str, content: str, turn: int | None) -> MessageRow:
    return a_message(SESSION, content, role=role, turn=turn)


def test_files_are_named_before_the_prompt() -> None:
    """S0-112."""
    assert memory.name_files("go", []) == "go"
    named = memory.name_files("go", [Path("/h/a"), Path("/h/b")])
    assert named == "[Attached files]\n- /h/a\n- /h/b\n\ngo"


async def test_what_has_begun_is_described_with_what_must_be_told(store: Store) -> None:
    made = await opening(store, memory.LOAD, ONE, HALF, context=2, instructions="Be kind.")

    def work(tx: Tx) -> None:
        for message in (said("user", "one", 1), said("user", "half", 3), said("user", "now", RUNNING)):
            tx.add_message(message)

    await store.write(APP, work)
    loaded = await store.read(APP, lambda view: describe_context(view, made, "loaded", ["one", "half"]))
    assert (loaded.number, loaded.how, loaded.preface) == (2, "loaded", "")
    behind = await store.read(APP, lambda view: describe_context(view, made, "loaded", ["one"]))
    assert (behind.number, behind.how) == (2, "loaded")
    assert "User: half" in behind.preface
    assert "User: one" not in behind.preface
    new = await store.read(APP, lambda view: describe_context(view, made, "new", []))
    assert (new.number, new.how) == (3, "transcript")
    assert new.preface.startswith("[Instructions]\nBe kind.")
    assert "User: one\n\nUser: half\n\n(the answer was cut off here)\n[End" in new.preface


async def test_an_agent_that_knows_only_the_prompt_is_told_what_was_kept_of_its_answer(store: Store) -> None:
    made = await opening(store, memory.LOAD, ONE, HALF)

    def work(tx: Tx) -> None:
        for message in (said("user", "half", 3), said("assistant", "I was say", 3)):
            tx.add_message(message)

    await store.write(APP, work)

    async def preface(*, answered: str | None, remembered: Remembered = ("one", "half")) -> str:
        told = await store.read(
            APP, lambda view: describe_context(view, made, "loaded", remembered, answered)
        )
        return told.preface

    told = await preface(answered="")
    assert "Your last answer was cut off" in told
    assert "Assistant: I was say\n[End" in told
    assert await preface(answered=None) == told
    assert await preface(answered="Assistant: I was say") == ""
    both = await preface(answered="", remembered=["one"])
    assert both.count("I was say") == 1, "the whole turn is told, and not its end once more"


async def test_a_fork_looks_for_a_copy_where_it_has_the_turn_from(store: Store) -> None:
    grandparent, parent = a_session(), a_session()

    def work(tx: Tx) -> None:
        tx.add_session(grandparent)
        tx.add_session(replace(parent, forked_from=grandparent.session_id))
        tx.add_turn(ran(1, "one", session_id=parent.session_id, first_seq=None))
        tx.add_turn(ran(2, "two", session_id=parent.session_id))

    await store.write(APP, work)
    copied, own = ran(1, "one", first_seq=None), ran(3, "three")
    forked = {"forked_from": parent.session_id}
    far = await opening(store, memory.plan_restore(1), copied, ran(2, "two", first_seq=None), own, **forked)
    assert far.sources == [parent.session_id, grandparent.session_id]
    assert (await opening(store, memory.plan_restore(2), **forked)).sources == [parent.session_id]
    assert (await opening(store, memory.plan_restore(3), **forked)).sources == []
    assert (await opening(store, memory.plan_restore(0), **forked)).sources == ()
    assert (await opening(store, memory.LOAD, **forked)).sources == ()


FIRST = ran(2, "go on", Outcome.INTERRUPTED, context=3)


@pytest.mark.parametrize(
    ("remembered", "turns", "trusted"),
    [
        ([], (FIRST,), False),
        (None, (FIRST,), False),
        (["go on"], (FIRST,), False),
        (["[Conversation so far]\nUser: brought\n[End]\n\ngo on"], (FIRST,), True),
        (["brought", "go on"], (FIRST,), True),
        ([], (), True),
        (None, (), True),
        (["later"], (FIRST, ran(3, "later", context=3)), True),
        (None, (FIRST, ran(3, "later", context=3)), True),
        ([], (replace(FIRST, outcome=Outcome.CANCELLED),), False),
        ([], (replace(FIRST, cut=True),), True),
        ([], (replace(FIRST, context=2),), True),
    ],
)
async def test_an_agent_that_has_completed_nothing_must_know_what_it_was_told(
    store: Store, remembered: Remembered, turns: tuple[TurnRow, ...], trusted: bool
) -> None:
    def work(tx: Tx) -> None:
        tx.add_session(a_session(session_id=SESSION))
        tx.add_message(said("user", "brought", 0))
        tx.add_message(said("user", "go on", 2))

    await store.write(APP, work)
    made = await opening(store, memory.LOAD, *turns, context=3)
    assert made.can_trust("loaded", remembered) is trusted
