"""Forks: a new session with the same history, agent memory and workspace as another; both continue.

The home is copied before the new session is stored, so that no prompt can reach it before it has its memory.
"""

from dataclasses import replace

from clawdforge.core.model import Clock, SessionRow, new_id
from clawdforge.core.ports import Homes, Snapshots, Store, Tx, View
from clawdforge.core.rules import memory
from clawdforge.core.rules.sessions import SessionState, admit_session, announce_session
from clawdforge.core.rules.turns import need_session
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import TurnNotFound
from clawdforge.wire.session import ForkRequest
from clawdforge.wire.turn import TurnState


class ForkService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        supervisor: Supervisor,
        homes: Homes,
        snapshots: Snapshots,
        max_live_sessions: int,
    ) -> None:
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._homes = homes
        self._snapshots = snapshots
        self._max_live = max_live_sessions

    async def fork(self, app: str, session_id: str, request: ForkRequest) -> SessionState:
        """Fork a session. While a turn runs, the fork ends with the last turn that has ended."""
        turn_index = await self._store.read(app, lambda view: _last_turn(view, session_id, request))
        await self._supervisor.wait_for_copy(session_id, turn_index)
        target, now = new_id(), self._clock.now()
        agent_session_id = await self._homes.branch(session_id, target, turn_index) if turn_index else None
        await self._snapshots.branch(session_id, target)
        try:
            return await self._store.write(
                app,
                lambda tx: _fork(
                    tx, session_id, target, turn_index, agent_session_id, request, self._max_live, now
                ),
            )
        except BaseException:
            await self._homes.remove(target)
            raise


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


def _fork(
    tx: Tx,
    source: str,
    target: str,
    turn_index: int,
    agent_session_id: str | None,
    request: ForkRequest,
    max_live: int,
    at: Micros,
) -> SessionState:
    _last_turn(tx, source, request.model_copy(update={"after_turn": turn_index}))
    row = _build_row(need_session(tx, source), target, request, at)
    admit_session(tx, row, max_live)
    tx.add_session(row)
    tx.copy_history(source, target, through_turn=turn_index, at=at)
    fresh = memory.TRANSCRIPT if need_session(tx, target).message_count else memory.NEW
    plan = memory.LOAD if agent_session_id else fresh
    tx.change_session(target, context_plan=plan, agent_session_id=agent_session_id)
    return announce_session(tx, row, at, {"forked_from": source, "after_turn": turn_index})


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
        title=source.title if request.title is None else request.title,
        meta=source.meta,
        labels=source.labels,
        permission_mode=source.permission_mode,
        on_interrupt=source.on_interrupt,
        retention=source.retention,
        plan_mode=source.plan_mode,
        project_key=source.project_key,
        forked_from=source.session_id,
        last_turn_at=at,
    )
