"""What a turn changed in the files of its workspace, from the trees that were recorded around it."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from clawdforge.core.models.file_changes import FileChanges, FileDiff
from clawdforge.core.ports import Store
from clawdforge.core.ports.trees import Trees, TreesUnread
from clawdforge.core.rules.turn_base import Beginning, explain_no_tree, find_beginning, find_moved
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.errors import FileNotFound
from clawdforge.wire.turn_changes import ChangeBase

COPY_SECS: Final = 10.0
MAX_PAGES: Final = 50
"""Of events between two turns that are looked through; an undo that lies further back is not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Two trees to compare, and the turn that the old one is of; or the reason why there are none."""

    old: str = ""
    new: str = ""
    base_turn: int | None = None
    reason: str | None = None


class TurnChangeService:
    def __init__(self, store: Store, supervisor: Supervisor, trees: Trees) -> None:
        self._store = store
        self._supervisor = supervisor
        self._trees = trees

    async def list(
        self, app: str, session_id: str, turn_index: int, base: ChangeBase
    ) -> tuple[Found, FileChanges]:
        found = await self._find(app, session_id, turn_index, base)
        if found.reason is not None:
            return found, FileChanges()
        try:
            return found, await self._trees.compare(app, session_id, found.old, found.new)
        except TreesUnread as error:
            return Found(base_turn=found.base_turn, reason=_cannot(error)), FileChanges()

    async def diff(
        self, app: str, session_id: str, turn_index: int, base: ChangeBase, path: str
    ) -> tuple[Found, FileDiff]:
        found = await self._find(app, session_id, turn_index, base)
        if found.reason is not None:
            return found, FileDiff()
        try:
            diff = await self._trees.diff(app, session_id, found.old, found.new, path)
        except TreesUnread as error:
            return Found(base_turn=found.base_turn, reason=_cannot(error)), FileDiff()
        if diff is None:
            raise FileNotFound("this file did not change there; without path, all that did are listed")
        return found, diff

    async def _find(self, app: str, session_id: str, turn_index: int, base: ChangeBase) -> Found:
        begun = await self._store.read(app, lambda view: find_beginning(view, session_id, turn_index))
        reason = explain_no_tree(begun.turn)
        if reason is not None:
            return Found(reason=reason)
        await self._supervisor.wait_for_copy(session_id, turn_index, within=COPY_SECS)
        new = await self._trees.find(session_id, turn_index)
        if new is None:
            why = await self._trees.explain_missing(session_id, turn_index)
            return Found(reason=_not_recorded("after this turn", why))
        if base is ChangeBase.FIRST:
            oldest = await self._trees.find_oldest(session_id)
            if oldest is None or oldest[0] >= turn_index:
                return Found(reason=_not_recorded("before this turn", None))
            return Found(old=oldest[1], new=new, base_turn=oldest[0])
        return await self._find_base(app, begun, new)

    async def _find_base(self, app: str, begun: Beginning, new: str) -> Found:
        session_id, before = begun.session.session_id, begun.before
        moved = await self._find_moved(app, begun)
        if moved is None and before is None:
            moved = await self._trees.find_begun(session_id)
            before = begun.session.forked_after
        if moved is not None:
            return Found(old=moved, new=new)
        old = None if before is None else await self._trees.find(session_id, before)
        if old is None:
            why = None if before is None else await self._trees.explain_missing(session_id, before)
            return Found(reason=_not_recorded("before this turn", why))
        return Found(old=old, new=new, base_turn=before)

    async def _find_moved(self, app: str, begun: Beginning) -> str | None:
        """The last tree that an undo or redo gave the workspace after the turn before."""
        if begun.walk is None:
            return None
        session_id, (after, before) = begun.session.session_id, begun.walk
        moved: str | None = None
        place: int | None = after
        for _ in range(MAX_PAGES):
            if place is None:
                break
            look = partial(find_moved, session_id=session_id, after=place, before=before)
            tree, place = await self._store.read(app, look)
            moved = tree or moved
        return moved


def _not_recorded(when: str, why: str | None) -> str:
    return f"the workspace's files were not recorded {when}" + (f": {why}" if why else "")


def _cannot(error: TreesUnread) -> str:
    return f"the files cannot be compared: {error}"
