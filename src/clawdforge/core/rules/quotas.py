"""How much an app may store and how many agents it may have: the one place that decides it.

What frees space is asked of nobody: a deletion, an end, an undo and a purge go through however full it is.
"""

from dataclasses import dataclass
from typing import Final

from clawdforge.core.model import AppRow
from clawdforge.core.ports import View
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import LimitExceeded

RETRY_SECS: Final = 60  # so often the sweeper removes what was deleted
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

    def room(self, view: View) -> int | None:
        """How many bytes the app may still store, below 0 when it has too many; None without a limit."""
        most = self.max_bytes(view)
        return None if most is None else most - sum(view.stored_bytes().values())

    def check_room(self, view: View, size: int = 1) -> None:
        """Refuse what would store so many bytes more; for what nobody can tell before, one is enough."""
        room = self.room(view)
        if room is not None and room < size:
            raise LimitExceeded(describe_lack(view.stored_bytes(), room), retry_after=RETRY_SECS)

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
