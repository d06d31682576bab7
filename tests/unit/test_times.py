"""When cron is due: in zones that move their clocks, at the ends of months, and when nothing is ever due."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawdforge.core.clock import SECOND
from clawdforge.core.rules.times import (
    check_cron,
    count_times,
    find_latest,
    find_next,
    read_moment,
    read_zone,
    say_cron,
)
from clawdforge.wire.base import from_iso, to_iso_seconds
from clawdforge.wire.errors import InvalidRequest

BERLIN = "Europe/Berlin"  # one hour is missing on 2026-03-29 at 02:00, one is doubled on 2026-10-25 at 02:00
MINUTE = 60 * SECOND
DAY = 86_400 * SECOND


def times(cron: str, zone: str, begin: str, count: int) -> list[str]:
    found, at = [], from_iso(begin)
    for _ in range(count):
        following = find_next(cron, zone, at)
        assert following is not None
        at = following
        found.append((to_iso_seconds(at) or "")[5:16])
    return found


@pytest.mark.parametrize(
    ("cron", "begin", "expected"),
    [
        ("30 2 * * *", "2026-03-28T12:00Z", ["03-29T01:00", "03-30T00:30", "03-31T00:30"]),
        ("0,30 2 * * *", "2026-03-28T12:00Z", ["03-29T01:00", "03-30T00:00"]),
        ("*/30 2 * * *", "2026-03-28T12:00Z", ["03-30T00:00", "03-30T00:30"]),
        ("*/30 * * * *", "2026-03-29T00:10Z", ["03-29T00:30", "03-29T01:00", "03-29T01:30"]),
        ("30 2 * * *", "2026-10-24T12:00Z", ["10-25T00:30", "10-26T01:30"]),
        ("*/30 2 * * *", "2026-10-24T12:00Z", ["10-25T00:00", "10-25T00:30", "10-25T01:00", "10-25T01:30"]),
        ("0 9 * * MON-FRI", "2026-10-23T12:00Z", ["10-26T08:00", "10-27T08:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00Z", ["02-28T23:00"]),
        ("0 0 31 * *", "2026-01-01T00:00Z", ["01-30T23:00", "03-30T22:00"]),
    ],
)
def test_where_clocks_are_moved_it_is_as_in_debians_cron(cron: str, begin: str, expected: list[str]) -> None:
    assert times(cron, BERLIN, begin, len(expected)) == expected


CRONS = st.sampled_from(
    [
        *("* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0,59 1-3 * * *", "*/20 2 * * *"),
        *("0 0 1 * *", "15 3 * * SUN", "0 0 29 2 *", "0 0 L * *", "5 */6 1,15 * MON"),
    ]
)
ZONES = st.sampled_from([BERLIN, "UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
MOMENTS = st.integers(from_iso("2026-01-01"), from_iso("2028-01-01"))


@given(CRONS, ZONES, MOMENTS, st.floats(0, 1))
def test_what_comes_next_does_not_depend_on_when_it_is_asked(
    cron: str, zone: str, at: int, part: float
) -> None:
    """So a server that was away, or whose clock was set, finds the same times."""
    first = find_next(cron, zone, at)
    assert first is not None
    assert first > at
    assert first % MINUTE == 0
    between = at + int((first - 1 - at) * part)
    assert find_next(cron, zone, between) == first
    second = find_next(cron, zone, first)
    assert second is not None
    assert find_latest(cron, zone, first, first + int((second - 1 - first) * part)) == first
    assert find_latest(cron, zone, first, second) == second
    assert count_times(cron, zone, first, second) == 1


def test_the_latest_of_many_is_found_and_those_before_it_are_counted_up_to_a_bound() -> None:
    first = from_iso("2026-01-01T00:00Z")
    now = first + 400 * DAY + 5 * SECOND
    assert find_latest("* * * * *", "UTC", first, now) == now - 5 * SECOND
    assert count_times("* * * * *", "UTC", first, now) == 1000
    assert count_times("0 0 * * *", "UTC", first, now) == 401
    assert find_latest("0 0 1 1 *", "UTC", first, now) == from_iso("2027-01-01T00:00Z")
    assert find_latest("0 0 29 2 *", "UTC", first, now) == first


def test_the_latest_time_is_found_at_once_however_many_there_were_and_however_long_ago() -> None:
    """It is looked for where everybody waits: walking through the minutes of nine months took seconds."""
    begun = time.thread_time()
    first, now = from_iso("2025-01-01T00:00Z"), from_iso("2026-11-17T00:00Z")
    assert find_latest("* * * 1-9 *", "UTC", first, now) == from_iso("2026-09-30T23:59Z")
    assert time.thread_time() - begun < 0.5


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("0 0 30 2 *", "day-of-month"),
        ("0 0 31 4,6 *", "day-of-month"),
        ("61 * * * *", "bad minute"),
        ("* * * *", "five fields"),
        ("* * * * * *", "five fields"),
        ("@daily", "five fields"),
        ("0 0 * * FOO", "day-of-week"),
        ("\u0663 * * * *", "bad minute"),
    ],
)
def test_what_is_wrong_or_never_comes_is_refused_with_a_sentence(cron: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        check_cron(cron, "UTC", 0)


@given(st.text(alphabet="0123456789*/,-#LW MONFEB", max_size=40), MOMENTS)
def test_any_text_is_times_or_a_refusal(text: str, now: int) -> None:
    try:
        cron = check_cron(text, BERLIN, now)
    except InvalidRequest:
        return
    assert find_next(cron, BERLIN, now) is not None
    assert say_cron(cron), "whatever is a cron can be said in words"


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("0 9 * * mon-fri", "At 09:00 on Monday through Friday"),
        ("*/10 * * * *", "Every 10th minute of every hour"),
        ("0 18 L * *", "At 18:00 on the last day of every month"),
        ("0 0 13 * FRI", "At 00:00 on the 13th day of month and on Friday"),
        ("0 9 * * 8", None),
    ],
)
def test_a_cron_is_said_in_words(cron: str, said: str | None) -> None:
    assert say_cron(cron) == said


def test_spaces_do_not_count() -> None:
    assert check_cron("  0   9 * *\tmon ", "UTC", 0) == "0 9 * * mon"


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "../../etc/passwd", "/etc/localtime", "America", "", "a\0b"]
)
def test_a_zone_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="no time zone"):
        read_zone(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-01T09:00", "2026-12-01T08:00:00Z"),
        ("2026-12-01 09:00:30", "2026-12-01T08:00:30Z"),
        ("2026-12-01T09:00Z", "2026-12-01T09:00:00Z"),
        ("2026-12-01T09:00-05:00", "2026-12-01T14:00:00Z"),
        ("2026-03-29T02:30", "2026-03-29T01:30:00Z"),
        ("2026-10-25T02:30", "2026-10-25T00:30:00Z"),
    ],
)
def test_a_time_is_of_the_zone_unless_it_says_otherwise(text: str, expected: str) -> None:
    assert to_iso_seconds(read_moment(text, BERLIN)) == expected


@pytest.mark.parametrize("text", ["tomorrow", "09:00", "", "9999-12-31T23:59", "0001-01-01T00:00", "1e9"])
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="at"):
        read_moment(text, BERLIN)


def test_far_beyond_all_times_there_is_nothing() -> None:
    late = datetime(9500, 1, 1, tzinfo=UTC)
    assert find_next("* * * * *", "UTC", int(late.timestamp()) * SECOND) is None
