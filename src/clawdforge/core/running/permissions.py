"""Permission requests of agents: decided by the session's mode, by an earlier grant, or by a person.

A request that waits is a row and an event. It can be decided from anywhere, once; it expires with a
reason when its turn ends or its time is up.
"""

import asyncio
from collections.abc import Sequence

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.agents import Ask, Verdict
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import Commit, PendingPermission, PermissionRow
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.rules.leases import check_lease
from clawdforge.core.rules.turns import need_session
from clawdforge.core.rules.webhooks import tell_asked
from clawdforge.wire.base import Json, Micros
from clawdforge.wire.errors import AlreadyDecided, PermissionNotFound
from clawdforge.wire.event import EventType
from clawdforge.wire.session import Activity, PermissionMode
from clawdforge.wire.turn import OPTION_ID, DecideRequest, Decision, TurnState

PAGE_BYTES = 1 << 20
READ_KINDS = frozenset({"read", "search", "think", "fetch"})


class PermissionService:
    def __init__(self, store: Store, clock: Clock, timeout_secs: float) -> None:
        self._store = store
        self._clock = clock
        self._timeout = timeout_secs
        self._waiting: dict[str, set[asyncio.Event]] = {}
        store.listen(self._on_commit)

    async def list(self, app: str, session_id: str, state: str | None = None) -> list[PermissionRow]:
        def work(view: View) -> list[PermissionRow]:
            need_session(view, session_id)
            return view.permissions(session_id, state=state)

        return await self._store.read(app, work)

    async def pending(
        self, app: str, limit: int, cursor: str | None = None
    ) -> tuple[Sequence[PendingPermission], str | None]:
        """A page of what agents ask for in the app's sessions, and the cursor of the next one."""
        return await self._store.read(
            app, lambda view: view.pending_permissions(limit=limit, max_bytes=PAGE_BYTES, cursor=cursor)
        )

    def expires_at(self, row: PermissionRow) -> Micros | None:
        """When a request is refused that nobody has decided until then."""
        return row.requested_at + int(self._timeout * SECOND) if row.state == "pending" else None

    async def decide(
        self, app: str, session_id: str, permission_id: str, request: DecideRequest
    ) -> PermissionRow:
        """First answer wins."""
        now = self._clock.now()

        def work(tx: Tx) -> PermissionRow:
            need_session(tx, session_id)
            row = tx.permission(session_id, permission_id)
            if row is None:
                raise PermissionNotFound
            if row.state != "pending":
                raise AlreadyDecided
            option = request.option_id or choose_option(row.options, request.decision)
            _record_decision(tx, row, request.decision.value, option, "caller", None, now)
            return tx.permission(session_id, permission_id) or row

        return await self._store.write(app, work)

    async def ask(
        self,
        app: str,
        session_id: str,
        turn_index: int,
        mode: PermissionMode,
        request: Ask,
        *,
        fence: int,
    ) -> Verdict:
        """Decide a request of the agent. Waits for a person only where the mode leaves it to one.

        LeaseLost when the session was claimed again: nothing is asked or decided for its turn then.
        """
        policy = await self._decide_by_policy(app, session_id, mode, request)
        if policy is not None:
            now = self._clock.now()
            await self._store.write(
                app, lambda tx: _record_policy(tx, session_id, turn_index, request, policy, now, fence)
            )
            return Verdict(option_id=choose_option(request.options, policy))
        row = PermissionRow(
            permission_id=new_id(),
            session_id=session_id,
            turn_index=turn_index,
            tool=request.tool[:500],
            kind=request.kind,
            request=request.request,
            options=request.options,
            requested_at=self._clock.now(),
        )
        signal = asyncio.Event()
        self._waiting.setdefault(session_id, set()).add(signal)
        try:
            await self._store.write(app, lambda tx: _record_request(tx, row, fence))
            return await self._wait_for_decision(app, row, signal)
        finally:
            self._waiting[session_id].discard(signal)
            if not self._waiting[session_id]:
                del self._waiting[session_id]

    async def _decide_by_policy(
        self, app: str, session_id: str, mode: PermissionMode, request: Ask
    ) -> Decision | None:
        if mode is PermissionMode.APPROVE_ALL:
            return Decision.ALLOW_ONCE
        if mode is PermissionMode.DENY_ALL:
            return Decision.REJECT
        if mode is PermissionMode.APPROVE_READS and request.kind in READ_KINDS:
            return Decision.ALLOW_ONCE
        granted = await self._store.read(
            app, lambda view: view.is_granted(session_id, request.tool, request.kind)
        )
        return Decision.ALLOW_ALWAYS if granted else None

    async def _wait_for_decision(self, app: str, row: PermissionRow, signal: asyncio.Event) -> Verdict:
        sid, pid = row.session_id, row.permission_id
        try:
            async with asyncio.timeout(self._timeout):
                while True:
                    signal.clear()
                    now = await self._store.read(app, lambda view: view.permission(sid, pid))
                    if now is None or now.state == "expired":
                        return Verdict(option_id=None)
                    if now.state == "decided":
                        return Verdict(option_id=now.option_id)
                    await signal.wait()
        except TimeoutError:
            at, reason = self._clock.now(), f"nobody answered within {self._timeout:g} s"
            await self._store.write(app, lambda tx: _expire(tx, row, reason, at))
            return Verdict(option_id=choose_option(row.options, Decision.REJECT))

    def _on_commit(self, commit: Commit) -> None:
        if not commit.session_id:
            signals = [signal for waiting in self._waiting.values() for signal in waiting]
        elif not commit.events or EventType.PERMISSION_DECIDED in commit.types:
            signals = list(self._waiting.get(commit.session_id, ()))
        else:
            return
        for signal in signals:
            signal.set()


