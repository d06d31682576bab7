"""Planted bugs of order: wake-ups that are lost, locks that are not taken, answers that come too soon."""

from proofs.kit.source import Change
from proofs.planted import SRC, Bug

SUPERVISOR = f"{SRC}/core/running/supervisor.py"
WORKER = f"{SRC}/core/running/worker.py"
POOL = f"{SRC}/core/running/pool.py"
TURNS = f"{SRC}/core/services/turns.py"
TAIL = f"{SRC}/core/tail.py"
HOMES = f"{SRC}/drivers/folders/homes.py"
CAUGHT = "prove simulation --size 1000 --seed 1 --workers 1"


def _order(name: str, *changes: Change) -> Bug:
    return Bug(f"order: {name}", CAUGHT, changes)


ORDER_BUGS = (
    _order(
        "a lock that was promised to somebody counts as free",
        Change(
            f"{SRC}/drivers/folders/home_lock.py",
            "        return self._users == 0",
            "        return not self._lock.locked()",
        ),
    ),
    _order(
        "a fork waits for a boundary that is replaced",
        Change(
            WORKER,
            "    last_turn: int | None = None  # the turn",
            "    last_turn: int | None = 0  # the turn",
        ),
        Change(WORKER, "        self.boundary.set()\n        self.boundary = ", "        self.boundary = "),
    ),
    _order(
        "a cancel does not know of a turn whose commit is being announced",
        Change(
            SUPERVISOR,
            "            active = await self._store.read(app, lambda view: view.active_turn(session_id))\n",
            "            active = None\n",
        ),
    ),
    _order(
        "a prompt that comes while the session is held is forgotten",
        Change(SUPERVISOR, "            if holder.look_again:\n", "            if holder.start_in_doubt:\n"),
    ),
    _order(
        "who holds a session looks only once whether somebody works in it",
        Change(
            SUPERVISOR,
            "                while worker := self._workers.get(session_id)"
            " or self._reserved.get(session_id):\n"
            "                    if or_aside and worker.stands_aside:\n"
            "                        break\n"
            "                    await worker.boundary.wait()\n",
            "                worker = self._workers.get(session_id) or self._reserved.get(session_id)\n"
            "                if worker:\n"
            "                    await worker.boundary.wait()\n"
            "                    worker = None\n",
        ),
    ),
    _order(
        "a cancel is answered before the turn has ended",
        Change(
            SUPERVISOR,
            "                await stop.ended.wait()\n                if stop.ended_as is not None:\n",
            "                if stop is not None:\n",
        ),
    ),
    _order(
        "a seat is reserved although a worker waits for one",
        Change(
            SUPERVISOR,
            "        if session_id in self._workers or session_id in self._reserved:\n",
            "        if session_id in self._reserved:\n",
        ),
    ),
    _order(
        "a caller that hangs up takes the commit of its prompt along",
        Change(
            TURNS,
            "        return await self._unbroken.run("
            "self._submit(app, session_id, request, key, by, beside))\n",
            "        return await self._submit(app, session_id, request, key, by, beside)\n",
        ),
    ),
    _order(
        "an agent is started while the one before is ending",
        Change(
            POOL,
            "            await asyncio.wait({self._closing[session_id]})\n        seat = self.try_take",
            "            pass\n        seat = self.try_take",
        ),
        Change(
            POOL,
            "        if session_id in self._closing:\n            return None\n        if self._slots",
            "        if self._slots",
        ),
    ),
    _order(
        "the second who ends an agent does not wait for the first",
        Change(POOL, "        async with seat.ending:\n", "        if seat.ending:\n"),
    ),
    _order(
        "a place that was left is offered to nobody",
        Change(
            f"{SRC}/core/running/fair_slots.py",
            "        while (found := self._next()) is not None:",
            "        while (found := self._next()) is not None and self.taken < 0:",
        ),
    ),
    _order(
        "a close does not wait for the agent's end",
        Change(
            f"{SRC}/core/services/sessions.py",
            "        await self._supervisor.end_agent(app, session_id)\n        for child",
            "        await self._supervisor.retire_agent(app, session_id)\n        for child",
        ),
    ),
    _order(
        "who waits for a turn is not told that the store is back",
        Change(
            TAIL,
            "        self._clear()\n        self.wake(ended=True)\n",
            "        self._clear()\n        self.wake(ended=False)\n",
        ),
    ),
    _order(
        "a home is removed without its lock",
        Change(
            HOMES,
            "        async with self._lock(session_id):\n            await self._wait_durable(session_id)\n"
            "            self._agents.pop(session_id, None)\n",
            "        if session_id:\n            self._agents.pop(session_id, None)\n",
        ),
    ),
    _order(
        "a cancelled start lets go of a home while its thread still works there",
        Change(
            f"{SRC}/drivers/folders/home_lock.py",
            "    while not ended.is_set():\n        try:\n            await ended.wait()\n",
            "    if not ended.is_set():\n        try:\n            await ended.wait()\n",
        ),
        Change(
            f"{SRC}/drivers/folders/home_lock.py",
            "            cancelled = error\n",
            "            raise error from None\n",
        ),
    ),
)
"""The first three are defects that a release had."""
