"""What each app may have of the server at one time: the one place that counts it and refuses more."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import Final

from clawdforge.core.model import SECOND, AppRow, Clock
from clawdforge.core.ports import Store, View
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.wire.base import Micros
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import LimitExceeded

WINDOW_SECS: Final = 10
"""An app may use up the requests of so many seconds at once."""

FRESH: Final = 5 * SECOND
"""So long limits are remembered that another process may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What an app may have; None is no limit."""

    max_requests_per_sec: int | None = None
    max_open_requests: int | None = None
    max_readers: int | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """What is left of the requests: `quota` in each `window` seconds, and when all of it is there again.

    `refusal` is to be raised for a request that was one too many.
    """

    quota: int
    window: int
    left: int
    full_in: int
    refusal: LimitExceeded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    sessions: int
    turns_in_flight: int
    bytes_stored: int
    bytes_by_form: dict[DiskForm, int]
    open_requests: int
    readers: int
    requests_left: int | None


@dataclass(slots=True)
class _Account:
    share: Share
    read_at: Micros
    tokens: float
    at: Micros
    open_requests: int = 0
    readers: int = 0


class ShareService:
    """Counts what is open in this process. `local`, the operator's own, has only limits that it is given."""

    def __init__(self, store: Store, clock: Clock, default: Share, quotas: Quotas = NO_QUOTAS) -> None:
        self._store = store
        self._clock = clock
        self._default = default
        self._quotas = quotas
        self._accounts: dict[str, _Account] = {}

    def share_of(self, row: AppRow | None, app: str) -> Share:
        """What the operator has set for this app, and the server's own setting for the rest."""
        default = Share() if app == LOCAL_APP else self._default
        own = {field.name: getattr(row, field.name, None) for field in fields(Share)}
        return Share(
            **{name: getattr(default, name) if value is None else value for name, value in own.items()}
        )

    def forget(self, app: str) -> None:
        """The operator has changed its limits."""
        if app in self._accounts:
            self._accounts[app].read_at = self._clock.steady() - FRESH

    async def count_request(self, app: str) -> Rate | None:
        """Take one request from the app's rate, and tell what is left; None without a limit."""
        account = await self._account(app)
        per_sec = account.share.max_requests_per_sec
        if per_sec is None:
            return None
        quota, now = per_sec * WINDOW_SECS, self._clock.steady()
        gained = (now - account.at) / SECOND * per_sec
        account.tokens, account.at = min(quota, account.tokens + gained), now
        is_refused = account.tokens < 1
        if not is_refused:
            account.tokens -= 1
        full_in = WINDOW_SECS if per_sec == 0 else -int(-(quota - account.tokens) // per_sec)
        text = f"this app may send {per_sec} requests a second; try again later"
        refusal = LimitExceeded(text, retry_after=1) if is_refused else None
        return Rate(quota, WINDOW_SECS, int(account.tokens), full_in, refusal)

    @contextmanager
    def open_request(self, app: str, *, is_reader: bool) -> Iterator[None]:
        """One more open request until this is left; a stream is a reader as well."""
        account = self._accounts[app]  # a request is counted before it is opened
        _check("open requests", account.open_requests, account.share.max_open_requests)
        with self.open_reader(app) if is_reader else nullcontext():
            account.open_requests += 1
            try:
                yield
            finally:
                account.open_requests -= 1

    @contextmanager
    def open_reader(self, app: str) -> Iterator[None]:
        """A request that is open turns out to be a stream."""
        account = self._accounts[app]
        _check("open event streams", account.readers, account.share.max_readers)
        account.readers += 1
        try:
            yield
        finally:
            account.readers -= 1

    async def usage(self, app: str) -> tuple[AppRow, Share, Used]:
        """The limits of an app, with those of the settings where it has none, and what it has now."""
        row, sessions, turns, stored = await self._store.read(app, self._count)
        account = await self._account(app)
        per_sec = account.share.max_requests_per_sec
        used = Used(
            sessions=sessions,
            turns_in_flight=turns,
            bytes_stored=sum(stored.values()),
            bytes_by_form=stored,
            open_requests=account.open_requests,
            readers=account.readers,
            requests_left=None if per_sec is None else int(account.tokens),
        )
        return row, self.share_of(row, app), used

    def _count(self, view: View) -> tuple[AppRow, int, int, dict[DiskForm, int]]:
        row = view.app_row() or AppRow(view.app, 0)
        row = replace(row, max_bytes=self._quotas.max_bytes(view), max_agents=self._quotas.max_agents(view))
        return row, view.count_app_sessions(), view.turns_in_flight(), view.stored_bytes()

    async def _account(self, app: str) -> _Account:
        account, now = self._accounts.get(app), self._clock.steady()
        if account is not None and now - account.read_at < FRESH:
            return account
        row = await self._store.read(app, lambda view: view.app_row())
        share = self.share_of(row, app)
        account = self._accounts.get(app)
        if account is None:
            full = (share.max_requests_per_sec or 0) * WINDOW_SECS
            account = self._accounts[app] = _Account(share, now, full, now)
        elif account.share.max_requests_per_sec != share.max_requests_per_sec:
            account.tokens, account.at = (share.max_requests_per_sec or 0) * WINDOW_SECS, now
        account.share, account.read_at = share, now
        return account


def _check(what: str, count: int, limit: int | None) -> None:
    if limit is not None and count >= limit:
        raise LimitExceeded(f"this app may have {limit} {what}; close one first", retry_after=1)
