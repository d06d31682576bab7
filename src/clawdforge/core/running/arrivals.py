"""Brings the files of a session to this node that were published by the one that ran it before."""

import logging
from dataclasses import dataclass, replace
from functools import partial

from clawdforge.core.models.blobs import PublicationRow
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.models.workspaces import Workspace
from clawdforge.core.ports import Store, Tx
from clawdforge.core.ports.shared_files import SharedFiles
from clawdforge.core.rules.leases import check_lease
from clawdforge.core.rules.placement import has_done_work
from clawdforge.core.running.membership import Membership
from clawdforge.core.running.piece_box import LostPiece, PieceBox, to_end
from clawdforge.core.running.running_turn import RunningTurn
from clawdforge.wire.errors import WorkspaceChanged

log = logging.getLogger(__name__)
NOT_PUBLISHED = (
    "the workspace of this session lies at a server that is gone, and was not published; start that server"
    " again (`clawdforge nodes` names it), or fork the session into a new folder"
)
DAMAGED = (
    "the workspace of this session lies at a server that is gone, and what was published of it cannot be"
    " used: {error}; start that server again (`clawdforge nodes` names it), or fork the session into a new"
    " folder"
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """The turn as it can run here, and whose home came: of a turn, of none (0), or it was here (None)."""

    turn: RunningTurn
    home_of: int | None = None


class Arrivals:
    def __init__(self, store: Store, membership: Membership, files: SharedFiles, box: PieceBox) -> None:
        self._store = store
        self._membership = membership
        self._files = files
        self._box = box

    @property
    def here(self) -> str | None:
        return self._membership.folder

    async def belongs_elsewhere(self, session: SessionRow) -> bool:
        """Whether the session's own workspace lies in the data folder of another node that lives."""
        return await self._membership.has_owner(session)

    async def bring(self, turn: RunningTurn, *, is_workspace_here: bool) -> Arrival:
        """WorkspaceChanged when the session's own workspace is neither here nor published."""
        session = turn.session
        needs_home = session.home_at not in (None, self.here)
        if not needs_home and is_workspace_here:
            return Arrival(turn)
        found = await self._store.read(turn.app, lambda view: view.publication(turn.session_id))
        if not is_workspace_here:
            turn = await self._bring_workspace(turn, found)
        return Arrival(turn, await self._bring_home(turn, found) if needs_home else None)

    async def _bring_workspace(self, turn: RunningTurn, found: PublicationRow | None) -> RunningTurn:
        app, session_id, fence = turn.app, turn.session_id, turn.started.fence
        placed = await self._place_workspace(turn, found)
        cwd, here = str(placed.path), self.here

        def work(tx: Tx) -> SessionRow | None:
            check_lease(tx, session_id, fence)
            tx.change_session(session_id, cwd=cwd, workspace_identity=placed.identity, folder=here)
            return tx.session(session_id)

        session = await self._store.write(app, work)
        log.warning("the workspace came from another node", extra={"session_id": session_id})
        return replace(turn, started=replace(turn.started, session=session or turn.session))

    async def _place_workspace(self, turn: RunningTurn, found: PublicationRow | None) -> Workspace:
        """Empty, where it was so at the end of the first turn; or where none was completed yet, since then
        nothing was promised."""
        app, session_id = turn.app, turn.session_id
        if found is not None:
            is_empty = found.workspace == ()
        else:
            is_empty = not await self._store.read(app, lambda view: has_done_work(view, turn.session))
        if is_empty:
            return await self._files.make_workspace(session_id)
        if found is None or found.workspace is None:
            raise WorkspaceChanged(NOT_PUBLISHED)
        try:
            writing = await self._box.get_tree(
                app, found.workspace, partial(self._files.write_workspace, session_id)
            )
        except (LostPiece, ValueError) as error:
            raise WorkspaceChanged(DAMAGED.format(error=error)) from error
        path = self._files.workspace_path(session_id)
        is_shared = await self._store.read_system(lambda view: view.works_in(path, session_id))
        try:
            return await self._files.place_workspace(session_id, writing, is_shared=is_shared)
        finally:
            await to_end(writing.close)

    async def _bring_home(self, turn: RunningTurn, found: PublicationRow | None) -> int:
        """The turn whose home is here now; 0 if none could be had, so that the transcript is told instead."""
        session_id = turn.session_id
        if found is None or not found.turn_index:
            return 0
        try:
            writing = await self._box.get_tree(
                turn.app, found.home, partial(self._files.write_home, session_id)
            )
        except (LostPiece, ValueError) as error:
            log.warning("the home of another node is lost: %s", error, extra={"session_id": session_id})
            return 0
        try:
            await self._files.place_home(session_id, writing, found.turn_index, found.agent_session_id)
        finally:
            await to_end(writing.close)
        return found.turn_index
