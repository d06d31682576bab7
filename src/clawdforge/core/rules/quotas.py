"""How much an app may store, and how many sessions, turns and agents it may have: one place decides it.

What frees space is asked of nobody: a deletion, an end, an undo and a purge go through however full it is.
"""

from dataclasses import dataclass
from typing import Final

from clawdforge.core.models.rows import AppRow
from clawdforge.core.ports import View
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import LimitExceeded, PoolFull
from clawdforge.wire.session import Retention

RETRY_SECS: Final = 60  # so often the sweeper closes and removes
RESERVED: Final = 5
"""One open `ttl` session in so many is kept for apps that have none."""
SMALL_POOL: Final = 50
"""A pool of fewer is one app's if it comes first: whoever sets so few means that number."""
UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")
ADVICE: Final = {
    DiskForm.UPLOADS: "delete uploads that no session needs: `curl -X DELETE …/files/FILE_TOKEN`",
    DiskForm.RUNS: "ask the operator to put old ones away: `clawdforge archive runs FILE --before DATE`",
}
OTHER_ADVICE: Final = "delete sessions that nobody needs: `clawdforge sessions delete ID`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """What the settings grant to an app for which the operator has set nothing; None is no limit.

    The app `exempt`, which is the operator's own, has only the limits that it is given.
    """

    bytes: int | None = None
    agents: int | None = None
    sessions: int | None = None  # those that are `ttl`
    turns: int | None = None
    live_sessions: int | None = None  # `ttl` sessions of all apps
    exempt: str = ""

    def max_bytes(self, view: View) -> int | None:
        return self.bytes_of(view.app, view.app_row())

    def max_agents(self, view: View) -> int | None:
        return self.agents_of(view.app, view.app_row())

    def bytes_of(self, app: str, row: AppRow | None) -> int | None:
        own = None if row is None else row.max_bytes
        return own if own is not None else self._default(app, self.bytes)

    def agents_of(self, app: str, row: AppRow | None) -> int | None:
        own = None if row is None else row.max_agents
        return own if own is not None else self._default(app, self.agents)

    def sessions_of(self, app: str, row: AppRow | None) -> int | None:
        """Of an app's own limit all open sessions count; of that of the settings, those that are `ttl`."""
        own = None if row is None else row.max_sessions
        return own if own is not None else self._default(app, self.sessions)

    def turns_of(self, app: str, row: AppRow | None) -> int | None:
        own = None if row is None else row.max_turns_in_flight
        return own if own is not None else self._default(app, self.turns)

    def max_turns(self, view: View) -> int | None:
        return self.turns_of(view.app, view.app_row())

    def check_sessions(self, view: View, retention: Retention) -> None:
        """Refuse one more open session, if it is one too many for the app or for the server."""
        row = view.app_row()
        most = None if row is None else row.max_sessions
        if most is not None and view.count_app_sessions() >= most:
            raise LimitExceeded(f"this app may have {most} open sessions; close one", retry_after=RETRY_SECS)
        self.check_pool(view, retention)

    def check_pool(self, view: View, retention: Retention) -> None:
        """Refuse one more session that is `ttl`; of those that are kept only the app's own limit counts."""
        if retention is not Retention.TTL:
            return
        row, own = view.app_row(), view.count_ttl_sessions()
        is_default = row is None or row.max_sessions is None
        most = self.sessions_of(view.app, row) if is_default else None
        if most is not None and own >= most:
            words = f"this app may have {most} open `ttl` sessions; close one"
            raise LimitExceeded(words, retry_after=RETRY_SECS)
        if self.live_sessions is None:
            return
        taken = view.count_open_sessions()
        kept = 0 if self.live_sessions < SMALL_POOL else self.live_sessions // RESERVED
        if taken >= self.live_sessions:
            raise PoolFull
        if own and taken >= self.live_sessions - kept:
            words = f"the last {kept} places for `ttl` sessions are kept for apps that have none; close one"
            raise PoolFull(words, retry_after=RETRY_SECS)

    def check_turns(self, view: View) -> None:
        """Refuse one more turn that would wait or run."""
        most = self.max_turns(view)
        if most is not None and view.turns_in_flight() >= most:
            raise LimitExceeded(f"this app may have {most} turns in flight; try again later", retry_after=1)

    def room(self, view: View) -> int | None:
        """How many bytes the app may still store, below 0 when it has too many; None without a limit."""
        most = self.max_bytes(view)
        return None if most is None else most - sum(view.stored_bytes().values())

    def check_room(self, view: View, size: int = 1) -> int | None:
        """Refuse what would store so many bytes more; for what nobody can tell before, one is enough.

        The room that there is, as `room` says.
        """
        room = self.room(view)
        if room is not None and room < size:
            raise LimitExceeded(describe_lack(view.stored_bytes(), room), retry_after=RETRY_SECS)
        return room

    def _default(self, app: str, value: int | None) -> int | None:
        return None if app == self.exempt else value


NO_QUOTAS: Final = Quotas()


def describe_lack(stored: dict[DiskForm, int], room: int) -> str:
    """What fills the app's share, and what to do about it."""
    total = sum(stored.values())
    largest = max(stored, key=lambda form: stored[form])
    name = largest.replace("_", " ")
    most = f"most of it {name} ({say_bytes(stored[largest])})" if total else "nothing yet"
    return (
        f"this app may store {say_bytes(total + room)} and stores {say_bytes(total)}, {most};"
        f" {ADVICE.get(largest, OTHER_ADVICE)}. It is free a minute later"
    )


def say_bytes(count: int) -> str:
    """`950 bytes`, `1.5 MiB`, `20 GiB`."""
    size, unit = float(count), UNITS[0]
    for unit in UNITS:
        if abs(size) < 1024 or unit == UNITS[-1]:
            break
        size /= 1024
    return f"{size:.3g} {unit}" if size < 1000 else f"{size:.0f} {unit}"
