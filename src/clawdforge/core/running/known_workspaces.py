"""Makes sure that a session's folder is the one that it was made in, before anybody works there.

Each machine has identities of its own. With several nodes, one that a folder of a caller's has at a node is
recorded when it is first used there, and compared at every later use there. Whenever such a session comes to
another node than the last, its folder is looked at like that of a new session: whether it is granted, and
whether another app works in it.
"""

from collections.abc import Callable
from dataclasses import replace

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Store, Tx, Workspaces
from clawdforge.core.rules.folders import need_free_folder
from clawdforge.core.rules.leases import check_lease
from clawdforge.core.rules.turns import need_session
from clawdforge.wire.errors import WorkspaceChanged, WorkspaceRefused


class KnownWorkspaces:
    def __init__(
        self,
        store: Store,
        workspaces: Workspaces,
        here: Callable[[], str | None] = lambda: None,
        anywhere: str = "",
    ) -> None:
        """`here` is this node's data folder, where there may be other nodes. `anywhere` is the app that may
        use every folder as long as there are no roots."""
        self._store = store
        self._workspaces = workspaces
        self._here = here
        self._anywhere = anywhere

    def is_here(self, session: SessionRow) -> bool:
        """Whether the session's folder can be worked in on this machine."""
        try:
            self._workspaces.identify(session.cwd, session.workspace_identity)
        except WorkspaceChanged:
            return False
        return True

    async def is_offered(self, session: SessionRow) -> bool:
        """Whether a folder that a caller named can be worked in at this node."""
        try:
            identity, above = await self._look(session)
            if above is not None:
                row, folders = replace(session, workspace_identity=identity), above
                await self._store.read(session.app_name, lambda view: need_free_folder(view, row, folders))
        except (WorkspaceChanged, WorkspaceRefused):
            return False
        return True

    async def confirm(self, session: SessionRow, fence: int | None = None) -> SessionRow:
        """The session, with its folder's identity. WorkspaceChanged when another folder has its name.

        A session from before identities were recorded, or of a data folder that was copied here, has none:
        what is there now is recorded. `fence` is that of the turn that is to run.
        """
        identity, above = await self._look(session)
        here = None if session.own_cwd else self._here()
        if identity == session.workspace_identity and (here is None or here in session.identities):
            return session
        if session.workspace_identity is not None and here is None:
            return session
        session_id = session.session_id

        def work(tx: Tx) -> SessionRow:
            if fence is not None:
                check_lease(tx, session_id, fence)
            row = replace(need_session(tx, session_id), workspace_identity=identity)
            if above is not None:
                need_free_folder(tx, row, above)
            known = row.identities if here is None else {**row.identities, here: identity}
            tx.change_session(session_id, workspace_identity=identity, identities=known)
            return replace(session, workspace_identity=identity, identities=known)

        return await self._store.write(session.app_name, work)

    async def _look(self, session: SessionRow) -> tuple[str, tuple[str, ...] | None]:
        """The identity of the folder here; those of the folders above it, if the session comes from another
        node. WorkspaceChanged or WorkspaceRefused when it cannot be worked in."""
        known, recorded = session.identities, session.workspace_identity
        here = None if session.own_cwd else self._here()
        if here is None or (recorded is not None and (not known or known.get(here) == recorded)):
            return self._workspaces.identify(session.cwd, recorded), None
        app = await self._store.read(session.app_name, lambda view: view.app_row())
        granted = () if app is None else app.workspace_roots
        anywhere = session.app_name == self._anywhere
        found = self._workspaces.check(session.cwd, granted, anywhere=anywhere)
        if str(found.path) != session.cwd:
            raise WorkspaceChanged("there is a link on the way to the session's folder at this server")
        return self._workspaces.identify(session.cwd, known.get(here) or found.identity), found.above
