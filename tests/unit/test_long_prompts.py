"""A prompt of megabytes is written once: what changes in its turn later is only a small row."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import MessageRow, TurnRow
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.turn import Outcome, TurnState
from tests.unit.test_history_sets import APP, SID, a_session

LONG, SHORT = "long words \0 " * 100_000, "short"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    await opened.write(APP, lambda tx: tx.add_session(a_session(SID)))
    yield opened
    await opened.close()


def a_turn(index: int, prompt: str) -> TurnRow:
    return TurnRow(session_id=SID, turn_index=index, state=TurnState.QUEUED, prompt=prompt, queued_at=1)


def wal_bytes(tmp_path: Path) -> int:
    return (tmp_path / "data" / "forge.db-wal").stat().st_size


def select(tmp_path: Path, sql: str) -> list[Any]:
    with contextlib.closing(apsw.Connection(str(tmp_path / "data" / "forge.db"))) as db:
        return [value for (value,) in db.execute(sql)]


def kept(tmp_path: Path) -> list[int]:
    """The turns whose prompts stand beside them."""
    return select(tmp_path, "SELECT turn_index FROM long_prompts ORDER BY 1")


def reword(tx: Tx, prompt: str) -> None:
    tx.change_turn(SID, 1, prompt=prompt)


async def prompt_of(store: SqliteStore, index: int, session_id: str = SID) -> str | None:
    row = await store.read(APP, lambda view: view.turn(session_id, index))
    return None if row is None else row.prompt


async def test_a_turn_that_starts_and_ends_does_not_write_its_prompt_again(
    store: SqliteStore, tmp_path: Path
) -> None:
    before = wal_bytes(tmp_path)
    await store.write(APP, lambda tx: tx.add_turn(a_turn(1, LONG)))
    added = wal_bytes(tmp_path)
    await store.write(APP, lambda tx: tx.change_turn(SID, 1, state=TurnState.RUNNING, started_at=2))
    await store.write(
        APP, lambda tx: tx.change_turn(SID, 1, state=TurnState.ENDED, outcome=Outcome.COMPLETED, ended_at=3)
    )
    assert wal_bytes(tmp_path) - added < len(LONG) // 10
    assert added - before < len(LONG) * 1.1
    assert await prompt_of(store, 1) == LONG


async def test_a_prompt_is_read_as_it_was_written_however_long(store: SqliteStore) -> None:
    def work(tx: Tx) -> None:
        for index, prompt in enumerate((SHORT, LONG, "", "x" * 16384, "x" * 16385, "é" * 8193), 1):
            tx.add_turn(a_turn(index, prompt))

    await store.write(APP, work)
    rows = await store.read(APP, lambda view: view.turns(SID))
    assert [row.prompt for row in rows] == [SHORT, LONG, "", "x" * 16384, "x" * 16385, "é" * 8193]
    nodes = await store.read(APP, lambda view: view.turn_nodes(SID, after=0, limit=10, chars=9))
    assert [node.prompt for node in nodes] == [row.prompt[:9] for row in rows]


async def test_a_queued_prompt_may_become_shorter_and_longer(store: SqliteStore, tmp_path: Path) -> None:
    await store.write(APP, lambda tx: tx.add_turn(a_turn(1, SHORT)))
    for prompt, beside in ((LONG, [1]), (LONG + "!", [1]), (SHORT, []), (LONG, [1]), ("", [])):
        await store.write(APP, partial(reword, prompt=prompt))
        assert await prompt_of(store, 1) == prompt
        assert kept(tmp_path) == beside


async def test_a_fork_has_the_prompt_too_and_a_purge_leaves_none(store: SqliteStore, tmp_path: Path) -> None:
    def work(tx: Tx) -> None:
        tx.add_turn(a_turn(1, LONG))
        tx.change_turn(SID, 1, state=TurnState.ENDED, outcome=Outcome.COMPLETED, started_at=1)
        tx.add_message(MessageRow(session_id=SID, role="user", content=LONG, ts=1, turn=1))
        tx.add_session(a_session("s-2"))
        assert tx.copy_history(SID, "s-2", after=0, through=1, at=1) == 1

    await store.write(APP, work)
    assert await prompt_of(store, 1, "s-2") == LONG
    told = "SELECT data ->> '$.row.prompt' FROM events WHERE type = 'turn.brought' AND session_id = 's-2'"
    assert select(tmp_path, told) == [LONG]

    def forget(tx: Tx) -> None:
        for session_id in (SID, "s-2"):
            tx.change_session(session_id, deleted_at=1)
            while not tx.purge(session_id, 100):
                pass

    await store.write(APP, forget)
    assert kept(tmp_path) == []
