"""A damaged page costs one session: the others go on, and the server starts."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.turns import start_next, submit
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.parts import Parts, open_parts
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.wire.errors import SessionDamaged
from clawdforge.wire.event import EventType
from clawdforge.wire.turn import Outcome, TurnRequest
from tests.conformance.stores.samples import a_session
from tests.unit.supervised import make_settings


async def fill(data: Path, session_ids: list[str]) -> None:
    """Sessions with a turn that a dead server left running, and a log of many pages."""
    store = await open_store(data, SystemClock(), packs=False)
    for session_id in session_ids:
        folder = data / "workspaces" / session_id
        folder.mkdir(parents=True)
        row = a_session(app_name=LOCAL_APP, session_id=session_id, agent="scripted", cwd=str(folder))

        def work(tx: Tx, row: object = row, session_id: str = session_id) -> None:
            tx.add_session(row)  # type: ignore[arg-type]
            submit(tx, session_id, TurnRequest(prompt="go"), None, 1)
            start_next(tx, session_id, "node", 1)
            words = [draft(EventType.TEXT, 1, 1, {"content": "x" * 900}) for _ in range(100)]
            tx.append(session_id, words)

        await store.write(LOCAL_APP, work)
    await store.close()


def damage(data: Path, session_id: str, others: list[str]) -> None:
    """Spoil a page of the log that holds rows of this session only."""
    path = data / "forge.db"
    connection = apsw.Connection(str(path))
    sql = "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY pageno"
    pages = [number for (number,) in connection.execute(sql)]
    size = connection.pragma("page_size")
    connection.pragma("wal_checkpoint", "TRUNCATE")
    connection.close()
    with path.open("r+b") as file:
        raw = file.read()
        mine = [
            (number - 1) * size
            for number in pages
            if session_id.encode() in (page := raw[(number - 1) * size : number * size])
            and not any(other.encode() in page for other in others)
        ]
        file.seek(mine[len(mine) // 2])
        file.write(b"\xff" * 100)


@pytest.fixture
async def parts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Parts]:
    await fill(tmp_path / "data", ["damaged", "sound"])
    damage(tmp_path / "data", "damaged", ["sound"])
    async with asyncio.timeout(60), open_parts(make_settings(tmp_path)) as opened:
        assert any("could not be ended" in record.message for record in caplog.records)
        yield opened
        await opened.supervisor.stop(0)


def read_log(view: View, session_id: str) -> int:
    return len(view.events(session_id, after=0, limit=1000, max_bytes=1 << 30))


async def test_the_other_session_goes_on(parts: Parts) -> None:
    turns = parts.services.turns
    assert (await turns.get(LOCAL_APP, "sound", 1)).outcome is Outcome.INTERRUPTED
    submitted = await turns.submit(LOCAL_APP, "sound", TurnRequest(prompt="echo on"), None)
    turn = await turns.wait(LOCAL_APP, "sound", submitted.turn.turn_index)
    assert turn.outcome is Outcome.COMPLETED


async def test_who_needs_the_page_is_told_and_nobody_else(parts: Parts) -> None:
    store = parts.supervisor._store
    with pytest.raises(SessionDamaged):
        await store.read(LOCAL_APP, lambda view: read_log(view, "damaged"))
    assert await store.read(LOCAL_APP, lambda view: read_log(view, "sound"))
    assert (await parts.services.sessions.get(LOCAL_APP, "damaged")).row.session_id == "damaged"

    def mark(tx: Tx) -> int:
        return tx.append("sound", [draft(EventType.TEXT, None, 1, {"content": "y"})])

    writes = [
        store.write(LOCAL_APP, mark),
        store.write(LOCAL_APP, lambda tx: read_log(tx, "damaged")),
        store.write(LOCAL_APP, mark),
    ]
    first, failed, last = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(failed, SessionDamaged)
    assert isinstance(first, int)
    assert last == first + 1
    assert store.health() is None


async def test_what_can_be_read_of_a_damaged_session_can_be_exported(parts: Parts) -> None:
    exported = await parts.services.transfer.export(LOCAL_APP, "damaged", events=True)
    head = (await parts.services.sessions.get(LOCAL_APP, "damaged")).row.head
    assert exported.events is not None
    assert [message.content for message in exported.messages] == ["go"]
    numbers = [event.seq for event in exported.events]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    assert numbers[-1] == head
    assert head - 20 < len(numbers) < head, "only what stood on that page is missing"


async def test_an_export_lacks_a_damaged_pack_and_no_more(parts: Parts) -> None:
    store = parts.supervisor._store
    head = (await parts.services.sessions.get(LOCAL_APP, "sound")).row.head
    assert await store.pack(LOCAL_APP, "sound", 60)

    def spoil(tx: Tx) -> None:
        assert isinstance(tx, SqliteTx)
        tx._db.run("UPDATE packs SET data = substr(data, 1, octet_length(data) - 1)", {})

    await store.write(LOCAL_APP, spoil)
    exported = await parts.services.transfer.export(LOCAL_APP, "sound", events=True)
    assert exported.events is not None
    assert [event.seq for event in exported.events] == list(range(61, head + 1))
    assert exported.messages[0].content == "go"


@pytest.mark.parametrize("left", [0, 10])
async def test_the_export_of_a_log_without_its_end_ends(parts: Parts, left: int) -> None:
    """It looked for the missing events for ever, and the whole server stood still meanwhile."""
    store = parts.supervisor._store

    def cut_off(tx: Tx) -> None:
        tx.change_session("sound", head=500)
        assert isinstance(tx, SqliteTx)
        tx._db.run("DELETE FROM events WHERE session_id = 'sound' AND seq > :left", {"left": left})

    await store.write(LOCAL_APP, cut_off)
    exported = await parts.services.transfer.export(LOCAL_APP, "sound", events=True)
    assert exported.events is not None
    assert len(exported.events) == left
