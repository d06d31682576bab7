"""Real agents take their time: a test of theirs is given up later than any wait in it."""

from pathlib import Path
from typing import Final

import pytest

from tests.live.bench import PATIENCE

GIVEN_UP_SECS: Final = 4 * PATIENCE
HERE: Final = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(GIVEN_UP_SECS))
