"""A token that was known a moment ago is refused as soon as it is revoked, and costs no read until then."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import SystemView
from clawdforge.core.services.access import AccessService
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.admin import CreateToken
from clawdforge.wire.errors import TokenNotFound, Unauthenticated
from tests.unit.test_membership import SharedStore


@dataclass
class Desk:
    access: AccessService
    token: str
    token_id: str
    is_alone: bool
    reads: list[str] = field(default_factory=list)

    async def is_good(self) -> bool:
        try:
            return (await self.access.authenticate(self.token)).app == "a"
        except Unauthenticated:
            return False


@pytest.fixture(params=[SqliteStore, SharedStore], ids=["alone", "shared"])
async def desk(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Desk]:
    store = await request.param.open(tmp_path / "data", SystemClock())
    access = AccessService(store, SystemClock(), "the operator's", CallbackTokens(""))
    token, row = await access.create_token(CreateToken(app_name="a"))
    found = Desk(access, token, row.token_id, is_alone=store.peers is None)
    read = store.read_system

    async def read_and_count(work: Callable[[SystemView], Any]) -> Any:
        found.reads.append("token")
        return await read(work)

    monkeypatch.setattr(store, "read_system", read_and_count)
    yield found
    await store.close()


async def test_a_token_is_read_once_where_nobody_else_can_revoke_it(desk: Desk) -> None:
    for _ in range(5):
        assert await desk.is_good()
    assert len(desk.reads) == (1 if desk.is_alone else 5)


async def test_a_revoked_token_is_refused_at_once(desk: Desk) -> None:
    assert await desk.is_good()
    revoking = asyncio.ensure_future(desk.access.revoke(desk.token_id))
    while not revoking.done():
        await desk.is_good()  # which reads it while it is being changed
        await asyncio.sleep(0)
    assert not await desk.is_good()
    with pytest.raises(TokenNotFound):
        await desk.access.revoke("nobody's")
    assert not await desk.is_good()


async def test_a_token_is_revoked_also_if_nobody_waits_for_it(desk: Desk) -> None:
    assert await desk.is_good()
    principal = await desk.access.authenticate(desk.token)
    with desk.access.watch(principal) as ended:
        revoking = asyncio.ensure_future(desk.access.revoke(desk.token_id))
        await asyncio.sleep(0)
        revoking.cancel()
        async with asyncio.timeout(10):
            await ended.wait()
    assert not await desk.is_good()


async def test_a_use_is_written_once_a_minute_though_the_row_was_read_before(desk: Desk) -> None:
    written: list[int] = []
    for _ in range(3):
        assert await desk.is_good()
        written.append(len(desk.access.uses._unwritten))
        await desk.access.uses.write()
    assert written == [1, 0, 0]
