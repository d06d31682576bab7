"""Which folder a session may work in: never one that an open session of another app can reach."""

from collections.abc import Sequence

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.workspaces import Area
from clawdforge.core.ports import View
from clawdforge.wire.errors import WorkspaceRefused


def area_of(row: SessionRow, above: Sequence[str] = ()) -> Area:
    """`above` are the identities of the folders above, where they are known."""
    own = () if row.workspace_identity is None else (row.workspace_identity,)
    return Area(row.cwd, (*own, *above))


def need_free_folder(view: View, row: SessionRow, above: Sequence[str] = ()) -> None:
    """Refuse a folder where another app works, with the words for one that was never granted.

    They tell nothing of the other app. A folder that the server made for a session is that app's alone.
    """
    if not row.own_cwd and view.is_taken(area_of(row, above)):
        raise WorkspaceRefused
