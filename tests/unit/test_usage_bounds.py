"""An agent that lies about what it used: the turn ends, the sums stop, and others' sums stay readable."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import Tx
from clawdforge.core.rules.turns import Ending, finish, start_next, submit
from clawdforge.core.rules.usage import MAX_COUNT, bound_usage
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.turn import Outcome, TurnRequest, TurnState
from tests.conformance.stores.samples import APP, a_session

HUGE = 2**64


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


async def run(store: SqliteStore, session_id: str, tokens: int, at: int = 1) -> None:
    usage = {
        "input_tokens": tokens,
        "output_tokens": tokens,
        "cached_tokens": tokens,
        "total_tokens": 3 * tokens,
        "cost_usd": float("inf"),
        "counter": {"input_tokens": tokens},
    }

    def work(tx: Tx) -> None:
        submit(tx, session_id, TurnRequest(prompt="go"), None, at)
        started = start_next(tx, session_id, "node", at)
        assert started is not None
        ending = Ending(outcome=Outcome.COMPLETED, usage=usage)
        turn = finish(tx, session_id, started.turn.turn_index, ending, at)
        assert turn.state is TurnState.ENDED

    await store.write(APP, work)


@pytest.mark.parametrize("tokens", [HUGE, 2**63 - 1, 2**53 - 1, -1])
async def test_a_turn_ends_whatever_its_agent_claims(store: SqliteStore, tokens: int) -> None:
    row = a_session()
    await store.write(APP, lambda tx: tx.add_session(row))
    for _ in range(3):
        await run(store, row.session_id, tokens)
    session = await store.read(APP, lambda view: view.session(row.session_id))
    assert session is not None
    assert session.input_tokens == (MAX_COUNT if tokens > 0 else 0)
    turn = await store.read(APP, lambda view: view.turn(row.session_id, 3))
    assert turn is not None
    assert orjson.loads(orjson.dumps(turn.usage))["counter"]["input_tokens"] <= MAX_COUNT


async def test_the_sum_of_an_app_cannot_overflow(store: SqliteStore) -> None:
    rows = [a_session() for _ in range(3)]

    def work(tx: Tx) -> None:
        for row in rows:
            tx.add_session(row)
            tx.change_session(row.session_id, input_tokens=2**63 - 1)

    await store.write(APP, work)
    (usage,) = await store.read_system(lambda view: view.usage())
    assert usage["input_tokens"] == MAX_COUNT
    assert usage["output_tokens"] == 0


def test_what_is_plausible_stays_as_it_is() -> None:
    usage = {"input_tokens": 12, "cost_usd": 0.5, "estimated": True, "counter": {"input_tokens": 99}}
    assert bound_usage(usage) == usage
    assert bound_usage(None) is None
