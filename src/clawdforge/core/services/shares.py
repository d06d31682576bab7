"""What each app may have of the server at one time: the one place that counts it and refuses more."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Final

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.models.rows import AppRow
from clawdforge.core.ports import Store, SystemView, View
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.wire.admin import Limits
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


LIMITS: Final = tuple(Limits.model_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What an app may have, by the names of limits, None where there is none; and which are its `own`."""

    limits: dict[str, int | None]
    own: frozenset[str]

    @property
    def sources(self) -> dict[str, str]:
        return {name: "own" if name in self.own else "default" for name in self.limits}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What an app has in the store: the same for all servers of it."""

    sessions: int = 0
    ttl_sessions: int = 0
    turns_in_flight: int = 0
    forms: dict[DiskForm, int] = field(default_factory=dict)


NOTHING: Final = Counted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    sessions: int
    ttl_sessions: int
    turns_in_flight: int
    bytes_stored: int
    bytes_by_form: dict[DiskForm, int]
    open_requests: int
    readers: int
    agents: int
    requests_left: int | None


@dataclass(slots=True)
class _Account:
    share: Share
    read_at: Micros
    tokens: float
    at: Micros
    open_requests: int = 0
    readers: int = 0


class Place:
    """What one request takes of its app's share, until this is left."""

    __slots__ = ("_account", "_readers", "_requests")

    def __init__(self, account: _Account, *, requests: int, readers: int) -> None:
        self._account, self._requests, self._readers = account, requests, readers

    def __enter__(self) -> None:
        self._account.open_requests += self._requests
        self._account.readers += self._readers

    def __exit__(self, *_: object) -> None:
        self._account.open_requests -= self._requests
        self._account.readers -= self._readers


class ShareService:
    """Counts what is open in this process. `local`, the operator's own, has only limits that it is given."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        default: Share,
        quotas: Quotas = NO_QUOTAS,
        agents_of: Callable[[str], int] = lambda _app: 0,
    ) -> None:
        self._store = store
        self._clock = clock
        self._default = default
        self._quotas = quotas
        self._agents_of = agents_of
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

    def open_request(self, app: str, *, is_reader: bool) -> "Place":
        """One more open request until this is left; a stream is a reader as well. To be entered at once."""
        account = self._accounts[app]  # a request is counted before it is opened
        _check("open requests", account.open_requests, account.share.max_open_requests)
        if is_reader:
            _check("open event streams", account.readers, account.share.max_readers)
        return Place(account, requests=1, readers=int(is_reader))

    def open_reader(self, app: str) -> "Place":
        """A request that is open turns out to be a stream."""
        account = self._accounts[app]
        _check("open event streams", account.readers, account.share.max_readers)
        return Place(account, requests=0, readers=1)

    def allowed(self, row: AppRow | None, app: str) -> Allowed:
        """All limits of an app: its own, and those of the settings for the rest."""
        share, quotas = self.share_of(row, app), self._quotas
        found = {
            "max_sessions": quotas.sessions_of(app, row),
            "max_turns_in_flight": quotas.turns_of(app, row),
            "max_bytes": quotas.bytes_of(app, row),
            "max_agents": quotas.agents_of(app, row),
            **{one.name: getattr(share, one.name) for one in fields(Share)},
        }
        own = frozenset(name for name in LIMITS if getattr(row, name, None) is not None)
        return Allowed(limits={name: found[name] for name in LIMITS}, own=own)

    async def usage(self, app: str) -> tuple[Allowed, Used]:
        """What an app may have, and what it has now."""
        row, stored = await self._store.read(app, _count)
        account = await self._account(app)
        per_sec = account.share.max_requests_per_sec
        left = None if per_sec is None else int(account.tokens)
        return self.allowed(row, app), self.used(app, stored, left)

    def used(self, app: str, stored: Counted, requests_left: int | None = None) -> Used:
        """What an app has of the store, of which this was read, and of this process."""
        account = self._accounts.get(app)
        return Used(
            sessions=stored.sessions,
            ttl_sessions=stored.ttl_sessions,
            turns_in_flight=stored.turns_in_flight,
            bytes_stored=sum(stored.forms.values()),
            bytes_by_form=stored.forms,
            open_requests=account.open_requests if account else 0,
            readers=account.readers if account else 0,
            agents=self._agents_of(app),
            requests_left=requests_left,
        )

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


def _count(view: View) -> tuple[AppRow | None, Counted]:
    stored = Counted(
        sessions=view.count_app_sessions(),
        ttl_sessions=view.count_ttl_sessions(),
        turns_in_flight=view.turns_in_flight(),
        forms=view.stored_bytes(),
    )
    return view.app_row(), stored


def count_all(view: SystemView) -> dict[str, Counted]:
    """By app; an app that has nothing may be missing."""
    sessions, turns, disk = view.open_session_counts(), view.turns_of_apps(), view.disk_of_apps()
    found: dict[str, Counted] = {}
    for app in sessions.keys() | turns.keys() | disk.keys():
        count, ttl = sessions.get(app, (0, 0))
        forms = disk.get(app, {})
        found[app] = Counted(sessions=count, ttl_sessions=ttl, turns_in_flight=turns.get(app, 0), forms=forms)
    return found


def _check(what: str, count: int, limit: int | None) -> None:
    if limit is not None and count >= limit:
        raise LimitExceeded(f"this app may have {limit} {what}; close one first", retry_after=1)
