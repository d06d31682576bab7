"""The operator's pauses: once one is on stable storage, no turn starts there until it is resumed."""

import asyncio

from clawdforge.core.clock import Clock
from clawdforge.core.models.nodes import WishKind, WishRow
from clawdforge.core.models.rows import PauseRow, TurnRow
from clawdforge.core.ports import Agents, Store, SystemTx, View
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.supervisor import Supervisor
from clawdforge.core.services.runs import RunService
from clawdforge.core.unbroken import Unbroken
from clawdforge.wire.errors import AppNotFound
from clawdforge.wire.pauses import PauseRequest, ResumeRequest


class PauseService:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        agents: Agents,
        supervisor: Supervisor,
        elsewhere: Elsewhere,
        runs: RunService,
    ) -> None:
        self._store = store
        self._clock = clock
        self._agents = agents
        self._supervisor = supervisor
        self._elsewhere = elsewhere
        self._runs = runs
        self._unbroken = Unbroken()

    async def find_all(self) -> list[PauseRow]:
        return await self._store.read_system(lambda view: view.pauses())

    async def find_for(self, app: str) -> list[PauseRow]:
        """What the app is told: pauses of everybody, of agents, and its own."""
        return await self._store.read(app, lambda view: view.pauses())

    async def pause(self, request: PauseRequest) -> tuple[PauseRow, int]:
        """Let nothing start there any more; with `stop`, also cancel what runs. How many that were."""
        if request.agent is not None and request.agent not in self._elsewhere.agents:
            self._agents.spec(request.agent)
        now, app, agent = self._clock.now(), request.app_name or "", request.agent or ""
        row = PauseRow(app_name=app, agent=agent, reason=request.reason, paused_at=now)

        def work(tx: SystemTx) -> PauseRow:
            if app and tx.app_row(app) is None:
                raise AppNotFound
            tx.put_pause(row)
            details = {"agent": request.agent, "reason": request.reason, "stop": request.stop}
            tx.audit_system(app, "paused", now, details)
            return next(one for one in tx.pauses() if (one.app_name, one.agent) == (app, agent))

        made = await self._store.write_system(work)
        # An operator who hangs up has said what to do all the same.
        return made, await self._unbroken.run(self._stop(made)) if request.stop else 0

    async def resume(self, request: ResumeRequest) -> tuple[bool, list[PauseRow]]:
        """End a pause and start what waits. Whether there was one, and those that are left."""
        return await self._unbroken.run(self._resume(request))

    async def _resume(self, request: ResumeRequest) -> tuple[bool, list[PauseRow]]:
        now, app, agent = self._clock.now(), request.app_name or "", request.agent or ""

        def work(tx: SystemTx) -> tuple[bool, list[PauseRow]]:
            was_paused = tx.remove_pause(app, agent)
            if was_paused:
                tx.audit_system(app, "resumed", now, {"agent": request.agent})
            return was_paused, tx.pauses()

        was_paused, left = await self._store.write_system(work)
        for waiting_app, session_id in await self._store.read_system(lambda view: view.waiting_sessions()):
            self._supervisor.wake(waiting_app, session_id)
        return was_paused, left

    async def stop_runs_here(self, wish: WishRow) -> None:
        """Another node was asked to stop what runs there; no new run passes the pause."""
        app, agent, at = wish.app_name, wish.session_id, wish.wished_at
        await self._runs.cancel(PauseRow(app_name=app, agent=agent, reason=None, paused_at=at))

    async def _stop(self, pause: PauseRow) -> int:
        await self._elsewhere.ask_all(WishKind.STOP_RUNS, pause.app_name, pause.agent)
        running = await self._store.read_system(lambda view: view.active_sessions())
        work = [self._cancel(app, sid, pause) for app, sid in running if pause.app_name in ("", app)]
        return sum(await asyncio.gather(*work, self._runs.cancel(pause)))

    async def _cancel(self, app: str, session_id: str, pause: PauseRow) -> bool:
        def find(view: View) -> TurnRow | None:
            session = view.session(session_id)
            concerned = session is not None and pause.agent in ("", session.agent)
            return view.active_turn(session_id) if concerned else None

        turn = await self._store.read(app, find)
        return turn is not None and await self._supervisor.cancel(app, session_id, turn.turn_index)
