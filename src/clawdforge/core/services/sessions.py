"""Sessions: created, listed, changed, closed, reopened, deleted. Always under the app that owns them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from clawdforge.core.errors import InvalidRequest, LimitExceeded, PoolFull, SessionBusy
from clawdforge.core.log import LogService
from clawdforge.core.model import Clock, SessionQuery, SessionRow, draft, new_id
from clawdforge.core.ports import Agents, Store, Tx, View, Workspaces
from clawdforge.core.rules import memory
from clawdforge.core.rules.turns import need_open, need_session, withdraw_all
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services import personas
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.event import EventType
from clawdforge.wire.local import project_key
from clawdforge.wire.session import CreateSession, PatchSession, PermissionMode, Retention

MAX_DEPTH = 3
CLOSE_WAITS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session's row and what goes on in it."""

    row: SessionRow
    running_turn: int | None
    queued_turns: int


class SessionService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        agents: Agents,
        workspaces: Workspaces,
        log: LogService,
        supervisor: Supervisor,
        max_live_sessions: int,
    ) -> None:
        self._store = store
        self._clock = clock
        self._agents = agents
        self._workspaces = workspaces
        self._log = log
        self._supervisor = supervisor
        self._max_live = max_live_sessions

    async def create(
        self, app: str, request: CreateSession, *, plan_mode: bool | None = None, project: str | None = None
    ) -> SessionState:
        """`plan_mode` and `project` are given by callers who know better than the persona and the folder."""
        row = await self.prepare(app, request, plan_mode=plan_mode, project=project)
        return await self._store.write(app, lambda tx: create(tx, row, self._max_live, row.created_at))

    async def prepare(
        self, app: str, request: CreateSession, *, plan_mode: bool | None = None, project: str | None = None
    ) -> SessionRow:
        """A session that could be, with its workspace made; it is not stored."""
        persona = await self._store.read(
            app, lambda view: personas.find(view, request.persona, self._agents.default)
        )
        agent = self._agents.spec(request.agent or persona.agent).name
        session_id, now = new_id(), self._clock.now()
        cwd = self._workspaces.check(request.cwd) if request.cwd else self._workspaces.make(session_id)
        return SessionRow(
            app_name=app,
            session_id=session_id,
            agent=agent,
            cwd=str(cwd),
            own_cwd=request.cwd is None,
            created_at=now,
            updated_at=now,
            model=request.model or persona.model,
            persona=request.persona,
            instructions=persona.instructions,
            plan_mode=persona.plan_mode if plan_mode is None else plan_mode,
            title=request.title or "",
            meta=request.meta or {},
            labels=tuple(request.labels),
            permission_mode=request.permission_mode or persona.permission_mode or PermissionMode.APPROVE_ALL,
            on_interrupt=request.on_interrupt,
            retention=request.retention,
            project_key=project or (project_key(str(cwd.resolve())) if request.cwd else None),
            parent_session_id=request.parent_session_id,
        )

    async def get(self, app: str, session_id: str) -> SessionState:
        return await self._store.read(app, lambda view: state(view, need_session(view, session_id)))

    async def list(self, app: str, query: SessionQuery) -> tuple[list[SessionState], str | None]:
        def work(view: View) -> tuple[list[SessionState], str | None]:
            rows, cursor = view.sessions(query)
            return [state(view, row) for row in rows], cursor

        return await self._store.read(app, work)

    async def patch(self, app: str, session_id: str, request: PatchSession) -> SessionState:
        """Change what is given. Another agent or model begins a new context that is told the transcript."""
        changes: Json = request.model_dump(exclude_unset=True, exclude={"expected_head"})
        changes = {name: value for name, value in changes.items() if value is not None or name == "model"}
        if "agent" in changes:
            changes["agent"] = self._agents.spec(changes["agent"]).name
        if "labels" in changes:
            changes["labels"] = tuple(changes["labels"])
        now = self._clock.now()
        return await self._store.write(
            app, lambda tx: _patch(tx, session_id, changes, request.expected_head, self._max_live, now)
        )

    async def label(self, app: str, session_id: str, label: str, *, on: bool) -> SessionState:
        """Put a label on a session or take it off, and leave the others as they are."""
        now = self._clock.now()

        def work(tx: Tx) -> SessionState:
            others = tuple(one for one in need_session(tx, session_id).labels if one != label)
            return _patch(
                tx, session_id, {"labels": (*others, label) if on else others}, None, self._max_live, now
            )

        return await self._store.write(app, work)

    async def close(self, app: str, session_id: str) -> bool:
        """Soft: the record stays. The running turn is cancelled, the agent ended. True when it was closed."""
        for wait in CLOSE_WAITS:
            now = self._clock.now()
            closed = await self._store.write(
                app, partial(close, session_id=session_id, event="close", at=now)
            )
            if closed is not None:
                break
            if not await self._supervisor.cancel(session_id):
                await asyncio.sleep(wait)
        else:
            raise SessionBusy
        await self._supervisor.shut(session_id)
        for child in await self._children(app, session_id):
            await self.close(app, child)
        return closed

    async def reopen(self, app: str, session_id: str) -> SessionState:
        now = self._clock.now()

        def work(tx: Tx) -> SessionState:
            session = need_session(tx, session_id)
            if session.closed_at is not None:
                admit(tx, session, self._max_live)
                tx.change_session(session_id, closed_at=None, last_turn_at=now)
                tx.append(session_id, [draft(EventType.SESSION_REOPENED, None, now)])
            return state(tx, need_session(tx, session_id))

        return await self._store.write(app, work)

    async def delete(self, app: str, session_id: str) -> None:
        """A tombstone: unknown everywhere at once. Rows, home and files go later, bit by bit."""
        await self.close(app, session_id)
        now = self._clock.now()

        def work(tx: Tx) -> None:
            need_session(tx, session_id)
            tx.change_session(session_id, deleted_at=now)
            tx.audit(session_id, "hard_delete", now, {"by": "caller"})

        await self._store.write(app, work)
        self._log.forget(session_id)

    async def _children(self, app: str, session_id: str) -> Sequence[str]:
        query = SessionQuery(include_closed=False, parent=session_id, limit=1000)
        rows, _ = await self._store.read(app, lambda view: view.sessions(query))
        return [row.session_id for row in rows]


