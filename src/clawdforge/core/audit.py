"""The audit ledger's chain: every entry's hash covers the entry and the hash before it."""

import hashlib
import json
from collections.abc import Iterable
from typing import NamedTuple

from clawdforge.core.model import AuditRow
from clawdforge.wire.base import Json, Micros

START = "0" * 64
"""What stands before the first entry."""


class ChainVerdict(NamedTuple):
    valid: bool
    entries: int
    head: str
    first_bad: int | None = None
    reason: str | None = None


def entry_hash(
    prev: str, *, number: int, app_name: str, session_id: str | None, event: str, at: Micros, details: Json
) -> str:
    """SHA-256 over the hash before and the entry as JSON with sorted keys."""
    entry = [number, app_name, session_id, event, at, details]
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{prev}\n{text}".encode()).hexdigest()


def verify(entries: Iterable[AuditRow], head: str | None = None) -> ChainVerdict:
    """Walk the ledger from its start. With `head`, a hash noted earlier must still be part of it."""
    prev, count, seen = START, 0, head is None or head == START
    for row in entries:
        count += 1
        if row.number != count:
            reason = f"entry {count} is missing or out of order: found {row.number} in its place"
            return ChainVerdict(False, count - 1, prev, count, reason)
        expected = entry_hash(
            prev,
            number=row.number,
            app_name=row.app_name,
            session_id=row.session_id,
            event=row.event,
            at=row.at,
            details=row.details,
        )
        if row.hash != expected:
            reason = f"entry {count} was changed, or one before it was: its hash does not fit"
            return ChainVerdict(False, count - 1, prev, count, reason)
        prev = row.hash
        seen = seen or prev == head
    if not seen:
        reason = "the noted head is not in the ledger: its end was cut off, or all of it was rewritten"
        return ChainVerdict(False, count, prev, count + 1, reason)
    return ChainVerdict(True, count, prev)
