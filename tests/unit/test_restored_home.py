"""What becomes of a home that has no copy of the turn it is to be put back to."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.core.running.opening import Opener


class NoCopies:
    """Homes of which no turn was copied; which boundaries were asked for."""

    def __init__(self) -> None:
        self.restored: list[int] = []

    async def restore(self, _session_id: str, boundary: int) -> str | None:
        self.restored.append(boundary)
        return None


@pytest.mark.parametrize(("again", "restored"), [(False, [7, 0]), (True, [7])])
async def test_only_what_was_undone_empties_a_home(again: bool, restored: list[int]) -> None:
    """A prompt that is given again emptied it too, with all that the agent remembered."""
    homes, nothing = NoCopies(), cast("Any", None)
    opener = Opener(nothing, nothing, nothing, cast("Any", homes), *[nothing] * 7)
    turn, opening = SimpleNamespace(session_id="s"), SimpleNamespace(again=again, sources=[])
    assert await opener._restore_home(cast("Any", turn), cast("Any", opening), 7) is None
    assert homes.restored == restored
