"""`clawdforge setup`: which agents are here, what each needs, one installed on request, and a first turn."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.output.lines import clean
from clawdforge.cli.tables import align
from clawdforge.cli.target.completing import complete_agent
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.options import Target, target_options
from clawdforge.client import Forge
from clawdforge.client._background import read_holder
from clawdforge.client._environment import find_changes
from clawdforge.drivers.registry.node import Version, comes_by_npm, find_fault, read_node_version

PROMPT: Final = "Say hello in five words."
TRY_SECS: Final = 120.0
BUILT_IN: Final = "demo"


@click.command()
@click.argument("agent", required=False, shell_complete=complete_agent)
@click.option("--install", is_flag=True, help="Install the agent if it is missing, without asking.")
@click.option("--no-try", is_flag=True, help="Send no prompt.")
@target_options
@click.pass_obj
def setup(target: Target, /, agent: str | None, *, install: bool, no_try: bool) -> None:
    """Show which agents are here and what they need; install AGENT, try it, and say what to type next.

    Without AGENT the first one that is installed is tried. Installing runs the command that is shown. The
    prompt costs what a short answer of that agent costs; the built-in `demo` costs nothing.
    """
    with connect(target) as forge:
        found = {one.name: one for one in forge.agents()}
        _show(found.values(), colour=target.colour)
        chosen = _choose(found, agent)
        if not chosen.installed:
            _install(target, chosen, install=install)
        _check_server(target)
        if not no_try:
            _try(forge, chosen)
    click.echo(f"\nNow type:  clawdforge{'' if chosen.name == BUILT_IN else f' -a {chosen.name}'}")


def _show(agents: Any, *, colour: bool) -> None:
    rows = [(one.name, one.title, *describe(one, os.environ)) for one in agents]
    click.echo("\n".join(align(rows, colour=colour, head=("agent", "", "program", "to sign in"))))


def describe(agent: Any, env: Mapping[str, str]) -> tuple[str, str]:
    """Whether its program is there, and how it is signed in; each with what to do."""
    program = (agent.version or "installed") if agent.installed else agent.install or "not installed"
    given = next((name for name in agent.keys if env.get(name)), None)
    if given:
        return program, f"{given} is set"
    if agent.keys:
        return program, f"its own login, or export {agent.keys[0]}=…"
    return program, "nothing needed" if agent.name == BUILT_IN else "see its own documentation"


def _choose(agents: Mapping[str, Any], wanted: str | None) -> Any:
    if wanted is not None:
        if wanted not in agents:
            raise Failure(f"there is no agent {wanted!r}; the list above has those that are known")
        return agents[wanted]
    ready = [one for one in agents.values() if one.installed and one.name != BUILT_IN]
    signed_in = [one for one in ready if any(os.environ.get(name) for name in one.keys)]
    for one in (*signed_in, *ready):
        return one
    return agents[BUILT_IN]


def _install(target: Target, agent: Any, *, install: bool) -> None:
    """Run the command of the server on this machine's data folder. No other server says what runs here."""
    if target.address is not None:
        raise Failure(f"install {agent.name} on the machine of {target.address}: {agent.install or ''}")
    command = shlex.split(agent.install or "")
    if command and command[0] == "install":  # words for a person: its maker has an installer of his own
        raise Failure(f"{agent.name} is not here yet: {agent.install}, then run this again")
    if not command:
        raise Failure(f"{agent.name} is not installed, and no command that installs it is known")
    problem = find_obstacle(command, read_node_version())
    if problem:
        raise Failure(f"cannot install {agent.name}: {problem}")
    click.echo(f"\n{agent.name} is installed by:  {agent.install}")
    if not install and not click.confirm("Run this now?"):
        raise Failure("nothing was installed")
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        raise Failure(f"`{agent.install}` ended with {done.returncode}; what it said is above")


def find_obstacle(command: Sequence[str], node: Version | None) -> str | None:
    """Why this command cannot bring a working agent, and what to do; None when nothing is in the way."""
    if comes_by_npm(command) and (fault := find_fault(node)):
        return f"it needs {fault}"
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not installed"
    return None


def _check_server(target: Target) -> None:
    """A key that was exported since is not there for a server that was started before."""
    if target.address is not None:
        return
    changed = find_changes(target.folder, (read_holder(target.folder) or {}).get("pid"), os.environ)
    if changed:
        raise Failure(
            f"the server in the background was started before this changed: {', '.join(changed)}; run "
            "`clawdforge server restart`, then this again"
        )


def _try(forge: Forge, agent: Any) -> None:
    click.echo(f"\nTrying {agent.name}: “{PROMPT}”")
    with forge.session(agent=agent.name, title="setup", permission_mode="approve_reads") as session:
        result = session.turn(PROMPT, timeout=TRY_SECS)
    said = clean(result.text()).strip()
    if not said:
        raise Failure(f"{agent.name} answered nothing (it stopped with {result.stop_reason})", Exit.ERROR)
    click.echo("\n".join(f"  {line}" for line in said.splitlines()))
