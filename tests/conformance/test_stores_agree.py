"""The same work, in a random order, leaves the same rows in both stores."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from clawdforge.core.ports import Store, Tx
from clawdforge.stores import open_store
from clawdforge.stores.postgres.store import PostgresStore
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import ForgeError
from clawdforge.wire.turn import TurnState
from tests.conformance.batches import together
from tests.conformance.stores.samples import APP, a_message, a_permission, a_session, a_turn, said
from tests.needs import needs
from tests.postgres import run_postgres

pytestmark = needs("postgres")
STEPS = 150
ROUNDS = 60
SESSIONS = ["s1", "s2", "s3"]
TEXTS = ["hello world", "Grüße an Ärzte", "a\0b", "x_y foo-bar", "", "naïve 100 %", "\ufdd0 odd"]
TABLES = {
    "turns": "session_id, turn_index, state, prompt, cut, files",
    "messages": "id, session_id, seq, role, content, turn, cut, archived",
    "events": "session_id, seq, turn, type, by_agent, data, compact",
    "permissions": "permission_id, session_id, state, decision",
    "app_changes": "session_id, permission_id, app_name, number",
    "session_events": "number, event, details, hash",
}


class StoppedClock:
    def now(self) -> Micros:
        return 5_000

    def steady(self) -> Micros:
        return 5_000


@pytest.fixture
def database() -> Iterator[str]:
    with run_postgres() as postgres:
        yield postgres.make_database()


def _choose(dice: random.Random, number: int) -> Callable[[Tx], Any]:
    session, text, turn = dice.choice(SESSIONS), dice.choice(TEXTS), dice.randint(1, 6)
    seq, state = dice.randint(1, 12), dice.choice(list(TurnState))

    def hide(tx: Tx) -> None:
        tx.hide_messages(session, *tx.numbers_from(session, seq))

    def tell(tx: Tx) -> Any:
        found, _ = tx.search(text or "hello", limit=5)
        return [(hit.session_id, hit.seq) for hit in found], tx.messages(session), tx.turns(session)

    works: list[Callable[[Tx], Any]] = [
        lambda tx: tx.add_message(a_message(session, text, turn=turn)),
        lambda tx: tx.add_message(a_message(session, f"{text} {number}", role="assistant")),
        lambda tx: tx.change_messages(session, [seq], content=text),
        lambda tx: tx.append(session, [said(text, turn), said("more", turn)]),
        lambda tx: tx.add_turn(a_turn(session, turn, prompt=text, files=("f1", "f2"))),
        lambda tx: tx.change_turn(session, turn, state=state),
        lambda tx: tx.change_session(session, title=text),
        lambda tx: tx.add_permission(a_permission(session, f"p{turn}")),
        lambda tx: tx.audit(session, "tried", number, {"text": text}),
        lambda tx: tx.claim(session, "node"),
        lambda tx: tx.archive_messages(session) if number % 5 == 0 else None,
        hide,
        tell,
        tell,
    ]
    return dice.choice(works)


async def _try(store: Store, work: Callable[[Tx], Any]) -> Any:
    """What it answers; of an error, whether it is one of ours."""
    try:
        return await store.write(APP, work)
    except (ForgeError, apsw.ConstraintError, asyncpg.IntegrityConstraintViolationError) as error:
        return _told(error)


def _told(found: Any) -> Any:
    if isinstance(found, apsw.ConstraintError | asyncpg.IntegrityConstraintViolationError):
        return "refused"
    return type(found) if isinstance(found, BaseException) else found


async def _rows(store: Store) -> dict[str, Any]:
    def read(tx: Tx) -> dict[str, Any]:
        assert isinstance(tx, SqliteTx)
        found = {
            table: sorted(tx._db.rows(f"SELECT {columns} FROM {table}", {}), key=repr)  # noqa: S608
            for table, columns in TABLES.items()
        }
        found["sessions"] = sorted(tx._db.rows(f"SELECT {tx._q.session.columns} FROM {tx._q.sessions}", {}))  # noqa: S608
        return {**found, "files": sorted(tx._db.rows("SELECT file_token, turn_index FROM turn_files", {}))}

    return await store.write(APP, read)


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_same_work_leaves_the_same_rows(tmp_path: Path, database: str, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    clock = StoppedClock()
    stores: list[Store] = [
        await open_store(tmp_path / "data", clock),
        await PostgresStore.open(database, clock, rise=lambda: 1),
    ]
    try:
        for session in SESSIONS:
            row = a_session(session_id=session)
            for store in stores:
                await store.write(APP, lambda tx, row=row: tx.add_session(row))  # type: ignore[misc]
        for number in range(STEPS):
            work = _choose(dice, number)
            one, other = [await _try(store, work) for store in stores]
            assert one == other, (seed, number)
        first, second = [await _rows(store) for store in stores]
        assert first == second, seed
        assert all(first.values()), "each table was written to"
    finally:
        for store in stores:
            await store.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_jobs_that_wait_together_leave_what_they_leave_in_sqlite(
    tmp_path: Path, database: str, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 - no secret
    stores: list[Store] = [
        await open_store(tmp_path / "data", StoppedClock()),
        await PostgresStore.open(database, StoppedClock(), rise=lambda: 1),
    ]
    try:
        for session in SESSIONS:
            for store in stores:
                row = a_session(session_id=session)
                await store.write(APP, lambda tx, row=row: tx.add_session(row))  # type: ignore[misc]
        for number in range(ROUNDS):
            works = [_some(dice, 100 * number + place) for place in range(dice.randint(1, 5))]
            one, other = [[_told(found) for found in await together(store, *works)] for store in stores]
            assert one == other, (seed, number)
        first, second = [await _rows(store) for store in stores]
        assert first == second, seed
    finally:
        for store in stores:
            await store.close()


def _some(dice: random.Random, number: int) -> Callable[[Tx], Any]:
    """One job of some parts."""
    parts = [_choose(dice, 10 * number + place) for place in range(dice.randint(1, 3))]
    sessions = dice.sample(SESSIONS, 2)

    def work(tx: Tx) -> list[Any]:
        seen = [part(tx) for part in parts]
        rows = [tx.session(session) for session in sessions]
        return [seen, rows, [tx.active_turn(session) for session in sessions]]

    return work
