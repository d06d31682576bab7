"""What is refused at the door because nobody else may pay for it: a long queue, a large `meta`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.rules import turns
from clawdforge.core.rules.turns import submit, withdraw
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import LimitExceeded
from clawdforge.wire.session import MAX_META_BYTES, CreateSession, ImportRequest, PatchSession
from clawdforge.wire.turn import TurnRequest

APP, SID = "alpha", "s-1"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    row = SessionRow(app_name=APP, session_id=SID, agent="demo", cwd="/w", created_at=1, updated_at=1)
    await opened.write(APP, lambda tx: tx.add_session(row))
    yield opened
    await opened.close()


async def test_a_queue_has_an_end(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "MAX_QUEUED", 3)

    async def send(key: str | None = None, store: SqliteStore = store) -> int:
        request = TurnRequest(prompt="hello")
        submitted = await store.write(APP, lambda tx: submit(tx, SID, request, key, 1))
        return submitted.turn.turn_index

    assert [await send(), await send(), await send("known")] == [1, 2, 3]
    with pytest.raises(LimitExceeded, match="3 turns wait in this session"):
        await send()
    assert await send("known") == 3, "what was taken before is answered as before"
    await store.write(APP, lambda tx: withdraw(tx, SID, 2, 1))
    assert await send() == 4
    await store.close()
    later = await open_store(tmp_path / "data", SystemClock())
    with pytest.raises(LimitExceeded, match="3 turns wait in this session"):
        await send(store=later)
    await later.write(APP, lambda tx: withdraw(tx, SID, 1, 1))
    assert await send(store=later) == 5
    await later.close()


@pytest.mark.parametrize("request_type", [CreateSession, PatchSession, ImportRequest])
def test_meta_has_a_largest_size(request_type: type[CreateSession | PatchSession | ImportRequest]) -> None:
    frame = len('{"x":""}')
    body: dict[str, object] = {"messages": []} if request_type is ImportRequest else {}
    fits = {"x": "y" * (MAX_META_BYTES - frame)}
    assert request_type.model_validate({**body, "meta": fits}).meta == fits
    with pytest.raises(ValidationError, match="65537 bytes"):
        request_type.model_validate({**body, "meta": {"x": fits["x"] + "y"}})
