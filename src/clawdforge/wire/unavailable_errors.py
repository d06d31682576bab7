"""Failures that are nobody's fault: what is asked for is possible, but not now."""

from clawdforge.wire.error_base import ForgeAPIError
from clawdforge.wire.error_codes import ErrorCode


class Unavailable(ForgeAPIError):
    """not possible right now; try again later"""

    status = 503
    is_passing = True


class PoolFull(Unavailable):
    """too many open sessions; close one or raise CLAWDFORGE_MAX_LIVE_SESSIONS"""

    code = ErrorCode.POOL_FULL


class ServerBusy(Unavailable):
    """the server has no room for this right now; try again after the seconds in Retry-After"""

    code = ErrorCode.SERVER_BUSY


class LimitExceeded(Unavailable):
    """this app has reached its limit; try again later"""

    code = ErrorCode.LIMIT_EXCEEDED
    status = 429


class Paused(Unavailable):
    """the operator has paused this; send it again when it was resumed"""

    code = ErrorCode.PAUSED
    is_passing = False  # it takes a person, who may be away for hours


class BudgetExceeded(Unavailable):
    """a budget is used up; wait until its period ends, or have it raised with `clawdforge budget set`"""

    code = ErrorCode.BUDGET_EXCEEDED
    status = 429
    is_passing = False  # a day or a month is too long to wait for, and some budgets never begin anew


class StoreUnavailable(Unavailable):
    """the store cannot be written; the outcome is unknown, retry with the same Idempotency-Key"""

    code = ErrorCode.STORE_UNAVAILABLE


class Stopping(Unavailable):
    """the server is stopping; try again when it is back"""

    code = ErrorCode.STOPPING
