"""Planted bugs of order that clients can see: answers that come too soon, looks outside a transaction."""

from proofs.kit.source import Change
from proofs.planted import SRC, Bug

TURNS = f"{SRC}/core/services/turns.py"
HISTORY = f"{SRC}/core/services/history.py"
RULES = f"{SRC}/core/rules/turns.py"
PERMISSIONS = f"{SRC}/core/running/permissions.py"
CAUGHT = "prove linear --size 1200 --seed 1"


def _linear(name: str, *changes: Change) -> Bug:
    return Bug(f"linear: {name}", CAUGHT, changes)


LINEAR_BUGS = (
    _linear(
        "a list of turns comes from a cache that is made new behind the answer",
        Change(
            TURNS,
            "        self._unbroken = Unbroken()\n",
            "        self._unbroken = Unbroken()\n"
            "        self._lists: dict[str, tuple[list[TurnRow], bool, dict[int, int]]] = {}\n",
        ),
        Change(
            TURNS,
            "        return await read_rows(self._store, app, limit, work, count)\n",
            "        fresh = await read_rows(self._store, app, limit, work, count)\n"
            "        known = self._lists.get(session_id, fresh)\n"
            "        self._lists[session_id] = fresh\n"
            "        return known\n",
        ),
    ),
    _linear(
        "a session is put together from two snapshots",
        Change(
            f"{SRC}/core/services/sessions.py",
            "        return await self._store.read("
            "app, lambda view: state_of(view, need_session(view, session_id)))\n",
            "        row = await self._store.read(app, lambda view: need_session(view, session_id))\n"
            "        await asyncio.sleep(0.01)\n"
            "        return await self._store.read(app, lambda view: state_of(view, row))\n",
        ),
    ),
    _linear(
        "a key is looked up before the transaction",
        Change(
            RULES,
            "    digest: str | None = None,\n) -> SubmittedTurn:\n",
            "    digest: str | None = None,\n    prior: TurnRow | None = None,\n) -> SubmittedTurn:\n",
        ),
        Change(
            RULES,
            "    prior = tx.turn_by_key(session_id, key) if key is not None else None\n    if prior",
            "    if prior",
        ),
        Change(
            TURNS,
            "        digest = await self._weigh(app, request)\n",
            "        prior = await self._store.read(\n"
            "            app, lambda view: view.turn_by_key(session_id, key) if key is not None else None\n"
            "        )\n"
            "        digest = await self._weigh(app, request)\n",
        ),
        Change(
            TURNS,
            "submit(tx, session_id, request, key, now, by, self._quotas, digest)",
            "submit(tx, session_id, request, key, now, by, self._quotas, digest, prior)",
        ),
        Change(
            f"{SRC}/stores/sqlite/sql/migrations/0001_init.sql",
            "CREATE UNIQUE INDEX turns_key",
            "CREATE INDEX turns_key",
        ),
    ),
    _linear(
        "a permission is decided by everybody who saw it pending",
        Change(
            PERMISSIONS,
            "        def work(tx: Tx) -> PermissionRow:\n            need_session(tx, session_id)\n",
            "        find = lambda view: view.permission(session_id, permission_id)\n"
            "        seen = await self._store.read(app, find)\n"
            '        if seen is not None and seen.state != "pending":\n'
            "            raise AlreadyDecided\n\n"
            "        def work(tx: Tx) -> PermissionRow:\n            need_session(tx, session_id)\n",
        ),
        Change(
            PERMISSIONS,
            '            if row.state != "pending":\n                raise AlreadyDecided\n'
            "            option",
            "            option",
        ),
    ),
    _linear(
        "an undo is answered before its commit",
        Change(
            HISTORY,
            "from contextlib import AsyncExitStack\n",
            "import asyncio\nfrom contextlib import AsyncExitStack, suppress\n",
        ),
        Change(
            HISTORY,
            "        try:\n            return await self._store.write(app, work)\n"
            "        except SessionBusy:\n",
            "        found: list[T] = []\n\n"
            "        def try_out(tx: Tx) -> None:\n"
            "            found.append(work(tx))\n"
            "            raise NotImplementedError\n\n"
            "        async def write_later() -> None:\n"
            "            await asyncio.sleep(0.05)\n"
            "            with suppress(ForgeAPIError):\n"
            "                await self._store.write(app, work)\n\n"
            "        try:\n"
            "            with suppress(NotImplementedError):\n"
            "                await self._store.write(app, try_out)\n"
            "            self._later = asyncio.create_task(write_later())\n"
            "            return found[0]\n"
            "        except SessionBusy:\n",
        ),
    ),
    _linear(
        "a turn is taken out of the queue although it has begun",
        Change(
            TURNS,
            "        now = self._clock.now()\n"
            "        return await self._store.write(app, lambda tx: withdraw(",
            "        now = self._clock.now()\n"
            "        if (await self.get(app, session_id, turn_index)).state is not TurnState.QUEUED:\n"
            "            raise TurnNotQueued\n"
            "        await self._supervisor.wait_for_copy(session_id, within=COPY_SECS)\n"
            "        return await self._store.write(app, lambda tx: withdraw(",
        ),
        Change(
            RULES,
            "    if turn.state is not TurnState.QUEUED:\n        raise TurnNotQueued\n    return finish",
            "    return finish",
        ),
    ),
    _linear(
        "a cancel is answered before the queue is empty",
        Change(
            TURNS,
            "        while queued and (\n"
            "            some := await self._store.write("
            "app, lambda tx: withdraw_some(tx, session_id, now))\n"
            "        ):\n"
            "            taken += some\n",
            "        if queued:\n"
            "            taken = await self._store.read(app, lambda view: view.count_queued(session_id))\n"
            "            write = self._store.write(app, lambda tx: withdraw_some(tx, session_id, now))\n"
            "            self._later = asyncio.create_task(write)\n",
        ),
    ),
    _linear(
        "everybody who cancels a turn has ended it",
        Change(
            f"{SRC}/core/running/supervisor.py",
            "                return is_first and stop.ended_as is Outcome.CANCELLED\n",
            "                return True\n",
        ),
    ),
    _linear(
        "a turn that was cut off is ended after the port is open",
        Change(
            f"{SRC}/parts.py",
            "    interrupted = await recovery.end_interrupted_turns()\n",
            "    interrupted = 0\n"
            "    loop = asyncio.get_running_loop()\n"
            "    loop.call_later(1, lambda: asyncio.ensure_future(recovery.end_interrupted_turns()))\n",
        ),
    ),
)
"""The one about everybody who cancels is a defect that this proof found."""
