"""`clawdforge app`, `audit` and `stuck`: apps and their limits, the audit log, what stands still."""

import json
import os
from pathlib import Path
from typing import Any

import click

from clawdforge.cli.failures import Failure
from clawdforge.cli.tables import align
from clawdforge.cli.target.connect import connect_as_operator
from clawdforge.cli.target.options import Target, target_options
from clawdforge.client import Forge


@click.group()
@target_options
def app() -> None:
    """List apps, set their limits and grant them folders. For operators."""


@app.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def list_(target: Target, /, *, as_json: bool) -> None:
    """List the apps with their sessions, tokens, limits, pauses and folders."""
    with connect_as_operator(target) as forge:
        found = forge.admin.apps()
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    rows = [
        (
            one.app_name,
            str(one.sessions),
            str(one.tokens),
            _format_limits(one.limits),
            "paused" if one.paused else "-",
            ", ".join(one.workspace_roots) or "-",
        )
        for one in found
    ]
    head = ("app", "sessions", "tokens", "limits", "paused", "folders")
    click.echo("\n".join(align(rows, colour=target.colour, head=head)))


def _format_limits(limits: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in limits.items() if value is not None) or "-"


@app.command()
@click.argument("name")
@click.option(
    "--max-sessions", type=click.IntRange(min=0), metavar="N", help="Open sessions at the same time."
)
@click.option("--max-turns", type=click.IntRange(min=0), metavar="N", help="Turns that run or wait.")
@click.option("--max-bytes", type=click.IntRange(min=0), metavar="N", help="Bytes stored, in all forms.")
@click.option(
    "--max-agents", type=click.IntRange(min=0), metavar="N", help="Agents that live at the same time."
)
@target_options
@click.pass_obj
def limit(
    target: Target,
    /,
    name: str,
    *,
    max_sessions: int | None,
    max_turns: int | None,
    max_bytes: int | None,
    max_agents: int | None,
) -> None:
    """Create the app NAME, or replace its limits. Limits that are left out are removed."""
    limits = {
        "max_sessions": max_sessions,
        "max_turns_in_flight": max_turns,
        "max_bytes": max_bytes,
        "max_agents": max_agents,
    }
    with connect_as_operator(target) as forge:
        forge.admin.put_app(name, limits={key: value for key, value in limits.items() if value is not None})


@app.command()
@click.argument("name")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@target_options
@click.pass_obj
def grant(target: Target, /, name: str, folders: tuple[str, ...]) -> None:
    """Let the app NAME choose working directories inside each FOLDER, beside those granted before."""
    with connect_as_operator(target) as forge:
        before = _find_granted(forge, name)
        now = forge.admin.put_app(name, workspace_roots=[*before, *_make_absolute(folders)])
    target.note(f"{name} may work in {', '.join(now.workspace_roots)}")


@app.command()
@click.argument("name")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@target_options
@click.pass_obj
def revoke(target: Target, /, name: str, folders: tuple[str, ...]) -> None:
    """Take each FOLDER away from the app NAME. Sessions that work there already stay."""
    gone = _make_absolute(folders)
    with connect_as_operator(target) as forge:
        before = _find_granted(forge, name)
        unknown = [folder for folder in gone if folder not in before]
        if unknown:
            raise Failure(
                f"{', '.join(unknown)} was not granted to {name}; `clawdforge app list` shows its folders"
            )
        now = forge.admin.put_app(name, workspace_roots=[one for one in before if one not in gone])
    target.note(f"{name} may work in {', '.join(now.workspace_roots) or 'no folder of its own choice'}")


def _find_granted(forge: Forge, name: str) -> list[str]:
    return next((one.workspace_roots for one in forge.admin.apps() if one.app_name == name), [])


def _make_absolute(folders: tuple[str, ...]) -> list[str]:
    """As the shell means them, without following links: the server refuses those itself."""
    return [os.path.normpath(Path(folder).absolute()) for folder in folders]


@click.group()
@target_options
def audit() -> None:
    """Check the audit log. For operators."""


@audit.command()
@click.option(
    "--head", help="The last hash that you noted: also checks that nothing was cut off the end since."
)
@target_options
@click.pass_obj
def verify(target: Target, /, *, head: str | None) -> None:
    """Check that no entry of the audit log was changed or removed, and print its last hash."""
    with connect_as_operator(target) as forge:
        verdict = forge.admin.verify(head)
    if not verdict.valid:
        where = f" at entry {verdict.first_bad}" if verdict.first_bad is not None else ""
        raise Failure(f"the audit log is damaged{where}: {verdict.reason or 'its hashes do not match'}")
    target.note(f"{verdict.entries} entries, all intact")
    click.echo(verdict.head)


@click.command()
@click.option(
    "--secs", type=click.FloatRange(min=0), default=60.0, show_default=True, help="How long at least."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def stuck(target: Target, /, *, secs: float, as_json: bool) -> None:
    """Show sessions that stand still, and what they wait for. For operators."""
    with connect_as_operator(target) as forge:
        found = forge.admin.stuck(secs)
    if as_json:
        click.echo(json.dumps(found.model_dump(mode="json"), indent=2))
        return
    rows = [
        (one.session_id, one.app_name, one.waits_for.value, f"{one.secs:.0f} s") for one in found.sessions
    ]
    if rows:
        head = ("session", "app", "waits for", "since")
        click.echo("\n".join(align(rows, colour=target.colour, head=head)))
    for name, why in found.tasks.items():
        target.note(f"{name} failed and will be started again: {why}")
