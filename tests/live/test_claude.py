"""Claude Code, the real program, through a real server; the model behind it is scripted."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.api.harness import until
from tests.live.bench import PATIENCE, live
from tests.live.programs import CLAUDE, Program
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


def test_claude_code_whose_inside_was_killed_answers_the_next_prompt(tmp_path: Path) -> None:
    """Its adapter lives on and knows the session no longer: another one loads it, in the same turn."""
    with live(tmp_path, CLAUDE) as bench:
        trial = Trial(bench)
        STEPS["two turns"](trial)
        assert bench.kill_inside(trial.session_id) > 0
        trial.say("after_that")
        assert trial.how() == "loaded"


def behind_a_proxy(model: str | None = None) -> Program:
    """The same program in a network of its own, from which it reaches the scripted model and no other."""

    def env(url: str) -> dict[str, str]:
        hosts = {"CLAWDFORGE_AGENT_NETWORK": "proxy", "CLAWDFORGE_AGENT_HOSTS": urlsplit(url).netloc}
        return {**CLAUDE.env(model or url), **hosts}

    return replace(CLAUDE, env=env)


@pytest.mark.long
@needs("bwrap")
def test_claude_code_finds_its_model_through_the_proxy(tmp_path: Path) -> None:
    with live(tmp_path, behind_a_proxy()) as bench:
        trial = Trial(bench)
        names = ("two turns", "usage", "tool, permission")
        assert {name: STEPS[name](trial) for name in names} == {name: EXPECTED[name] for name in names}


@needs("bwrap")
def test_claude_code_reaches_no_model_that_is_not_listed(tmp_path: Path) -> None:
    with live(tmp_path, behind_a_proxy("http://model.example")) as bench:
        made = bench.forge.create_session(agent=bench.program.called)
        session = bench.forge.attach(made.session_id)
        turn = session.submit("Say hello.").turn_index
        refusal = "claude may not reach model.example:80"
        until(lambda: refusal in bench.server.log_text, "a refusal in the log", PATIENCE)
        session.cancel()
        bench.ended(made.session_id, turn)
