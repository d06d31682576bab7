"""Where the history that a caller sends and the one that a session has part."""

from collections.abc import Collection
from typing import Any

import pytest

from clawdforge.core.models.rows import MessageRow
from clawdforge.http.dialects.openai import agreement
from clawdforge.http.dialects.openai.agreement import (
    Agreement,
    Comparison,
    agrees_after,
    agrees_on_instructions,
    list_exchanges,
)
from clawdforge.http.dialects.openai.asked import Said
from clawdforge.wire.message import Role


def rows(*lines: str) -> list[MessageRow]:
    """`1 user hello` is what somebody said in turn 1."""
    found = []
    for seq, line in enumerate(lines, 1):
        turn, role, text = line.split(" ", 2)
        found.append(MessageRow(session_id="s", seq=seq, role=role, content=text, ts=1, turn=int(turn)))
    return found


def said(*lines: str) -> list[Said]:
    return [Said(Role(role), text) for role, _, text in (line.partition(" ") for line in lines)]


Session = tuple[list[MessageRow], Collection[int]]
"""What was said, and the turns that failed."""


def compare(ours: Session, sent: list[Said]) -> Agreement:
    """However much of the session comes at a time."""
    kept, failed = ours
    found = []
    for size in (max(len(kept), 1), 2, 1):
        comparison = Comparison(failed, sent)
        pages = (kept[first : first + size] for first in range(0, len(kept), size))
        all(map(comparison.feed, pages))
        found.append(comparison.end())
    assert found == [found[0]] * 3
    return found[0]


OURS: Session = (rows("1 user a", "1 assistant b c", "2 user d", "2 assistant e f"), ())


def test_the_same_history_agrees_whatever_its_white_space() -> None:
    assert compare(OURS, said("user a", "assistant  b\n\nc", "user d", "assistant ef")).whole
    assert compare(([], ()), []).whole


def test_a_history_that_ends_earlier_parts_after_a_turn() -> None:
    assert compare(OURS, said("user a", "assistant b c")) == Agreement(whole=False, after=1)
    assert compare(OURS, []) == Agreement(whole=False, after=0)


def test_many_equal_prompts_that_failed_are_not_each_compared_with_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count, looks = 300, 0
    is_same = agreement._is_same

    def look(*args: Any, **more: Any) -> bool:
        nonlocal looks
        looks += 1
        return is_same(*args, **more)

    monkeypatch.setattr(agreement, "_is_same", look)
    turns = range(1, count + 1)
    ours = rows(*(f"{turn} user a" for turn in turns), "999 user z", "999 assistant y"), turns
    ends = ["user z", "assistant y"]
    assert compare(ours, said(*["user a"] * count, *ends)).whole
    assert compare(ours, said(*ends)).whole
    assert not compare(ours, said(*["user a"] * (count + 1), *ends)).whole
    assert looks <= 3 * 3 * (count + 1) * (agreement.MOST_PLACES + 1)


def test_other_words_part_before_any_turn() -> None:
    for sent in (["user x"], ["user a", "assistant x", "user d"], ["user a"], ["assistant a"]):
        assert compare(OURS, said(*sent)) == Agreement(whole=False, after=None), sent
    longer = said("user a", "assistant b c", "user d", "assistant e f", "user g")
    assert not compare(OURS, longer).whole


def test_only_the_last_answer_may_be_cut_short() -> None:
    assert compare(OURS, said("user a", "assistant b c", "user d", "assistant e")).whole
    assert not compare(OURS, said("user a", "assistant b", "user d", "assistant e f")).whole
    assert not compare(OURS, said("user a", "assistant b c", "user", "assistant e f")).whole


def test_a_turn_that_failed_may_be_missing_or_known() -> None:
    ours = rows("1 user a", "1 assistant half", "2 user a", "2 assistant b", "3 user c"), {1}
    assert compare(ours, said("user a", "assistant b")).whole
    assert compare(ours, said("user a", "user a", "assistant b")).whole
    assert compare(ours, said("user a", "assistant half", "user a", "assistant b", "user c")).whole
    assert not compare(ours, said("user a", "assistant half")).whole
    assert agrees_after(list_exchanges(*ours), 2)
    assert not agrees_after(list_exchanges(*ours), 1)
    assert not agrees_after(list_exchanges(*ours), 7)


def test_imported_messages_stand_each_for_itself() -> None:
    ours: Session = (rows("0 system s", "0 user a", "0 assistant b", "1 user c", "1 assistant d"), ())
    assert compare(ours, said("system s", "user a", "assistant b", "user c", "assistant d")).whole
    assert compare(ours, said("system s", "user a")) == Agreement(whole=False, after=None)
    assert agrees_on_instructions(["s"], said("system s"))
    assert not agrees_on_instructions(["s"], said("system other"))
    assert not agrees_on_instructions([], said("system s"))


def test_tools_and_summaries_are_not_compared() -> None:
    kept = rows("1 user a", "1 tool x", "1 assistant b")
    assert compare((kept, ()), said("user a", "assistant b")).whole
