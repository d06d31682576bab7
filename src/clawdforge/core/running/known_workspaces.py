"""Makes sure that a session's folder is the one that it was made in, before anybody works there."""

from dataclasses import replace

from clawdforge.core.model import SessionRow
from clawdforge.core.ports import Store, Workspaces


class KnownWorkspaces:
    def __init__(self, store: Store, workspaces: Workspaces) -> None:
        self._store = store
        self._workspaces = workspaces

    async def confirm(self, session: SessionRow) -> SessionRow:
        """The session, with its folder's identity. WorkspaceChanged when another folder has its name.

        A session from before identities were recorded, or of a data folder that was copied here, has none:
        what is there now is recorded.
        """
        identity = self._workspaces.identify(session.cwd, session.workspace_identity)
        if session.workspace_identity is not None:
            return session
        await self._store.write(
            session.app_name,
            lambda tx: tx.change_session(session.session_id, workspace_identity=identity),
        )
        return replace(session, workspace_identity=identity)
