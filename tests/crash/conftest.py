"""Data folders on which servers live and die."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.kit import Forge


@pytest.fixture
def forge(tmp_path: Path) -> Iterator[Callable[..., Forge]]:
    """`forge("--trust-loopback", MAX_LIVE_AGENTS="2")`"""
    made: list[Forge] = []

    def make(*flags: str, **settings: str) -> Forge:
        made.append(Forge(tmp_path, *flags, **settings))
        return made[-1]

    yield make
    for found in made:
        found.close()
