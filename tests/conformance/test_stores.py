"""The SQLite store does what every store must do."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.ports import Store
from clawdforge.stores import open_store
from tests.conformance.stores import *  # noqa: F403
from tests.conformance.stores.samples import Reopen


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[list[Store]]:
    """All that were opened on the folder; the last one is in use."""
    stores: list[Store] = [await open_store(tmp_path / "data", SystemClock())]
    yield stores
    await stores[-1].close()


@pytest.fixture
def store(opened: list[Store]) -> Store:
    return opened[-1]


@pytest.fixture
def reopen(opened: list[Store], tmp_path: Path) -> Reopen:
    async def again() -> Store:
        await opened[-1].close()
        opened.append(await open_store(tmp_path / "data", SystemClock()))
        return opened[-1]

    return again
