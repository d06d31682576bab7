"""A turn that was perhaps started here is looked for, also by a node that begins no others."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.next_turns import NextTurns
from clawdforge.core.running.worker import Worker
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
