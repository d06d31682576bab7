"""What apps and sessions have on the disk, as the operator sees it: from the counts, never from files."""

from collections.abc import Sequence
from dataclasses import dataclass

from clawdforge.core.ports import Store, SystemView
from clawdforge.core.rules.quotas import Quotas
from clawdforge.wire.disk import DiskForm


@dataclass(frozen=True, slots=True)
class Stored:
    """What one app or session has, by form; `most` is what an app may have."""

    name: str
    forms: dict[DiskForm, int]
    most: int | None = None

    @property
    def bytes(self) -> int:
        return sum(self.forms.values())


class DiskService:
    def __init__(self, store: Store, quotas: Quotas) -> None:
        self._store = store
        self._quotas = quotas

    async def apps(self) -> Sequence[Stored]:
        """The largest first."""
        return await self._store.read_system(self._read_apps)

    async def sessions(
        self, app_name: str, limit: int, cursor: str | None
    ) -> tuple[Sequence[Stored], str | None]:
        """A page of an app's sessions, the largest first, and the cursor of the next."""
        page, following = await self._store.read_system(
            lambda view: view.disk_of_sessions(app_name, limit=limit, cursor=cursor)
        )
        return [Stored(session_id, forms) for session_id, forms in page], following

    def _read_apps(self, view: SystemView) -> Sequence[Stored]:
        rows = {row.app_name: row for row in view.apps()}
        found = [
            Stored(app, forms, self._quotas.bytes_of(app, rows.get(app)))
            for app, forms in view.disk_of_apps().items()
        ]
        return sorted(found, key=lambda one: (-one.bytes, one.name))
