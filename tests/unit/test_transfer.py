"""An import in several transactions is there as a whole or not at all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.ports import Tx
from clawdforge.core.services.access import LOCAL_APP
from clawdforge.core.services.transfer import AT_ONCE, CHARS_AT_ONCE
from clawdforge.parts import Parts, open_parts
from clawdforge.settings import Settings
from clawdforge.stores.sqlite.tx import SqliteTx
from clawdforge.wire.errors import StoreUnavailable
from clawdforge.wire.session import ImportRequest

APP = LOCAL_APP
LENGTH = 3 * AT_ONCE


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    """A server without its port."""
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "sandbox": "off"})
    async with asyncio.timeout(60), open_parts(settings) as opened:
        yield opened
        await opened.supervisor.stop(0)


@pytest.mark.parametrize("broken_off", [True, False])
async def test_nobody_sees_an_import_before_it_is_whole(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, broken_off: bool
) -> None:
    transfer = parts.services.transfer
    store = transfer._store
    write = store.write_slice
    seen: list[list[int]] = []

    async def list_sessions() -> list[int]:
        rows, _ = await store.read(APP, lambda view: view.sessions(SessionQuery()))
        return [row.message_count for row in rows]

    async def write_and_look(app: str, work: Callable[[Tx], Any]) -> Any:
        if broken_off and len(seen) == 3:
            raise StoreUnavailable
        result = await write(app, work)
        seen.append(await list_sessions())
        return result

    said: list[Any] = [{"role": "user", "content": f"needle {number}"} for number in range(LENGTH)]
    with monkeypatch.context() as patch:
        patch.setattr(store, "write_slice", write_and_look)
        try:
            await transfer.import_session(APP, ImportRequest(messages=said))
        except StoreUnavailable:
            assert broken_off
    assert len(seen) >= 3
    assert all(one == [] for one in seen[:-1])
    assert await list_sessions() == ([] if broken_off else [LENGTH])


async def test_no_transaction_takes_more_text_than_a_moment_allows(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few messages may be long ones: they were taken in one transaction."""
    store = parts.services.transfer._store
    write = store.write_slice
    sizes: list[int] = []

    async def write_and_weigh(app: str, work: Callable[[Tx], Any]) -> Any:
        def weigh(tx: Tx) -> Any:
            before = _weigh(tx)
            result = work(tx)
            sizes.append(_weigh(tx) - before)
            return result

        return await write(app, weigh)

    said: list[Any] = [{"role": "user", "content": "x" * (CHARS_AT_ONCE // 2)} for _ in range(7)]
    with monkeypatch.context() as patch:
        patch.setattr(store, "write_slice", write_and_weigh)
        await parts.services.transfer.import_session(APP, ImportRequest(messages=said))
    assert sum(sizes) == 7 * (CHARS_AT_ONCE // 2)
    assert max(sizes) <= CHARS_AT_ONCE


def _weigh(tx: Tx) -> int:
    """The length of all messages, whether their session can be seen yet or not."""
    assert isinstance(tx, SqliteTx)
    row = tx._db.row("SELECT coalesce(sum(length(content)), 0) FROM messages", {})
    return int(row[0]) if row else 0
