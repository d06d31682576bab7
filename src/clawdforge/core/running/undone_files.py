"""Puts the files of a workspace back for an undo or a redo, at the node where they and their snapshots are.

Whoever calls this holds everybody who works there, wherever their agents were.
"""

from collections.abc import Callable
from typing import Final

from clawdforge.core.models.nodes import NodeRow, Telling, WishKind, WishRow
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Snapshots, Store, View
from clawdforge.core.ports.system import SystemView
from clawdforge.core.rules.cuts import FileTrees
from clawdforge.core.rules.turns import need_session
from clawdforge.core.running.known_workspaces import KnownWorkspaces
from clawdforge.core.running.questions import Questions
from clawdforge.wire.base import Json
from clawdforge.wire.errors import SessionBusy, Unsupported
from clawdforge.wire.nodes import NodeState

OLDER: Final = "the server that has the files runs an older version; upgrade it, or undo without files"
WENT_ON: Final = "the session went on; its files were left as they are"


class UndoneFiles:
    def __init__(
        self,
        store: Store,
        snapshots: Snapshots,
        known: KnownWorkspaces,
        questions: Questions,
        here: Callable[[], str | None],
        note: Callable[[str, str], None],
    ) -> None:
        """`here` is this node's data folder, where there may be other nodes. `note` is told of an app and a
        session whose files were put back here."""
        self._store = store
        self._snapshots = snapshots
        self._known = known
        self._questions = questions
        self._here = here
        self._note = note

    async def find_node(self, session: SessionRow) -> str | None:
        """The other node, if one lives, where the session's turns have left its files and snapshots."""
        folder = session.folder if session.own_cwd else session.home_at
        here = self._here()
        if here is None or folder in (None, here):
            return None

        def look(view: SystemView) -> NodeRow | None:
            found = (row for row in view.nodes() if row.folder == folder)
            return next((row for row in found if row.state is not NodeState.DEAD), None)

        found = await self._store.read_system(look)
        if found is None:
            return None
        if found.tells and not Telling.read(found.tells).answers:  # it tells nothing before its first beat
            raise Unsupported(OLDER)
        return found.node

    async def look(self, session: SessionRow, node: str | None, target: int | str) -> FileTrees:
        """Record the workspace as it is now, and find the tree that it gets: that of a turn, or itself.

        `node` is what `find_node` found; one that comes or goes later changes nothing.
        """
        if node is None:
            return await self._look_here(session, target)
        said = await self._questions.ask(node, WishKind.RECORD_FILES, session, {"target": target})
        return FileTrees(said["before"], said["after"])

    async def put_back(self, session: SessionRow, node: str | None, tree: str) -> None:
        """Make the workspace what it was."""
        if node is None:
            await self._put_back_here(session, tree)
        else:
            await self._questions.ask(node, WishKind.RESTORE_FILES, session, {"tree": tree})

    async def do_here(self, wish: WishRow) -> None:
        """What another node asks, which has the session but not its files."""

        async def work(words: Json) -> Json:
            session = await self._store.read(wish.app_name, lambda view: need_session(view, wish.session_id))
            if wish.kind is WishKind.RECORD_FILES:
                return (await self._look_here(session, words["target"])).fields()
            await self._put_back_here(session, words["tree"])
            return {}

        await self._questions.answer(wish, work)

    async def _look_here(self, session: SessionRow, target: int | str) -> FileTrees:
        session = await self._known.confirm(session)
        after = target if isinstance(target, str) else await self._snapshots.tree_of(session, target)
        return FileTrees(await self._snapshots.record_present(session), after)

    async def _put_back_here(self, session: SessionRow, tree: str) -> None:
        """Whoever wished it may hold nobody any more: then a turn has put the files back itself."""
        session_id = session.session_id

        def look(view: View) -> SessionRow:
            row = need_session(view, session_id)
            if row.files_plan != tree or view.active_turn(session_id) is not None:
                raise SessionBusy(WENT_ON)
            return row

        # `_look_here` may have been the first to record which folder it is, and no other may be changed.
        row = await self._known.confirm(await self._store.read(session.app_name, look))
        await self._snapshots.restore(row, tree)
        self._note(session.app_name, session.session_id)
