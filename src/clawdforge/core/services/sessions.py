"""Creates, lists, changes, closes, reopens and deletes the sessions of an app."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from clawdforge.core.clock import Clock
from clawdforge.core.ids import new_id
from clawdforge.core.log import LogService
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import AppRow, PersonaRow, SessionQuery, SessionRow
from clawdforge.core.models.workspaces import Workspace
from clawdforge.core.pacing.long_reads import read_rows
from clawdforge.core.ports import Agents, Store, Tx, View, Workspaces
from clawdforge.core.rules.mcp_servers import check_secrets, write_servers
from clawdforge.core.rules.permission_modes import choose_mode
from clawdforge.core.rules.personas import find_persona
from clawdforge.core.rules.quotas import NO_QUOTAS, Quotas
from clawdforge.core.rules.sessions import (
    SessionState,
    admit_session,
    close_session,
    create_session,
    patch_session,
    state_of,
    states_of,
)
from clawdforge.core.rules.turns import need_session, withdraw_some
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.folder_holds import FolderHolds
from clawdforge.core.running.spares import Kind, Spare, Spares
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.unbroken import Unbroken
from clawdforge.wire.base import Json
from clawdforge.wire.errors import Forbidden, ForgeAPIError, SessionBusy, StoreUnavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.local import project_key
from clawdforge.wire.session import CreateSession, PatchSession, PermissionMode

LATEST = 1000
MAX_MODELS = 200
CLOSE_WAITS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session that is not stored yet, and the identities of the folders above its own."""

    row: SessionRow
    above: tuple[str, ...]
    spare: Spare | None = None  # whose agent, folders and id it gets


class Chosen(NamedTuple):
    """What a request for a session comes to. The workspace is the one that it names."""

    persona: PersonaRow
    agent: str
    mode: PermissionMode
    workspace: Workspace | None


