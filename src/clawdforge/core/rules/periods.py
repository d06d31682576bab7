"""Days and months in UTC: which one a moment is in, and when it ends."""

from datetime import UTC, datetime, timedelta

from clawdforge.core.clock import SECOND
from clawdforge.wire.base import Micros
from clawdforge.wire.budgets import BudgetPeriod


def period_start(period: BudgetPeriod, at: Micros) -> Micros:
    """When the period began that this moment is in; 0 for one that never begins anew."""
    if period is BudgetPeriod.TOTAL:
        return 0
    day = _midnight(at)
    return _to_micros(day if period is BudgetPeriod.DAY else day.replace(day=1))


def period_end(period: BudgetPeriod, at: Micros) -> Micros | None:
    """The first moment that is no longer in it; None for one that never ends."""
    if period is BudgetPeriod.TOTAL:
        return None
    day = _midnight(at)
    if period is BudgetPeriod.DAY:
        return _to_micros(day + timedelta(days=1))
    return _to_micros((day.replace(day=1) + timedelta(days=32)).replace(day=1))


def _midnight(at: Micros) -> datetime:
    moment = datetime.fromtimestamp(at // SECOND, UTC)
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _to_micros(moment: datetime) -> Micros:
    return int(moment.timestamp()) * SECOND
