"""A turn that was perhaps started here is looked for, also by a node that begins no others."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.running.attendant import Attendant, Times
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.next_turns import NextTurns
from clawdforge.core.running.opening import Opener
from clawdforge.core.running.permissions import PermissionService
from clawdforge.core.running.pool import AgentPool
from clawdforge.core.running.progress import Progress
from clawdforge.core.running.stops import Stop
from clawdforge.core.running.worker import Worker
from clawdforge.wire.errors import AgentStartFailed
from clawdforge.wire.turn import Outcome
from tests.conformance.stores.leases import prompt
from tests.conformance.stores.samples import APP, make
from tests.unit.rpc_peer import until
from tests.unit.test_membership import SharedStore, joined


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SharedStore]:
    opened = await SharedStore.open(tmp_path / "data", SystemClock())
    assert isinstance(opened, SharedStore)
    yield opened
    await opened.close()


async def test_a_node_that_drains_runs_a_turn_that_it_has_started(store: SharedStore) -> None:
    """Nobody else could: the node lives, and holds the session."""
    node = await joined(store, "a")
    await joined(store, "b")
    started, queued = await make(store), await make(store)
    await store.write(APP, lambda tx: prompt(tx, started, "a"))
    await store.write(APP, lambda tx: prompt(tx, queued, "a", starts=False))
    await store.write_system(lambda tx: tx.drain("a"))
    await node.look()
    turns = NextTurns(store, SystemClock(), Elsewhere(store, SystemClock(), node))
    found = await turns.start(Worker(APP, started, start_in_doubt=True))
    assert found is not None
    assert found.turn.turn_index == 1
    assert await turns.start(Worker(APP, queued, start_in_doubt=True)) is None, "it begins none"
    assert await turns.start(Worker(APP, queued)) is None


async def test_what_is_in_doubt_stays_so_while_the_node_has_given_up(store: SharedStore) -> None:
    """It was forgotten then: the turn of a node that was not given up by others after all ran for ever."""
    node = await joined(store, "a")
    session = await make(store)
    await store.write(APP, lambda tx: prompt(tx, session, "a"))
    turns = NextTurns(store, SystemClock(), Elsewhere(store, SystemClock(), node))
    node._has_given_up = True
    worker = Worker(APP, session, start_in_doubt=True)
    starting = asyncio.create_task(turns.start(worker))
    await asyncio.sleep(0)
    await until(lambda: worker.start_in_doubt)
    assert not starting.done()
    node._has_given_up = False
    found = await starting
    assert found is not None
    assert worker.running == 1


class Guarded:
    """Whatever it starts is ended by the guard."""

    async def make_ready(self, *_: object, **__: object) -> None:
        raise AgentStartFailed("the agent could not be contained: no reason given")


async def test_a_turn_that_was_started_while_the_node_gave_up_is_interrupted(store: SharedStore) -> None:
    """Its agent was ended by the guard, and the turn was said to have failed because of the agent."""
    node, clock, pool = await joined(store, "a"), SystemClock(), AgentPool(1, 60.0)
    session = await make(store)
    await store.write(APP, lambda tx: prompt(tx, session, "a"))
    elsewhere = Elsewhere(store, clock, node)
    started = await NextTurns(store, clock, elsewhere).start(Worker(APP, session, start_in_doubt=True))
    seat = pool.try_take(APP, session)
    assert started is not None
    assert seat is not None
    permissions, opener = PermissionService(store, clock, 1.0), cast("Opener", Guarded())
    attendant = Attendant(
        store, clock, opener, pool, permissions, elsewhere, LoopTurns(), times=Times(60.0, 1.0)
    )
    node._has_given_up = True
    attended = await attendant.attend(seat, started, Stop(), Progress())
    assert (attended.turn.outcome, attended.turn.code) == (Outcome.INTERRUPTED, "turn_interrupted")
