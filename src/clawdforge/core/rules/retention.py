"""When what is not used goes: idle sessions are closed, closed ones deleted, uploads and runs removed."""

from dataclasses import dataclass

from clawdforge.core.clock import SECOND
from clawdforge.core.models.rows import SessionRow
from clawdforge.wire.base import Micros
from clawdforge.wire.session import Retention


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """Seconds until an idle session is closed, a closed one deleted, an unused upload and a run removed,
    until the events of a turn that ended are packed, and until it is forgotten what a day has used.

    Runs and days are kept for ever with 0: nothing needs them but whoever looks back. Events are never
    packed with 0.
    """

    idle: float
    closed: float
    upload: float
    run: float = 0.0
    event: float = 0.0
    usage: float = 0.0


@dataclass(frozen=True, slots=True)
class Dates:
    """Not before then, and only if nothing happens until then. None: not at all, as things stand."""

    closes_at: Micros | None = None
    deletes_at: Micros | None = None


def idle_since(row: SessionRow) -> Micros:
    return row.created_at if row.last_turn_at is None else row.last_turn_at


def find_dates(row: SessionRow, ages: Ages, *, is_busy: bool) -> Dates:
    """What the sweeper will do to a session. One with a turn that runs or waits is left alone."""
    if row.retention is not Retention.TTL or is_busy:
        return Dates()
    closes_at = None if row.closed_at is not None else idle_since(row) + round(ages.idle * SECOND)
    closed_at = closes_at if row.closed_at is None else row.closed_at
    return Dates(closes_at, None if closed_at is None else closed_at + round(ages.closed * SECOND))
