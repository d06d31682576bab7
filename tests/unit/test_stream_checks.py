"""A look at all open streams, which anybody who can connect to the database may ask for."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.clock import SystemClock
from clawdforge.core.models.principal import Principal
from clawdforge.core.services import access as accesses
from clawdforge.core.services.access import AccessService
from tests.unit.rpc_peer import until
from tests.unit.test_membership import NoPeers, SharedStore


async def test_many_words_of_others_are_few_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heeding: list[Callable[[str], None]] = []
    monkeypatch.setattr(NoPeers, "heed", lambda _, listener: heeding.append(listener))
    monkeypatch.setattr(accesses, "CHECK_SECS", 0.2)
    store = await SharedStore.open(tmp_path / "data", SystemClock())
    access = AccessService(store, SystemClock(), "admin", CallbackTokens(""))
    looks: list[float] = []

    async def look(_: Principal) -> float:
        looks.append(asyncio.get_running_loop().time())
        return 0.0

    monkeypatch.setattr(access, "seconds_left", look)
    with access.watch(Principal(app="a", token_id="t")) as ended:
        (hear,) = heeding
        for _ in range(1000):
            hear("")
            await asyncio.sleep(0)
        await ended.wait()
        await until(lambda: len(looks) == 2)
        assert looks[1] - looks[0] >= 0.2, "the last word is heard as well, after a while"
        checks = [task for task in asyncio.all_tasks() if task.get_name() == "looking after open streams"]
        assert len(checks) == 1
    await asyncio.gather(*checks)
    await store.close()
