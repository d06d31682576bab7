"""What a session says of its own end is what the sweeper does to it."""

from dataclasses import replace

import pytest

from clawdforge.core.clock import SECOND
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.rules.retention import Ages, Dates, find_dates
from clawdforge.wire.session import Retention

AGES = Ages(idle=3600, closed=86400, upload=1)
HOUR, DAY = 3600 * SECOND, 86400 * SECOND
OPEN = SessionRow(
    app_name="a", session_id="s", agent="x", cwd="/w", own_cwd=True, created_at=SECOND, updated_at=SECOND
)


@pytest.mark.parametrize(
    ("row", "dates"),
    [
        (OPEN, Dates(SECOND + HOUR, SECOND + HOUR + DAY)),
        (replace(OPEN, last_turn_at=5 * SECOND), Dates(5 * SECOND + HOUR, 5 * SECOND + HOUR + DAY)),
        (replace(OPEN, closed_at=7 * SECOND), Dates(None, 7 * SECOND + DAY)),
        (replace(OPEN, retention=Retention.KEEP), Dates()),
        (replace(OPEN, retention=Retention.KEEP, closed_at=7 * SECOND), Dates()),
    ],
    ids=["never used", "used", "closed", "kept", "kept and closed"],
)
def test_dates(row: SessionRow, dates: Dates) -> None:
    assert find_dates(row, AGES, is_busy=False) == dates
    assert find_dates(row, AGES, is_busy=True) == Dates()
