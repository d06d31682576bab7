"""A deepagents graph with a real client of a model, through a real server; the model itself is scripted."""

from pathlib import Path

import pytest

from tests.live.bench import live
from tests.live.programs import DEEPAGENTS
from tests.live.trial import STEPS, Trial
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("langgraph"), needs("deepagents")]
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


def test_a_deepagents_graph_from_its_first_turn_to_a_fork(tmp_path: Path) -> None:
    with live(tmp_path, DEEPAGENTS) as bench:
        trial = Trial(bench)
        assert {name: step(trial) for name, step in STEPS.items()} == EXPECTED
