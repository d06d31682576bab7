"""codex, the real program, through a real server; the model behind it is scripted.

It brings a sandbox of its own, which cannot stand inside bubblewrap: there it is told to do without.
"""

from pathlib import Path

import pytest

from tests.live.bench import live
from tests.live.edges import EDGES
from tests.live.programs import CODEX
from tests.live.trial import STEPS, Trial
from tests.needs import needs

pytestmark = [pytest.mark.slow, needs("codex")]
EXPECTED = {
    "two turns": "yes",
    "usage": "exact",
    "tool, permission": "asked",
    "server killed": "loaded",
}
"""Not all steps; `./scripts/live codex` walks through the others too."""


@needs("bwrap")
def test_codex_runs_commands_inside_our_sandbox_and_asks_for_those_that_want_more(tmp_path: Path) -> None:
    with live(tmp_path, CODEX) as bench:
        trial = Trial(bench)
        assert {name: STEPS[name](trial) for name in EXPECTED} == EXPECTED
        assert EDGES["plain command"](trial) == "ran"
        trial.known.append("rm")
        asked, ran = trial.command("mark:rm tool:plain rm -rf nothing; printf %s-%d gone 42", "gone-42")
        assert asked, "what destroys is asked for without the model's asking"
        assert ran
