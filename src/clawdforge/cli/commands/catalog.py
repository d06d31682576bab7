"""`agents`, `personas` and `usage`: what is there, and what it cost."""

import json
from collections.abc import Sequence
from typing import Any

import click

from clawdforge.cli.output.render import usage as render_usage
from clawdforge.cli.tables import align, money, tokens
from clawdforge.cli.target.completing import complete_id
from clawdforge.cli.target.connect import connect, connect_as_operator
from clawdforge.cli.target.find_session import find
from clawdforge.cli.target.options import Target, target_options

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@JSON
@target_options
@click.pass_obj
def agents(target: Target, /, *, as_json: bool) -> None:
    """List the agents that can be run, and how to install those that are missing."""
    with connect(target) as forge:
        found = forge.agents()
    if as_json:
        click.echo(json.dumps([agent.model_dump() for agent in found], indent=2))
        return
    rows = [
        (
            one.name,
            (one.version or "installed") if one.installed else "not installed",
            one.title,
            _hint(one),
        )
        for one in found
    ]
    _print_table(target, ("agent", "version", "", ""), rows)


def _hint(agent: Any) -> str:
    if agent.paused is not None:
        return f"paused by the operator{': ' if agent.paused.reason else ''}{agent.paused.reason or ''}"
    return "" if agent.installed else agent.install or ""


@click.command()
@JSON
@target_options
@click.pass_obj
def personas(target: Target, /, *, as_json: bool) -> None:
    """List the personas: named agents with a model, a permission mode and instructions."""
    with connect(target) as forge:
        found = forge.personas()
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    rows = [(one.name, one.agent, one.model or "-", one.permission_mode or "-") for one in found]
    _print_table(target, ("persona", "agent", "model", "permissions"), rows)


@click.command()
@click.argument("session", metavar="[ID]", required=False, shell_complete=complete_id)
@JSON
@target_options
@click.pass_obj
def usage(target: Target, /, session: str | None, *, as_json: bool) -> None:
    """Show tokens and cost of a session; without ID, of every app (for operators)."""
    if session is None:
        _usage_of_apps(target, as_json=as_json)
        return
    row = find(target.reach(), session)
    with connect(target) as forge:
        found = forge.handle(row).usage()
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    click.echo(f"reported by the agent  {render_usage(found.reported.model_dump())}")
    click.echo(f"counted by us          {render_usage(found.estimated.model_dump())}")
    click.echo(f"turns                  {found.turns}")


def _usage_of_apps(target: Target, *, as_json: bool) -> None:
    with connect_as_operator(target) as forge:
        found = forge.admin.usage()
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    rows = [
        (
            one.app_name,
            str(one.sessions),
            str(one.turns),
            tokens(one.input_tokens),
            tokens(one.output_tokens),
            money(one.cost_usd) or "-",
        )
        for one in found.apps
    ]
    _print_table(target, ("app", "sessions", "turns", "in", "out", "cost"), rows)


def _print_table(target: Target, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if target.is_terminal:
        lines = align(rows, colour=target.colour, head=head)
    else:
        lines = ["\t".join(row) for row in rows]
    click.echo("\n".join(lines))
