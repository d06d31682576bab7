"""A real MCP server, given to real agents by their sessions, by its streams or over HTTP."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from clawdforge import Forge
from tests.api.harness import ADMIN_TOKEN, until
from tests.live.bench import PATIENCE, LiveBench, live
from tests.live.programs import CLAUDE, OPENCODE, Program
from tests.live.trial import Trial
from tests.needs import MCP, needs

pytestmark = [pytest.mark.slow, needs("mcp")]
SERVER = Path(__file__).with_name("tools_server.py")
KEY = "k3y-of-the-operator"
STARTED = f"""
[mcp_servers.tools]
command = ["{MCP}", "{SERVER}"]
env = {{ TOOLS_KEY = "${{OPERATORS_KEY}}" }}
"""
REACHED = """
[mcp_servers.tools]
url = "{url}"
headers = {{ X-Tools-Key = "${{OPERATORS_KEY}}" }}
"""


@dataclass(frozen=True)
class Caller:
    """An agent, what it calls the tool of the server, and whether it asks before."""

    program: Program
    tool: str
    asks: bool
    config: str = ""


CLAUDES = Caller(
    CLAUDE,
    "mcp__tools__tell",
    asks=True,
    config="""
[agents.claude]
set_env = { IS_SANDBOX = "1", DISABLE_AUTOUPDATER = "1", ENABLE_TOOL_SEARCH = "false" }
""",
)
OPENCODES = Caller(OPENCODE, "tools_tell", asks=False)


def given(caller: Caller, servers: str) -> Program:
    """Its program, with a secret of the operator's for the servers."""
    program = caller.program
    env = {"OPERATORS_KEY": KEY, "CLAWDFORGE_LOG_LEVEL": "debug"}
    return replace(program, config=caller.config + servers, env=lambda url: {**program.env(url), **env})


@contextmanager
def serving(place: Path) -> Iterator[str]:
    """The server as one that listens; its address."""
    told = place / "address"
    process = subprocess.Popen([str(MCP), str(SERVER), "--http", str(told)], stdin=subprocess.DEVNULL)
    try:
        until(told.exists, "the address of the server of tools", PATIENCE)
        yield told.read_text()
    finally:
        process.terminate()
        process.wait(30)


def call_twice(bench: LiveBench, caller: Caller) -> None:
    """The tool answers with the secret, also after a crash of our server; nobody else ever sees that."""
    made = bench.forge.create_session(agent=caller.program.called, permission_mode="ask")
    trial = Trial(bench, made.session_id)
    for mark in ("one", "two"):
        if mark == "two":
            bench.crash()
        trial.known.append(mark)
        prompt = f'mark:{mark} tool:{caller.tool} {{"word": "hello-{mark}"}}'
        asked, ran = trial.command(prompt, f"hello-{mark} {KEY}")
        assert ran
        assert bool(asked) == caller.asks
    assert trial.how() == "loaded"
    with Forge(bench.server.url, token=ADMIN_TOKEN) as operator:
        assert KEY not in str(operator.admin.apps())
    assert KEY not in bench.server.log_text


@needs("claude")
def test_claude_code_calls_a_tool_of_a_server_that_the_operator_named(tmp_path: Path) -> None:
    """Its program lies where agents do not look. The tool is asked for, and is there after a crash too."""
    with live(tmp_path, given(CLAUDES, STARTED)) as bench:
        call_twice(bench, CLAUDES)


@pytest.mark.long
@needs("opencode")
def test_opencode_calls_a_tool_of_the_same_server(tmp_path: Path) -> None:
    with live(tmp_path, given(OPENCODES, STARTED)) as bench:
        call_twice(bench, OPENCODES)


@pytest.mark.long
@needs("opencode")
def test_opencode_calls_a_tool_of_a_server_over_http(tmp_path: Path) -> None:
    with serving(tmp_path) as url, live(tmp_path, given(OPENCODES, REACHED.format(url=url))) as bench:
        call_twice(bench, OPENCODES)
