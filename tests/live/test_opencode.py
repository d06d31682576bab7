"""opencode, the real program, through a real server; the model behind it is scripted."""

from pathlib import Path

import pytest

from tests.live.bench import live
from tests.live.programs import OPENCODE
from tests.live.trial import STEPS, Trial
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("opencode")]
EXPECTED = {
    "two turns": "yes",
    "usage": "exact",
    "tool, permission": "asked",
    "cancel": "yes",
    "server killed": "loaded",
}
"""Not all steps; `./scripts/live opencode` walks through the others too."""


def test_opencode_from_its_first_turn_to_a_killed_server(tmp_path: Path) -> None:
    with live(tmp_path, OPENCODE) as bench:
        trial = Trial(bench)
        assert {name: STEPS[name](trial) for name in EXPECTED} == EXPECTED