def choose_option(options: tuple[Json, ...], decision: Decision) -> str | None:
    """The agent's own option for a decision; the milder one where there is a choice."""
    order = {
        Decision.ALLOW_ONCE: ("allow_once", "allow_always"),
        Decision.ALLOW_ALWAYS: ("allow_always", "allow_once"),
        Decision.REJECT: ("reject_once", "reject_always"),
    }[decision]
    for kind in order:
        for option in options:
            if option.get("kind") == kind:
                return str(option.get(OPTION_ID))
    return None


def _record_request(tx: Tx, row: PermissionRow, fence: int) -> None:
    check_lease(tx, row.session_id, fence)
    tx.add_permission(row)
    fields = {
        "permission_id": row.permission_id,
        "tool": row.tool,
        "kind": row.kind,
        "options": list(row.options),
        "request": row.request,
    }
    asked = draft(EventType.PERMISSION_REQUESTED, row.turn_index, row.requested_at, fields)
    tell_asked(tx, row, tx.append(row.session_id, [asked]))
    turn = tx.turn(row.session_id, row.turn_index)
    if turn is not None and turn.state is TurnState.RUNNING:
        tx.change_turn(row.session_id, row.turn_index, state=TurnState.WAITING)
        tx.change_session(row.session_id, activity=Activity.WAITING)


def _record_policy(
    tx: Tx, session_id: str, turn_index: int, request: Ask, decision: Decision, at: Micros, fence: int
) -> None:
    fields = {"tool": request.tool, "kind": request.kind, "decision": decision.value, "by": "policy"}
    tx.append(session_id, [draft(EventType.PERMISSION_DECIDED, turn_index, at, fields)], fence=fence)


def _record_decision(
    tx: Tx, row: PermissionRow, decision: str, option: str | None, by: str, reason: str | None, at: Micros
) -> None:
    sid, pid = row.session_id, row.permission_id
    state = "expired" if decision == "expired" else "decided"
    changes = {"state": state, "decision": decision, "option_id": option, "reason": reason, "decided_at": at}
    tx.change_permission(sid, pid, **changes)
    fields = {"permission_id": pid, "tool": row.tool, "decision": decision, "by": by, "reason": reason}
    tx.append(sid, [draft(EventType.PERMISSION_DECIDED, row.turn_index, at, fields)])
    turn = tx.turn(sid, row.turn_index)
    if turn is not None and turn.state is TurnState.WAITING and not tx.permissions(sid, state="pending"):
        tx.change_turn(sid, row.turn_index, state=TurnState.RUNNING)
        tx.change_session(sid, activity=Activity.RUNNING)


def _expire(tx: Tx, row: PermissionRow, reason: str, at: Micros) -> None:
    current = tx.permission(row.session_id, row.permission_id)
    if current is not None and current.state == "pending":
        _record_decision(tx, row, "expired", None, "server", reason, at)
