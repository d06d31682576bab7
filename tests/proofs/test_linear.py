"""The checker of linearizability: it knows good histories from bad ones, and gives up rather than guess."""

from typing import Any

import pytest

from proofs.linear.checker import NEVER, Checker, Op, Undecided
from proofs.linear.clients import write_prompt
from proofs.linear.explain import describe, find_fault
from proofs.linear.model import Session


class Tape:
    """A history, written down by hand: `at` is when an operation was asked and answered."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def add(self, kind: str, at: tuple[int, int | None], answer: Any = None, **given: Any) -> None:
        asked, answered = at
        number = len(self.ops) + 1
        self.ops.append(Op(number, f"c{number}", kind, asked, given, answered, answer))

    def submit(self, key: str, at: tuple[int, int | None], answer: Any, script: str = "hang") -> None:
        prompt, whole = write_prompt(script, key)
        given = {"key": key, "prompt": prompt, "script": script, "whole": whole, "if_busy": "queue"}
        self.add("submit", at, answer, **given)

    def lose(self, until: int = NEVER) -> None:
        """Nobody was answered the last operation, which took effect before this moment or never."""
        last = self.ops.pop()
        self.ops.append(Op(last.number, last.client, last.kind, last.invoked, last.given, until=until))

    def crash(self, at: int, until: int) -> None:
        self.ops.append(Op(len(self.ops) + 1, "server", "crash", at, {}, until=until, must=True))

    def turns(self, at: tuple[int, int], *shown: tuple[str, str, str, str | None]) -> None:
        """What a read showed: key, script, state and outcome of each turn."""
        rows = tuple((write_prompt(script, key)[0], state, end, False) for key, script, state, end in shown)
        self.add("turns", at, rows)

    @property
    def faulty(self) -> str:
        """The kind of the operation whose answer no order explains."""
        fault = find_fault(self.ops)
        return fault.op.kind if fault else ""


@pytest.fixture
def tape() -> Tape:
    return Tape()


HANGS = ("a", "hang", "running", None)


def test_a_read_during_a_submit_may_see_it_or_not(tape: Tape) -> None:
    tape.submit("a", (1, 9), ("accepted", 1, "queued", False, 2))
    tape.turns((2, 3))
    tape.turns((4, 5), HANGS)
    tape.turns((6, 7), HANGS)
    assert tape.faulty == ""


def test_a_read_that_goes_back_in_time(tape: Tape) -> None:
    tape.submit("a", (1, 9), ("accepted", 1, "queued", False, 2))
    tape.turns((4, 5), HANGS)
    tape.turns((6, 7))
    assert tape.faulty == "turns"


def test_a_head_that_goes_back_in_time(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.add("session", (3, 4), (1, 0, 1, 1, 7))
    tape.add("session", (5, 6), (1, 0, 1, 1, 6))
    assert tape.faulty == "session"


def test_a_stale_read(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.turns((3, 4))
    assert tape.faulty == "turns"


def test_a_torn_read(tape: Tape) -> None:
    """The turn is counted as begun, but neither runs nor has ended."""
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.add("session", (3, 4), (None, 0, 1, 1, 3))
    assert tape.faulty == "session"


def test_a_lost_cancel(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.add("cancel", (3, 4), ("cancelled", 1), queued=False)
    assert tape.faulty == ""
    tape.turns((5, 6), HANGS)
    assert tape.faulty == "turns"


def test_one_turn_is_ended_by_one_cancel(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.add("cancel", (3, 8), ("cancelled", 1), queued=False)
    tape.add("cancel", (4, 7), ("cancelled", 0), queued=False)
    assert tape.faulty == ""
    tape.add("cancel", (5, 6), ("cancelled", 1), queued=False)
    assert tape.faulty == "cancel"


@pytest.mark.parametrize("counted", [2, 3, 4])
def test_a_cancel_empties_the_queue_and_then_ends_what_runs(tape: Tape, counted: int) -> None:
    """A prompt that comes in between may be what runs, and is counted then; but there are not four."""
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2), "echo")
    tape.submit("b", (3, 4), ("accepted", 2, "queued", False, 4))
    tape.add("cancel", (5, 9), ("cancelled", counted), queued=True)
    tape.submit("c", (6, 7), ("accepted", 3, "queued", False, 9))
    assert tape.faulty == ("cancel" if counted == 4 else "")


def ask(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2), "ask")
    tape.add("permissions", (3, 4), ((1, "pending", None),))


def test_a_decision_that_two_win(tape: Tape) -> None:
    ask(tape)
    tape.add("decide", (5, 9), ("decided", "reject"), turn=1, decision="reject")
    tape.add("decide", (6, 8), ("refused", "already_decided"), turn=1, decision="allow_once")
    assert tape.faulty == ""
    tape.add("decide", (7, 10), ("decided", "allow_always"), turn=1, decision="allow_always")
    assert tape.faulty == "decide"


def test_an_agent_that_hears_another_decision(tape: Tape) -> None:
    ask(tape)
    tape.add("decide", (5, 6), ("decided", "reject"), turn=1, decision="reject")
    prompt = (1, "user", "ask a", False)
    tape.add("messages", (7, 8), (prompt, (1, "assistant", "permission: reject_once", False)))
    assert tape.faulty == ""
    tape.ops.pop()
    tape.add("messages", (7, 8), (prompt, (1, "assistant", "permission: allow_once", False)))
    assert tape.faulty == "messages"


def test_an_undo_that_is_not_seen_later(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2), "echo")
    tape.add("undo", (3, 4), ("cut", (1,), 7), turns=1)
    assert tape.faulty == ""
    tape.turns((5, 6), ("a", "echo", "ended", "completed"))
    assert tape.faulty == "turns"


def test_an_undo_while_a_turn_runs(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.add("undo", (3, 4), ("cut", (1,), 7), turns=1)
    assert tape.faulty == "undo"


def test_a_redo_brings_back_what_the_last_undo_took_and_only_once(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2), "echo")
    tape.add("undo", (3, 4), ("cut", (1,), 7), turns=1)
    tape.add("redo", (5, 6), ("restored", (1,), 8))
    assert tape.faulty == ""
    tape.add("redo", (7, 8), ("restored", (1,), 9))
    assert tape.faulty == "redo"


def test_a_submit_that_ran_twice(tape: Tape) -> None:
    tape.submit("a", (1, 9), ("accepted", 1, "queued", False, 2))
    tape.submit("a", (2, 8), ("accepted", 1, "running", True, 3))
    assert tape.faulty == ""
    tape.submit("a", (3, 7), ("accepted", 2, "queued", False, 4))
    assert tape.faulty == "submit"


def test_a_prompt_that_was_taken_out_and_heard_all_the_same(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.submit("b", (3, 4), ("accepted", 2, "queued", False, 4), "echo")
    tape.add("withdraw", (5, 6), ("cancelled", 1), turn=2)
    tape.add("cancel", (7, 8), ("cancelled", 1), queued=False)
    tape.add("heard", (9, 10), (1, 0))
    assert tape.faulty == ""
    tape.add("heard", (11, 12), (1, 1))
    assert tape.faulty == "heard"


def test_what_was_cut_off_took_effect_before_the_end_or_never(tape: Tape) -> None:
    tape.submit("a", (1, None), None)
    tape.lose(until=3)
    tape.turns((4, 5))
    tape.turns((6, 7))
    assert tape.faulty == ""
    tape.turns((8, 9), HANGS)
    assert tape.faulty == "turns"


def test_what_nobody_waited_for_may_take_effect_late(tape: Tape) -> None:
    tape.submit("a", (1, None), None)
    tape.turns((4, 5))
    tape.turns((8, 9), HANGS)
    assert tape.faulty == ""


def test_a_cancel_that_was_cut_off_may_be_done_in_part(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.submit("b", (3, 4), ("accepted", 2, "queued", False, 4))
    tape.add("cancel", (5, None), queued=True)
    tape.lose(until=6)
    tape.turns((7, 8), HANGS, ("b", "hang", "ended", "cancelled"))
    assert tape.faulty == ""


def test_a_crash_ends_what_ran_and_nothing_else(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.submit("b", (3, 4), ("accepted", 2, "queued", False, 4))
    tape.crash(5, 6)
    tape.turns((7, 8), ("a", "hang", "ended", "interrupted"), ("b", "hang", "running", None))
    assert tape.faulty == ""
    tape.crash(9, 10)
    tape.turns((11, 12), ("a", "hang", "ended", "interrupted"), ("b", "hang", "running", None))
    assert tape.faulty == "turns"


def test_an_acknowledged_prompt_that_a_crash_took(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    tape.crash(3, 4)
    tape.turns((5, 6))
    assert tape.faulty == "turns"


def test_a_history_that_is_too_hard_is_not_called_good(tape: Tape) -> None:
    for number in range(8):
        tape.submit(f"k{number}", (1 + number, None), None)
    tape.add("session", (20, 21), (None, 0, 0, 0, 1))
    assert find_fault(tape.ops) is None
    tape.add("session", (22, 23), (8, 0, 8, 8, 99))
    with pytest.raises(Undecided):
        Checker(Session(), tape.ops, most=1000).holds()


def test_a_fault_is_made_smaller_and_told(tape: Tape) -> None:
    tape.submit("a", (1, 2), ("accepted", 1, "queued", False, 2))
    for at in range(3, 23, 2):
        tape.turns((at, at + 1), HANGS)
    tape.add("cancel", (23, 24), ("cancelled", 1), queued=False)
    tape.add("redo", (25, 26), ("refused", "nothing_to_redo"))
    tape.turns((27, 28), HANGS)
    tape.turns((29, 30), HANGS)
    fault = find_fault(tape.ops)
    assert fault is not None
    assert [op.kind for op in fault.ops] == ["submit", "cancel", "turns"]
    words = describe("s", fault)
    assert "no order explains the answer of c14 turns()" in words
    assert "1 cancelled (hang)" in words
