"""Claude Code, the real program, through a real server; the model behind it is scripted."""

from pathlib import Path

import pytest

from tests.api.harness import until
from tests.live.bench import live
from tests.live.programs import CLAUDE
from tests.live.trial import STEPS, Trial, one_shot
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("claude")]


EXPECTED = {
    "two turns": "yes",
    "usage": "exact",
    "tool, permission": "asked",
    "cancel": "yes",
    "agent killed": "loaded",
    "server killed": "loaded",
    "undo": "restored",
    "fork": "loaded",
}


def test_claude_code_from_its_first_turn_to_a_fork(tmp_path: Path) -> None:
    """One session on its way through all steps, then a run without one."""
    with live(tmp_path, CLAUDE) as bench:
        trial = Trial(bench)
        assert {name: step(trial) for name, step in STEPS.items()} == EXPECTED
        assert one_shot(bench) == "yes"
        assert (until(bench.version, "the version of Claude Code"))[0].isdigit()