class SessionService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        agents: Agents,
        workspaces: Workspaces,
        log: LogService,
        supervisor: Supervisor,
        folders: FolderHolds,
        spares: Spares,
        quotas: Quotas = NO_QUOTAS,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._elsewhere = elsewhere
        self._spares = spares
        self._store = store
        self._clock = clock
        self._agents = agents
        self._workspaces = workspaces
        self._log = log
        self._supervisor = supervisor
        self._folders = folders
        self._quotas = quotas
        self._unbroken = Unbroken()

    async def create(
        self,
        app: str,
        request: CreateSession,
        *,
        plan_mode: bool | None = None,
        project: str | None = None,
        may_decide: bool = True,
    ) -> SessionState:
        """`plan_mode` and `project` override what the persona and the folder say.

        A caller that may not decide what agents ask for cannot have it approved in advance either.
        """
        async with self.prepare(
            app, request, plan_mode=plan_mode, project=project, may_decide=may_decide
        ) as new:
            return await self._store.write(app, lambda tx: self.store(tx, new))

    def store(self, tx: Tx, new: NewSession) -> SessionState:
        """Store what was prepared, in a transaction that does more than that."""
        is_there = new.spare is not None
        return create_session(
            tx, new.row, self._quotas, new.row.created_at, above=new.above, is_there=is_there
        )

    @asynccontextmanager
    async def prepare(
        self,
        app: str,
        request: CreateSession,
        *,
        plan_mode: bool | None = None,
        project: str | None = None,
        may_decide: bool = True,
        is_new: bool = True,
    ) -> AsyncIterator[NewSession]:
        """Build a session's row and make its workspace, for a block that stores it with `store`.

        One that is not new, such as an import, or that may not be stored in the end, gets no spare agent.

        When the block refuses the session, the folder goes too. After a crash in between, and where nobody
        knows whether the session was stored, the next start of the server finds what has no session.
        """
        new = await self._prepare(app, request, plan_mode, project, may_decide, is_new)
        async with self._folders.enter(new.row):
            try:
                yield new
            except ForgeAPIError as error:
                if not isinstance(error, StoreUnavailable):
                    await self._take_back(new)
                raise

    async def _take_back(self, new: NewSession) -> None:
        """The session was not stored."""
        if new.spare is not None:
            self._spares.give_back(new.spare)
        elif new.row.own_cwd:
            await self._workspaces.set_aside(new.row.session_id)

    async def check(self, app: str, request: CreateSession, *, may_decide: bool) -> None:
        """Refuse what could not be made now, without making it."""
        await self._look(app, request, may_decide=may_decide)

    async def _look(self, app: str, request: CreateSession, *, may_decide: bool) -> "Chosen":
        servers = request.mcp_servers or {}
        if servers and not may_decide:
            raise Forbidden("MCP servers run without a question; this token may not name any: leave them out")

        def look(view: View) -> tuple[PersonaRow, AppRow | None]:
            if servers:
                check_secrets(servers, view.secrets())
            return find_persona(view, request.persona, self._agents.default), view.app_row()

        persona, owner = await self._store.read(app, look)
        agent = self._need_agent(request.agent or persona.agent)
        mode = choose_mode(request.permission_mode, persona.permission_mode, may_decide=may_decide)
        granted = () if owner is None else owner.workspace_roots
        named = (
            self._workspaces.check(request.cwd, granted, anywhere=app == LOCAL_APP) if request.cwd else None
        )
        return Chosen(persona, agent, mode, named)

    def _need_agent(self, name: str) -> str:
        """UnknownAgent when it can be started neither here nor at another node."""
        is_elsewhere = self._elsewhere is not None and name in self._elsewhere.agents
        return name if is_elsewhere else self._agents.spec(name).name

    async def _prepare(
        self,
        app: str,
        request: CreateSession,
        plan_mode: bool | None,
        project: str | None,
        may_decide: bool,
        is_new: bool,
    ) -> NewSession:
        persona, agent, mode, named = await self._look(app, request, may_decide=may_decide)
        model = request.model or persona.model
        plans = persona.plan_mode if plan_mode is None else plan_mode
        spare = self._spares.take(Kind(app, agent, model, plans)) if is_new and named is None else None
        session_id, now = spare.session_id if spare else new_id(), self._clock.now()
        workspace = named or (spare.workspace if spare else self._workspaces.make(session_id))
        cwd = str(workspace.path)
        here = self._supervisor.folder
        row = SessionRow(
            app_name=app,
            session_id=session_id,
            agent=agent,
            cwd=cwd,
            own_cwd=not request.cwd,
            folder=None if request.cwd else here,
            workspace_identity=workspace.identity,
            identities={here: workspace.identity} if here and request.cwd else {},
            created_at=now,
            updated_at=now,
            model=model,
            persona=request.persona,
            instructions=persona.instructions,
            plan_mode=plans,
            title=request.title or "",
            meta=request.meta,
            labels=tuple(request.labels),
            permission_mode=mode,
            on_interrupt=request.on_interrupt,
            retention=request.retention,
            project_key=project or (project_key(cwd) if request.cwd else None),
            parent_session_id=request.parent_session_id,
            mcp_servers=write_servers(request.mcp_servers or {}),
        )
        return NewSession(row, workspace.above, spare)

    async def get(self, app: str, session_id: str) -> SessionState:
        return await self._store.read(app, lambda view: state_of(view, need_session(view, session_id)))

    async def models(self, app: str) -> list[str]:
        """The models that the app has named lately, in sessions and personas."""

        def work(view: View) -> set[str]:
            return {*view.models(LATEST), *(row.model for row in view.personas() if row.model)}

        return sorted(await self._store.read(app, work))[:MAX_MODELS]

    async def count(self, app: str) -> int:
        """The app's open sessions."""
        return await self._store.read(app, lambda view: view.count_app_sessions())

    async def set_model(self, app: str, session_id: str, model: str, noted: Json) -> SessionState:
        """Change the model, and in the same step what a caller keeps beside it in `meta`; None is nothing."""
        now = self._clock.now()

        def work(tx: Tx) -> SessionState:
            before = need_session(tx, session_id).meta
            kept = {name: value for name, value in (before or {}).items() if name not in noted}
            meta = kept | {name: value for name, value in noted.items() if value is not None}
            changes: Json = {"model": model} | ({"meta": meta} if meta != (before or {}) else {})
            return patch_session(tx, session_id, changes, None, self._quotas, now)

        return await self._unbroken.run(self._store.write(app, work))

    def is_own_folder(self, path: str) -> bool:
        """Whether a path is that of a folder which the server made for a session, or of all of those."""
        return self._workspaces.is_own(path)

    async def list(self, app: str, query: SessionQuery) -> tuple[list[SessionState], str | None]:
        def work(view: View) -> tuple[list[SessionState], str | None]:
            rows, cursor = view.sessions(query)
            return states_of(view, rows), cursor

        return await read_rows(self._store, app, query.limit, work)

    async def patch(self, app: str, session_id: str, request: PatchSession) -> SessionState:
        """Change what is given. A new agent is told the transcript; with a new model it keeps its memory."""
        changes: Json = request.model_dump(exclude_unset=True, exclude={"expected_head", "fresh_context"})
        changes = {name: value for name, value in changes.items() if value is not None or name == "model"}
        if "agent" in changes:
            changes["agent"] = self._need_agent(changes["agent"])
        if "labels" in changes:
            changes["labels"] = tuple(changes["labels"])
        return await self._unbroken.run(self._patch(app, session_id, changes, request))

    async def _patch(self, app: str, session_id: str, changes: Json, request: PatchSession) -> SessionState:
        now, head, fresh = self._clock.now(), request.expected_head, request.fresh_context
        try:
            return await self._store.write(
                app, lambda tx: patch_session(tx, session_id, changes, head, self._quotas, now, fresh=fresh)
            )
        finally:
            # What is queued may have waited for an agent that is paused. After a failure too: the change may
            # be on disk all the same.
            if "agent" in changes:
                self._supervisor.wake(app, session_id)

    async def label(self, app: str, session_id: str, label: str, *, on: bool) -> SessionState:
        """Add or remove one label and leave the others unchanged."""
        now = self._clock.now()

        def work(tx: Tx) -> SessionState:
            others = tuple(one for one in need_session(tx, session_id).labels if one != label)
            return patch_session(
                tx, session_id, {"labels": (*others, label) if on else others}, None, self._quotas, now
            )

        return await self._store.write(app, work)

    async def close(self, app: str, session_id: str) -> bool:
        """Cancel the running turn, end the agent and mark the session closed.

        True if it was closed before. An agent that does not end is no longer waited for after a while; its
        home and workspace stay, and no other agent of this session starts, until it has ended.
        """
        at = self._clock.now()
        while await self._store.write(app, lambda tx: withdraw_some(tx, session_id, at)):
            pass  # a long queue would keep others waiting if it were emptied in one transaction
        for wait in CLOSE_WAITS:
            now = self._clock.now()
            closed = await self._store.write(
                app, partial(close_session, session_id=session_id, event="close", at=now)
            )
            if closed is not None:
                break
            if not await self._supervisor.cancel(app, session_id):
                await asyncio.sleep(wait)
        else:
            raise SessionBusy
        await self._supervisor.end_agent(app, session_id)
        for child in await self._children(app, session_id):
            await self.close(app, child)
        return closed

    async def let_go(self, app: str, session_id: str) -> None:
        """End the agent as soon as no turn runs; the session stays as it is."""
        await self._store.read(app, lambda view: need_session(view, session_id))
        await self._supervisor.retire_agent(app, session_id)

    async def reopen(self, app: str, session_id: str) -> SessionState:
        now = self._clock.now()

        def work(tx: Tx) -> SessionState:
            session = need_session(tx, session_id)
            if session.closed_at is not None:
                admit_session(tx, session, self._quotas)
                tx.change_session(session_id, closed_at=None, last_turn_at=now)
                tx.append(session_id, [draft(EventType.SESSION_REOPENED, None, now)])
            return state_of(tx, need_session(tx, session_id))

        session = await self._store.read(app, lambda view: need_session(view, session_id))
        async with self._folders.enter(session):
            return await self._store.write(app, work)

    async def delete(self, app: str, session_id: str) -> None:
        """Mark the session deleted, which hides it everywhere.

        The sweeper removes rows, home and files later.
        """
        now = self._clock.now()

        def work(tx: Tx) -> bool:
            if need_session(tx, session_id).closed_at is None:
                return False  # somebody has opened it again, and a turn may run in it
            tx.change_session(session_id, deleted_at=now)
            tx.audit(session_id, "hard_delete", now, {"by": "caller"})
            return True

        for _ in CLOSE_WAITS:
            await self.close(app, session_id)
            if await self._store.write(app, work):
                break
        else:
            raise SessionBusy
        self._log.end_readers(session_id)

    async def discard(self, app: str, made: SessionRow) -> None:
        """Delete a session that was made for a prompt which was refused.

        It stays if something was sent to it since: others may have found it, and wait for their answer.
        """
        now = self._clock.now()

        def work(tx: Tx) -> None:
            row = tx.session(made.session_id)
            if row is None or row.last_turn != made.last_turn:
                return
            close_session(tx, made.session_id, "close", now)
            tx.change_session(made.session_id, deleted_at=now)
            tx.audit(made.session_id, "hard_delete", now, {"by": "caller"})

        await self._store.write(app, work)

    async def _children(self, app: str, session_id: str) -> Sequence[str]:
        query = SessionQuery(include_closed=False, parent=session_id, limit=1000)
        rows, _ = await self._store.read(app, lambda view: view.sessions(query))
        return [row.session_id for row in rows]
