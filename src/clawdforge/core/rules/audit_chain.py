"""The audit's chain: every entry's hash covers the entry and the hash before it."""

import hashlib
import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from clawdforge.core.models.rows import AuditBase, AuditRow
from clawdforge.wire.base import Json, Micros

START = AuditBase().hash
"""The hash before the first entry."""


FIRST: Final = AuditBase()
ENCODE: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class ChainVerdict(NamedTuple):
    valid: bool
    entries: int
    head: str
    first_bad: int | None = None
    reason: str | None = None


def entry_hash(
    prev: str, *, number: int, app_name: str, session_id: str | None, event: str, at: Micros, details: Json
) -> str:
    """SHA-256 over the previous hash and the entry as JSON with sorted keys."""
    entry = [number, app_name, session_id, event, at, details]
    text = ENCODE(entry)
    return hashlib.sha256(f"{prev}\n{text}".encode()).hexdigest()


class ChainCheck:
    """Checks the audit from its start, or from what was archived of it, page by page.

    With `head`, it must contain that hash, noted earlier.
    """

    def __init__(self, head: str | None = None, base: AuditBase = FIRST) -> None:
        self._prev = base.hash
        self._count = base.number
        self._head = head
        self._seen = head is None or head in (START, base.hash)
        self._is_archived = base != FIRST

    def check(self, entries: Iterable[AuditRow]) -> ChainVerdict | None:
        """Check the next entries. Returns a verdict as soon as one is wrong."""
        for row in entries:
            number = self._count + 1
            if row.number != number:
                return self.fail(f"is missing or out of order: found {row.number} in its place")
            expected = entry_hash(
                self._prev,
                number=row.number,
                app_name=row.app_name,
                session_id=row.session_id,
                event=row.event,
                at=row.at,
                details=row.details,
            )
            if row.hash != expected:
                return self.fail("was changed, or one before it was: its hash does not fit")
            self._prev, self._count = row.hash, number
            self._seen = self._seen or row.hash == self._head
        return None

    def fail(self, why: str) -> ChainVerdict:
        """The verdict that the next entry is bad."""
        number = self._count + 1
        return ChainVerdict(False, self._count, self._prev, number, f"entry {number} {why}")

    def finish(self) -> ChainVerdict:
        if self._seen:
            return ChainVerdict(True, self._count, self._prev)
        reason = "the noted head is not in the audit: its end was cut off, or all of it was rewritten"
        if self._is_archived:
            reason += "; or it is in what was archived, which `clawdforge archive verify` checks"
        return ChainVerdict(False, self._count, self._prev, self._count + 1, reason)


def verify_chain(entries: Iterable[AuditRow], head: str | None = None) -> ChainVerdict:
    """The verdict on the whole audit."""
    chain = ChainCheck(head)
    return chain.check(entries) or chain.finish()
