"""A transaction on the small world, as much of it as the rules of leases and of turns ask for."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, Final

from clawdforge.core.models.events import Draft
from clawdforge.core.models.rows import SessionRow, TurnRow
from clawdforge.core.ports import LeaseLost
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import TurnState
from proofs.leases.world import Turn, Violation, World

SESSION: Final = "session"


class SmallTx:
    """Without fences, what they would have refused is a violation, and so is a turn that begins twice."""

    def __init__(self, world: World, *, has_fences: bool) -> None:
        self.world = world
        self._has_fences = has_fences

    def session(self, _session_id: str) -> SessionRow:
        world = self.world
        return _session_row(world.holder, world.fence, world.written, world.folder)

    def turn(self, _session_id: str, turn_index: int) -> TurnRow:
        return _turn_row(turn_index, self.world.turns[turn_index - 1])

    def active_turn(self, _session_id: str) -> TurnRow | None:
        return self._first(TurnState.RUNNING)

    def next_queued(self, _session_id: str, _first: Collection[str]) -> TurnRow | None:
        return self._first(TurnState.QUEUED)

    def count_queued(self, _session_id: str, policies: Collection[str] | None = None) -> int:
        return 0 if policies else sum(turn.state == TurnState.QUEUED for turn in self.world.turns)

    def is_alive(self, node: str) -> bool:
        return self.world.lives(node)

    def node_with(self, folder: str) -> str | None:
        return self.world.find_node(folder)

    def folder_of(self, node: str) -> str | None:
        return next((m.folder for m in self.world.members if m.name == node), None)

    def claim(self, _session_id: str, node: str) -> int:
        self.world = self.world._replace(holder=node, fence=self.world.fence + 1, written=0)
        return self.world.fence

    def change_session(self, _session_id: str, **changes: Any) -> None:
        known = {name: value for name, value in changes.items() if name in ("holder", "folder")}
        self.world = self.world._replace(**known)

    def change_turn(self, _session_id: str, turn_index: int, **changes: Any) -> None:
        self._put(turn_index, state=str(changes["state"]))

    def append(
        self,
        _session_id: str,
        drafts: Sequence[Draft],
        *,
        fence: int | None = None,
        written: int | None = None,
    ) -> int:
        if fence is not None and fence != self.world.fence:
            if self._has_fences:
                raise LeaseLost
            if drafts:
                raise Violation(f"claim {fence} writes after claim {self.world.fence}")
        for one in drafts:
            self._note(one.type, one.turn or 0)
        if written is not None:
            self.world = self.world._replace(written=written)
        return 1

    def _note(self, kind: EventType, index: int) -> None:
        turn = self.world.turns[index - 1]
        if kind is EventType.TURN_STARTED:
            if turn.has_begun:
                raise Violation(f"turn {index} begins twice")
            if any(one.has_begun and not one.has_ended for one in self.world.turns):
                raise Violation(f"turn {index} begins in another")
            self._put(index, has_begun=True)
        elif turn.has_ended:
            raise Violation(f"{kind} of turn {index} after its end")
        elif kind is EventType.TURN_ENDED:
            self._put(index, has_ended=True)

    def _put(self, index: int, **changes: Any) -> None:
        turns = list(self.world.turns)
        turns[index - 1] = turns[index - 1]._replace(**changes)
        self.world = self.world._replace(turns=tuple(turns))

    def _first(self, state: TurnState) -> TurnRow | None:
        for index, turn in enumerate(self.world.turns, 1):
            if turn.state == state:
                return _turn_row(index, turn)
        return None

    def __getattr__(self, name: str) -> Any:
        """Nothing else is there: no budget, message, permission, pause or webhook."""
        if name not in EMPTY:
            raise AttributeError(name)
        return lambda *_args, **_kwargs: EMPTY[name]


EMPTY: Final[dict[str, Any]] = {
    "add_message": 1,
    "last_spoken_turn": 0,
    **dict.fromkeys(("reservations", "pauses", "permissions", "turn_events", "endpoints"), ()),
    **dict.fromkeys(("audit", "add_usage", "last_message", "last_prompts", "pending_prompt"), None),
}


@lru_cache(1 << 12)
def _session_row(holder: str | None, fence: int, written: int, folder: str | None) -> SessionRow:
    return SessionRow(
        app_name="app", session_id=SESSION, agent="agent", cwd="/", created_at=0, updated_at=0,
        holder=holder, fence=fence, written=written, folder=folder,
    )  # fmt: skip


@lru_cache(1 << 12)
def _turn_row(index: int, turn: Turn) -> TurnRow:
    started = 1 if turn.has_begun else None
    return TurnRow(
        session_id=SESSION, turn_index=index, state=TurnState(turn.state), prompt="", queued_at=0,
        started_at=started, first_seq=started,
    )  # fmt: skip
