"""`clawdforge sandbox`: what an agent sees of this machine, and a shell in a sandbox like its own."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from clawdforge.cli.failures import Failure
from clawdforge.cli.target.options import Target, data_dir_option
from clawdforge.settings import BadSettings, Settings, load_settings
from clawdforge.upkeep.sandbox import View, describe, find_agent, open_sandbox
from clawdforge.wire.errors import ForgeAPIError

BARE = "nothing is hidden from it: it can read and write whatever your user can"


@click.group()
def sandbox() -> None:
    """Look at what agents see of this machine. No server is needed."""


@sandbox.command()
@click.argument("agent")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@data_dir_option
@click.pass_obj
def show(target: Target, /, agent: str, as_json: bool) -> None:
    """List what AGENT would see: each place with the reason, variables, limits and network."""
    settings = _load_settings(target)
    try:
        view = describe(settings, find_agent(settings, agent), os.environ)
    except ForgeAPIError as error:
        raise Failure(error.message) from None
    if as_json:
        click.echo(json.dumps(_to_json(view), indent=2))
        return
    for line in _list_lines(view):
        click.echo(line)


@sandbox.command(context_settings={"ignore_unknown_options": True})
@click.argument("agent")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@data_dir_option
@click.pass_obj
def shell(target: Target, /, agent: str, command: tuple[str, ...]) -> None:
    """Open a shell in a sandbox like AGENT's, or run COMMAND there (after `--`).

    Its home and workspace are new and are deleted at the end. Credentials of the agent are the real ones.
    With the network `proxy` the variables name the proxy, but only a server runs one.
    """
    settings = _load_settings(target)
    try:
        with open_sandbox(
            settings, find_agent(settings, agent), os.environ, command or ("/bin/sh",)
        ) as prepared:
            done = subprocess.run(
                prepared.argv, env=dict(prepared.env), cwd=prepared.cwd, pass_fds=prepared.fds, check=False
            )
    except ForgeAPIError as error:
        raise Failure(error.message) from None
    raise SystemExit(done.returncode)


def _load_settings(target: Target) -> Settings:
    try:
        return load_settings(os.environ, config=None, flags={"data_dir": target.data_dir})
    except BadSettings as error:
        raise Failure(str(error)) from None


def _to_json(view: View) -> dict[str, Any]:
    mounts = [{**asdict(mount), "path": str(mount.path)} for mount in view.mounts]
    return {**asdict(view), "mounts": mounts, "found": [str(path) for path in view.found]}


def _list_lines(view: View) -> Iterator[str]:
    yield f"agent      {view.agent}: {' '.join(view.command)}"
    yield f"sandbox    {view.active} ({view.reason})"
    yield f"network    {view.network}"
    limits = (f"{name.replace('_', ' ')} {value or 'unlimited'}" for name, value in view.limits.items())
    yield f"limits     {', '.join(limits)}"
    yield f"variables  {' '.join(view.env)}"
    if view.active == "tree":
        yield f"sees       {BARE}"
    elif view.active == "landlock":
        yield "sees       it sees the names of all files, and can use these alone:"
    else:
        yield "sees       these places and no others:"
    settings = [mount for mount in view.mounts if str(mount.path).startswith("/etc/")]
    for mount in view.mounts:
        if mount not in settings:
            leads = f" → {mount.target}" if mount.how == "link" else ""
            yield f"  {mount.how:10} {mount.path}{leads}  ({mount.why})"
    if settings:
        names = " ".join(str(mount.path).removeprefix("/etc/") for mount in settings)
        yield f"  {'read-only':10} /etc  ({names})"
    for doubt in view.doubts:
        yield f"note       {doubt}"
