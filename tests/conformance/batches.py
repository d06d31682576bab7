"""Jobs that wait at the same time, and those of a turn, as the tests of batches need them."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, Final

from clawdforge.core.models.events import draft
from clawdforge.core.ports import Store, Tx
from clawdforge.core.rules.quotas import Quotas
from clawdforge.core.rules.turns import Ending, finish, start_next, submit
from clawdforge.stores.postgres.link import Link
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome, TurnRequest, TurnState
from tests.conformance.stores.samples import APP, a_message, said

Work = Callable[[Tx], Any]
SET: Final = Quotas(bytes=1 << 40, sessions=100, turns=100, live_sessions=200)
"""An ordinary app has limits, and a turn asks about them."""


async def together(store: Store, *works: Work, app: str = APP) -> list[Any]:
    """What these answer, or their errors, as jobs that wait at the same time."""
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: Tx) -> None:
        begun.set()
        go_on.wait(30)

    first = asyncio.ensure_future(store.write(app, hold))
    await asyncio.to_thread(begun.wait, 30)
    jobs = [asyncio.ensure_future(store.write(app, work)) for work in works]
    await asyncio.sleep(0)  # each has handed its job over
    go_on.set()
    await first
    return await asyncio.gather(*jobs, return_exceptions=True)


async def ask(database: str, *statements: str) -> list[tuple[Any, ...]]:
    """What the last of them answers, on a connection of their own."""

    def run() -> list[tuple[Any, ...]]:
        with contextlib.closing(Link(database)) as link:
            return [link.fetch(statement) for statement in statements][-1]

    return await asyncio.to_thread(run)


def appends(session_id: str, *texts: str, **more: Any) -> Work:
    return lambda tx: tx.append(session_id, [said(text) for text in texts], **more)


def begins(session_id: str, prompt: str = "hello", quotas: Quotas = SET) -> Work:
    def work(tx: Tx) -> int:
        submitted = submit(tx, session_id, TurnRequest(prompt=prompt), None, 2_000, quotas=quotas)
        started = start_next(tx, session_id, "node", 2_000, submitted.turn)
        assert started is not None
        return started.fence

    return work


def ends(session_id: str, index: int, fence: int) -> Work:
    ending = Ending(outcome=Outcome.COMPLETED, stop_reason="end_turn", usage={"input_tokens": 1})
    answer = a_message(session_id, "answer", role="assistant", turn=index)

    def work(tx: Tx) -> TurnState:
        turn = tx.turn(session_id, index)
        assert turn is not None
        assert turn.state is TurnState.RUNNING
        drafts = [said("answer", index), draft(EventType.RESPONSE, index, 3_000, {})]
        return finish(tx, session_id, index, ending, 3_000, drafts=drafts, message=answer, fence=fence).state

    return work


async def run_turn(store: Store, session_id: str, index: int) -> None:
    fence = await store.write(APP, begins(session_id))
    assert await store.write(APP, ends(session_id, index, fence)) is TurnState.ENDED
