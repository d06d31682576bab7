"""`clawdforge app` and `clawdforge audit`: apps with their limits, and the audit log. For operators."""

import json
from typing import Any

import click

from clawdforge.cli.failures import Failure
from clawdforge.cli.tables import align
from clawdforge.cli.target.connect import connect_as_operator
from clawdforge.cli.target.options import Target, target_options


@click.group()
@target_options
def app() -> None:
    """List apps and set their limits. For operators."""


@app.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def list_(target: Target, /, *, as_json: bool) -> None:
    """List the apps with their sessions, tokens and limits."""
    with connect_as_operator(target) as forge:
        found = forge.admin.apps()
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    rows = [(one.app_name, str(one.sessions), str(one.tokens), _format_limits(one.limits)) for one in found]
    click.echo("\n".join(align(rows, colour=target.colour, head=("app", "sessions", "tokens", "limits"))))


def _format_limits(limits: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in limits.items() if value is not None) or "-"


@app.command()
@click.argument("name")
@click.option(
    "--max-sessions", type=click.IntRange(min=0), metavar="N", help="Open sessions at the same time."
)
@click.option("--max-turns", type=click.IntRange(min=0), metavar="N", help="Turns that run or wait.")
@click.option("--max-bytes", type=click.IntRange(min=0), metavar="N", help="Bytes of uploads.")
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
) -> None:
    """Create the app NAME, or replace its limits. Limits that are left out are removed."""
    limits = {"max_sessions": max_sessions, "max_turns_in_flight": max_turns, "max_bytes": max_bytes}
    with connect_as_operator(target) as forge:
        forge.admin.put_app(name, limits={key: value for key, value in limits.items() if value is not None})


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
