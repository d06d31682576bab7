"""The audit chain: ten thousand ways to change it, all found, and the first bad entry named."""

import random
from dataclasses import replace
from typing import Any

import pytest

from clawdforge.core.models.rows import AuditRow
from clawdforge.core.rules.audit_chain import START, entry_hash, verify_chain

EVENTS = ("create", "turn", "close", "sweep_close", "hard_delete")


def ledger(size: int, seed: int = 1) -> list[AuditRow]:
    chance, rows, prev = random.Random(seed), [], START  # noqa: S311 - not for secrets
    for number in range(1, size + 1):
        fields: dict[str, Any] = {
            "number": number,
            "app_name": chance.choice(("a", "b")),
            "session_id": f"{chance.getrandbits(64):x}",
            "event": chance.choice(EVENTS),
            "at": 1_700_000_000_000_000 + number * 7,
            "details": {"turn": chance.randrange(9)},
        }
        prev = entry_hash(prev, **fields)
        rows.append(AuditRow(**fields, hash=prev))
    return rows


def changed(row: AuditRow, chance: random.Random) -> AuditRow:
    changes: dict[str, Any] = {
        "app_name": row.app_name + "x",
        "session_id": None,
        "event": next(event for event in EVENTS if event != row.event),
        "at": row.at + 1,
        "details": {**row.details, "more": True},
        "hash": row.hash[::-1] if row.hash != row.hash[::-1] else START,
        "number": row.number + 1,
    }
    name = chance.choice(sorted(changes))
    return replace(row, **{name: changes[name]})


def tampered(rows: list[AuditRow], chance: random.Random) -> tuple[list[AuditRow], int]:
    """A ledger that was tampered with, and the entry that shows it first."""
    at = chance.randrange(len(rows))
    how = chance.choice(("change", "delete", "swap", "repeat", "cut", "rehash"))
    copy = list(rows)
    if how == "change":
        copy[at] = changed(rows[at], chance)
    elif how == "delete" and at < len(rows) - 1:
        del copy[at]
    elif how == "swap" and at < len(rows) - 1:
        copy[at], copy[at + 1] = copy[at + 1], copy[at]
    elif how == "repeat":
        copy.insert(at, rows[at])
        at += 1
    elif how == "rehash":  # made to fit by somebody who knows the rule: the next entry gives it away
        at = min(at, len(rows) - 2)
        prev = rows[at - 1].hash if at else START
        fields = {name: getattr(rows[at], name) for name in ("number", "app_name", "session_id", "event")}
        digest = entry_hash(prev, **fields, at=rows[at].at + 1, details=rows[at].details)
        copy[at] = replace(rows[at], at=rows[at].at + 1, hash=digest)
        at += 1
    else:
        del copy[at:]
    return copy, at + 1


def test_ten_thousand_changes_are_all_found_and_named() -> None:
    rows, chance = ledger(60), random.Random(2)  # noqa: S311 - likewise
    head = rows[-1].hash
    assert verify_chain(rows, head).valid
    for _ in range(10_000):
        bad, first = tampered(rows, chance)
        verdict = verify_chain(bad, head)
        assert not verdict.valid
        assert verdict.first_bad == first
        assert verdict.entries == first - 1
        assert verdict.reason


def test_a_cut_tail_is_only_seen_against_a_head_that_was_noted() -> None:
    rows = ledger(10)
    assert verify_chain(rows[:7]).valid
    verdict = verify_chain(rows[:7], rows[-1].hash)
    assert (verdict.valid, verdict.first_bad) == (False, 8)
    assert "cut off" in (verdict.reason or "")


@pytest.mark.parametrize("head", [None, START])
def test_an_empty_ledger_is_whole(head: str | None) -> None:
    assert verify_chain([], head) == (True, 0, START, None, None)
    assert verify_chain(ledger(3), ledger(3)[1].hash).valid, "an earlier head is still part of the chain"
