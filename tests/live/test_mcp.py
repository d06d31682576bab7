"""A real MCP server, given to Claude Code by its session: both the real programs; the model is scripted."""

from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge import Forge
from tests.api.harness import ADMIN_TOKEN, until
from tests.live.bench import PATIENCE, live
from tests.live.programs import CLAUDE
from tests.live.trial import Trial
from tests.needs import MCP, needs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs("claude"), needs("mcp")]
SERVER = Path(__file__).with_name("tools_server.py")
CONFIG = f"""
[agents.claude]
set_env = {{ IS_SANDBOX = "1", DISABLE_AUTOUPDATER = "1", ENABLE_TOOL_SEARCH = "false" }}
[mcp_servers.tools]
command = ["{MCP}", "{SERVER}"]
env = {{ TOOLS_KEY = "${{OPERATORS_KEY}}" }}
"""
KEY = "k3y-of-the-operator"
PROGRAM = replace(
    CLAUDE,
    config=CONFIG,
    env=lambda url: {**CLAUDE.env(url), "OPERATORS_KEY": KEY, "CLAWDFORGE_LOG_LEVEL": "debug"},
)


def test_claude_code_calls_a_tool_of_a_server_that_the_operator_named(tmp_path: Path) -> None:
    """Its program lies where agents do not look. The tool is asked for, and is there after a crash too."""
    with live(tmp_path, PROGRAM) as bench:
        made = bench.forge.create_session(agent="claude", permission_mode="ask")
        trial = Trial(bench, made.session_id)
        for mark in ("one", "two"):
            if mark == "two":
                bench.crash()
            session = bench.forge.attach(trial.session_id)
            trial.known.append(mark)
            since = len(bench.model.requests())
            turn = session.submit(f'mark:{mark} tool:mcp__tools__tell {{"word": "hello-{mark}"}}').turn_index
            asked = until(session.permissions, "a request for the tool", PATIENCE)
            session.decide(asked[0].permission_id, "allow_once")
            bench.ended(trial.session_id, turn)
            results = [str(one["result"]) for one in bench.asked(since)]
            assert any(f"hello-{mark} {KEY}" in text for text in results), results
            trial.check(bench.said(trial.session_id, turn), trial.known)
        assert trial.how() == "loaded"
        with Forge(bench.server.url, token=ADMIN_TOKEN) as operator:
            assert KEY not in str(operator.admin.apps())
        assert KEY not in bench.server.log_text
