"""What a turn adds to its day, and which days and names a caller asks for. Days are those of UTC."""

from collections.abc import Collection
from datetime import UTC, date, datetime, timedelta
from typing import Final

from clawdforge.core.clock import SECOND
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.usage import DayUsage, UsageQuery
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.usage import UsageBy

MAX_DAYS: Final = 366
USUAL_DAYS: Final = 30
OF_AN_APP: Final = (UsageBy.DAY, UsageBy.AGENT, UsageBy.MODEL)
OF_ALL: Final = (*OF_AN_APP, UsageBy.APP)


def day_of(at: Micros) -> date:
    return datetime.fromtimestamp(at // SECOND, UTC).date()


def count_turn(session: SessionRow, reported: Json | None, usage: Json | None, at: Micros) -> DayUsage:
    """`usage` is what the agent reported, or what was estimated from the text when it reported nothing."""
    usage = usage or {}
    taken, given = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    cost = usage.get("cost_usd")
    cost = float(cost) if isinstance(cost, int | float) else None
    computed = bool(usage.get("cost_estimated"))
    told = reported is not None
    return DayUsage(
        day=day_of(at).isoformat(),
        agent=session.agent,
        model=session.model or "",
        input_tokens=taken if told else 0,
        output_tokens=given if told else 0,
        cached_tokens=_count(usage.get("cached_tokens")) if told else 0,
        cost_usd=None if computed else cost,
        estimated_input=0 if told else taken,
        estimated_output=0 if told else given,
        estimated_cost=cost if computed else None,
    )


def read_query(
    by: str, first: str | None, last: str | None, now: Micros, words: Collection[UsageBy]
) -> UsageQuery:
    """What was asked for, as days and names; without `to` up to today, and without `from` thirty days.

    Raises InvalidRequest, which says what is allowed.
    """
    end = _read_day("to", last) if last is not None else day_of(now)
    begin = _read_day("from", first) if first is not None else _days_before(end, USUAL_DAYS - 1)
    if begin > end:
        raise InvalidRequest(f"from ({begin}) is after to ({end}); both are days in UTC and both are counted")
    if (end - begin).days >= MAX_DAYS:
        raise InvalidRequest(f"from {begin} to {end} is more than {MAX_DAYS} days; ask for a part of them")
    return UsageQuery(by=_read_by(by, words), first=begin.isoformat(), last=end.isoformat(), limit=0)


def _read_by(by: str, words: Collection[UsageBy]) -> frozenset[UsageBy]:
    known = {word.value: word for word in words}
    found = [name.strip() for name in by.split(",")]
    if any(name not in known for name in found):
        raise InvalidRequest(f"by is one or more of {', '.join(known)}, with commas between them")
    return frozenset(known[name] for name in found)


def _read_day(name: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(f"{name} is a day in UTC like 2026-11-16") from error
    if text != day.isoformat():
        raise InvalidRequest(f"{name} is a day in UTC like 2026-11-16")
    return day


def _days_before(end: date, days: int) -> date:
    return end - timedelta(days=days) if end.toordinal() > days else date.min


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