def state(view: View, row: SessionRow) -> SessionState:
    active = view.active_turn(row.session_id)
    queued = len(view.queued_turns(row.session_id))
    return SessionState(row, active.turn_index if active else None, queued)


def close(tx: Tx, session_id: str, event: str, at: Micros) -> bool | None:
    """Close an open session with no running turn; None when one runs, True when it was closed already."""
    session = need_session(tx, session_id)
    if session.closed_at is not None:
        return True
    if tx.active_turn(session_id) is not None:
        return None
    withdraw_all(tx, session_id, at)
    tx.change_session(session_id, closed_at=at)
    tx.append(session_id, [draft(EventType.SESSION_CLOSED, None, at, {"why": event})])
    tx.audit(session_id, event, at, {})
    return False


def admit(tx: Tx, row: SessionRow, max_live: int) -> None:
    """Refuse a session that would be one too many, for its app or for the server."""
    app = tx.app_row()
    limit = app.max_sessions if app else None
    if limit is not None and tx.app_sessions() >= limit:
        raise LimitExceeded(f"this app may have {limit} open sessions; close one", retry_after=60)
    _check_pool(tx, row.retention, max_live)


def _check_pool(tx: Tx, retention: Retention, max_live: int) -> None:
    if retention is Retention.TTL and tx.open_sessions() >= max_live:
        raise PoolFull


def create(
    tx: Tx, row: SessionRow, max_live: int, at: Micros, extra: Mapping[str, Any] | None = None
) -> SessionState:
    """Store a session and the event of its making, which also has what is `extra`."""
    admit(tx, row, max_live)
    depth = 0
    if row.parent_session_id is not None:
        depth = need_open(tx, row.parent_session_id).depth + 1
        if depth > MAX_DEPTH:
            raise InvalidRequest(f"sub-sessions go {MAX_DEPTH} deep at most")
    changed: dict[str, Any] = {"depth": depth}
    tx.add_session(row)
    tx.change_session(row.session_id, **changed)
    return announce(tx, row, at, extra or {})


def announce(tx: Tx, row: SessionRow, at: Micros, extra: Mapping[str, Any]) -> SessionState:
    """The first event of a session."""
    fields = {"agent": row.agent, "model": row.model, "cwd": row.cwd, "title": row.title, "meta": row.meta}
    tx.append(row.session_id, [draft(EventType.SESSION_CREATED, None, at, {**fields, **extra})])
    tx.audit(row.session_id, "create", at, {"agent": row.agent, **extra})
    return state(tx, need_session(tx, row.session_id))


def _patch(
    tx: Tx, session_id: str, changes: Json, expected_head: int | None, max_live: int, at: Micros
) -> SessionState:
    session = need_session(tx, session_id, expected_head)
    changed = {name: value for name, value in changes.items() if getattr(session, name) != value}
    if "retention" in changed and session.closed_at is None:
        _check_pool(tx, changed["retention"], max_live)
    if changed.keys() & {"agent", "model"}:
        if tx.active_turn(session_id) is not None:
            raise SessionBusy("the agent and the model cannot be changed while a turn runs")
        told = memory.TRANSCRIPT if session.message_count else memory.NEW
        fresh = {"context": session.context + 1, "context_plan": told, "agent_session_id": None}
        tx.change_session(session_id, **fresh)
    if changed:
        tx.change_session(session_id, **changed)
        tx.append(session_id, [draft(EventType.SESSION_CHANGED, None, at, {"changes": changed})])
    return state(tx, need_session(tx, session_id))
