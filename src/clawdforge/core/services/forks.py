"""Forks: a new session with the same history, agent memory and workspace as another; both continue.

The home is copied before the new session can be seen: no prompt can reach it before it has its memory.
"""

from dataclasses import dataclass, replace

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import Homes, Snapshots, Store, Tx, View
from clawdforge.core.rules import memory
from clawdforge.core.rules.activity import note_activity
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.sessions import SessionState, admit_session, announce_session, unseen_until
from clawdforge.core.rules.turns import need_session
from clawdforge.core.running.folder_holds import FolderHolds
from clawdforge.core.running.known_workspaces import KnownWorkspaces
from clawdforge.core.running.long_writes import LongWrite
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import SessionBusy, StoreUnavailable, TurnNotFound
from clawdforge.wire.session import ForkRequest
from clawdforge.wire.turn import TurnState

TRIES = 5
PURGE_ROWS = 200


class ForkService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        supervisor: Supervisor,
        homes: Homes,
        snapshots: Snapshots,
        known: KnownWorkspaces,
        folders: FolderHolds,
        quotas: Quotas = NO_QUOTAS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._homes = homes
        self._snapshots = snapshots
        self._known = known
        self._folders = folders
        self._quotas = quotas

    async def fork(self, app: str, session_id: str, request: ForkRequest) -> SessionState:
        """Fork a session. While a turn runs, the fork ends with the last turn that has ended."""
        session, turn_index = await self._store.read(
            app,
            lambda view: (need_session(view, session_id), _last_turn(view, session_id, request)),
        )
        await self._store.read(app, self._quotas.check_room)  # before its home is copied
        await self._known.confirm(session)
        async with self._folders.enter(session):
            return await self._fork(app, session, turn_index, request)

    async def _fork(
        self, app: str, session: SessionRow, turn_index: int, request: ForkRequest
    ) -> SessionState:
        session_id = session.session_id
        await self._supervisor.wait_for_copy(session_id, turn_index)
        target, now = new_id(), self._clock.now()
        try:
            agent_session_id = (
                await self._homes.branch(session_id, target, turn_index) if turn_index else None
            )
            await self._snapshots.branch(session, target, turn_index)
            plan = Plan(session_id, target, turn_index, agent_session_id, request, self._quotas, now)
            state = await self._copy_unchanged(app, plan)
        except StoreUnavailable:
            raise  # the session may exist; what is left if it does not, the sweeper or the next start finds
        except BaseException:
            if await self._discard(app, target):
                await self._homes.remove(target)
            raise
        self._supervisor.measure(app, target)
        return state

    async def _copy_unchanged(self, app: str, plan: "Plan") -> SessionState:
        for _ in range(TRIES):
            state = await self._copy(app, plan)
            if state is not None:
                return state
        raise SessionBusy("the history of this session keeps changing; try again later")

    async def _copy(self, app: str, plan: "Plan") -> SessionState | None:
        """Copy the history, the first slice of it in the transaction that begins it, which may be all.

        Returns None if the history was changed meanwhile. Nobody sees the new session before it is whole;
        after a crash it is one that was deleted.
        """
        copying = LongWrite(self._store, app)
        found = await copying.step(lambda tx: _begin(tx, plan))
        while isinstance(found, Copied):
            found = await copying.step(lambda tx, so_far=found: _go_on(tx, plan, so_far))  # type: ignore[misc]
        if found is None:
            await self._discard(app, plan.target)
        return found

    async def _discard(self, app: str, target: str) -> bool:
        """Remove what was copied. False if the session is whole: who broke off came too late for it."""
        is_whole = await self._store.write(app, lambda tx: tx.session(target) is not None)
        if is_whole:  # asked by a write, which comes after those that were on their way
            return False
        await LongWrite(self._store, app).repeat(lambda tx: tx.purge(target, PURGE_ROWS))
        return True


