"""When a cron expression is due in a time zone, as moments in microseconds since the epoch.

A moment is due or not, whatever was asked before. Where clocks are moved, it is as in Debian's cron: a time
in an hour that is missing comes right after the gap, and one in an hour that is doubled comes once, the first
time; what is due by a `*` in minutes or hours, such as every ten minutes, goes on as time passes.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from clawdforge.core.clock import SECOND
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import InvalidRequest

FIELDS: Final = 5
MOST_COUNTED: Final = 1000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_YEAR: Final = 9000
"""No time that somebody means is later, and beyond it there are no dates for those that come after."""
EXAMPLE: Final = "`0 9 * * MON-FRI` is nine o'clock on working days"


def read_zone(name: str) -> ZoneInfo:
    """Raises InvalidRequest for a name that no time zone has."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidRequest(f"there is no time zone {name}; write it as `Europe/Berlin` or `UTC`") from error


def check_cron(cron: str, timezone: str, now: Micros) -> str:
    """The expression, tidied up. Raises InvalidRequest for one that is wrong, or that never comes."""
    parts = cron.split()
    if len(parts) != FIELDS:
        raise InvalidRequest(
            f"cron has five fields: minute, hour, day of the month, month, day of the week; {EXAMPLE}"
        )
    tidy = " ".join(parts)
    if find_next(tidy, timezone, now) is None:
        raise InvalidRequest("cron names a day that never comes")
    return tidy


def say_cron(cron: str) -> str | None:
    """In English: "At 09:00 on Monday through Friday". None for what is no cron any more."""
    try:
        return CronSim(cron, EPOCH).explain()
    except CronSimError:
        return None


def read_moment(text: str, timezone: str) -> Micros:
    """An ISO time, of the zone unless it has an offset of its own.

    One in a missing hour is taken as if clocks had not been moved; of a doubled hour the first one is meant.
    """
    zone = read_zone(timezone)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest("write `at` as `2026-12-01T09:00`, or with an offset behind it") from error
    if not EPOCH.year <= moment.year < LAST_YEAR:
        raise InvalidRequest("the year of `at` is too far off")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return _to_micros(moment)


def find_next(cron: str, timezone: str, after: Micros) -> Micros | None:
    """The first time after this moment; None if there is none. Raises InvalidRequest for what is no cron."""
    return next(_times(cron, timezone, after), None)


def find_coming(cron: str, timezone: str, after: Micros, limit: int) -> list[Micros]:
    """The first times after this moment, at most so many."""
    return list(islice(_times(cron, timezone, after), limit))


def find_latest(cron: str, timezone: str, first: Micros, now: Micros) -> Micros:
    """The last time up to now; `first`, which has come already, if there is none after it.

    There may be a million of them, so they are halved: each step looks for one in the later half.
    """
    latest, end = first, now  # there is no time between the end and now
    while end - latest >= SECOND:
        middle = (latest + end) // 2
        found = find_next(cron, timezone, middle)
        if found is not None and found <= now:
            latest = found
        else:
            end = middle
    return latest


def count_times(cron: str, timezone: str, first: Micros, before: Micros) -> int:
    """How many times there are from the first one on, which is one, and before this; at most so many as are
    worth counting."""
    if before <= first:
        return 0
    more = islice(_until(cron, timezone, first, before - 1), MOST_COUNTED - 1)
    return 1 + sum(1 for _ in more)


def _until(cron: str, timezone: str, after: Micros, last: Micros) -> Iterator[Micros]:
    for at in _times(cron, timezone, after):
        if at > last:
            return
        yield at


def _times(cron: str, timezone: str, after: Micros) -> Iterator[Micros]:
    begin = EPOCH + timedelta(microseconds=after)
    if begin.year >= LAST_YEAR:
        return
    try:
        found = CronSim(cron, begin.astimezone(read_zone(timezone)))
    except CronSimError as error:
        raise InvalidRequest(f"cron is not valid: {_lower(str(error))}; {EXAMPLE}") from error
    for moment in found:
        at = _to_micros(moment)
        if at > after:  # in the second of two hours, the times of the first one are found again
            yield at


def _to_micros(moment: datetime) -> Micros:
    delta = moment - EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
