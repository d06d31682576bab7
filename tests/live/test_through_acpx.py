"""Claude Code driven by the acpx command line, both the real programs; the model behind them is scripted."""

from pathlib import Path

import pytest

from tests.live.bench import live
from tests.live.programs import CLAUDE, through_acpx
from tests.live.trial import STEPS, Trial
from tests.needs import needs

pytestmark = [pytest.mark.slow, pytest.mark.long, needs("claude"), needs("acpx")]
EXPECTED = {
    "two turns": "yes",
    "usage": "exact",
    "tool, permission": "asked once per turn",
    "server killed": "resumed",
}
"""Not all steps, since acpx takes its time; `./scripts/live acpx-claude` walks through the others too."""


def test_claude_code_through_acpx(tmp_path: Path) -> None:
    with live(tmp_path, through_acpx(CLAUDE)) as bench:
        trial = Trial(bench)
        assert {name: STEPS[name](trial) for name in EXPECTED} == EXPECTED