@dataclass(frozen=True, slots=True)
class Plan:
    """A fork: from which session, as which, and up to which turn."""

    source: str
    target: str
    turn_index: int
    agent_session_id: str | None
    request: ForkRequest
    quotas: Quotas
    at: Micros


@dataclass(frozen=True, slots=True)
class Copied:
    """How far a copy has come, and the history that it is a copy of."""

    after: int
    through: int
    history: tuple[int, tuple[int, ...]]


def _last_turn(view: View, session_id: str, request: ForkRequest) -> int:
    """The turn that the fork ends with; 0 when it ends before the first."""
    need_session(view, session_id, request.expected_head)
    wanted = request.after_turn
    if wanted == 0:
        return 0
    if wanted is None:
        active = view.active_turn(session_id)
        first = view.last_message(session_id, "user") if active else None
        while first is not None and active is not None and first.turn != active.turn_index:
            first = view.last_message(session_id, "user", before=first.seq)
        return view.last_spoken_turn(session_id, before=first.seq if first else None)
    turn = view.turn(session_id, wanted)
    if turn is None or turn.cut or turn.state is not TurnState.ENDED or turn.started_at is None:
        raise TurnNotFound("the present history has no such ended turn; GET /sessions/{id}/turns lists them")
    return wanted


def _begin(tx: Tx, plan: Plan) -> Copied | SessionState | None:
    _last_turn(tx, plan.source, plan.request.model_copy(update={"after_turn": plan.turn_index}))
    source = need_session(tx, plan.source)
    row = _build_row(source, plan.target, plan.request, plan.at)
    admit_session(tx, row, plan.quotas)
    tx.add_session(replace(row, deleted_at=unseen_until(row), forked_after=plan.turn_index))
    through = tx.last_of_fork(plan.source, plan.turn_index)
    return _go_on(tx, plan, Copied(0, through, (source.context, source.redo)))


def _go_on(tx: Tx, plan: Plan, so_far: Copied) -> Copied | SessionState | None:
    """Copy one slice, and if it is the last, show the session."""
    source = need_session(tx, plan.source)
    if (source.context, source.redo) != so_far.history:
        return None
    after = tx.copy_history(plan.source, plan.target, after=so_far.after, through=so_far.through, at=plan.at)
    plan.quotas.check_room(tx, 0)
    if after < so_far.through:
        return replace(so_far, after=after)
    row = _build_row(source, plan.target, plan.request, plan.at)
    admit_session(tx, row, plan.quotas)
    tx.reveal_session(plan.target)
    fresh = memory.TRANSCRIPT if need_session(tx, plan.target).message_count else memory.NEW
    how = memory.LOAD if plan.agent_session_id else fresh
    tx.change_session(plan.target, context_plan=how, agent_session_id=plan.agent_session_id)
    note_activity(tx, plan.target)
    brought = tx.count_brought(plan.target)
    origin = {"forked_from": plan.source, "after_turn": plan.turn_index, "brought": brought}
    return announce_session(tx, row, plan.at, origin)


def _build_row(source: SessionRow, target: str, request: ForkRequest, at: Micros) -> SessionRow:
    return replace(
        SessionRow(
            app_name=source.app_name,
            session_id=target,
            agent=source.agent,
            cwd=source.cwd,
            created_at=at,
            updated_at=at,
        ),
        model=source.model,
        persona=source.persona,
        instructions=source.instructions,
        own_cwd=source.own_cwd,
        folder=source.folder,
        workspace_identity=source.workspace_identity,
        identities=source.identities,
        title=source.title if request.title is None else request.title,
        meta=source.meta,
        labels=source.labels,
        permission_mode=source.permission_mode,
        on_interrupt=source.on_interrupt,
        retention=source.retention,
        plan_mode=source.plan_mode,
        project_key=source.project_key,
        mcp_servers=source.mcp_servers,
        forked_from=source.session_id,
        last_turn_at=at,
    )
