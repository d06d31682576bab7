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
@click.option(
    "--by", metavar="NAMES", help="Instead, of all your turns by day, agent, model; with app, of every app."
)
@click.option("--from", "first", metavar="DAY", help="With --by: the first day, in UTC; else 29 days back.")
@click.option("--to", "last", metavar="DAY", help="With --by: the last day; else today.")
@JSON
@target_options
@click.pass_obj
def usage(
    target: Target,
    /,
    session: str | None,
    *,
    by: str | None,
    first: str | None,
    last: str | None,
    as_json: bool,
) -> None:
    """Show tokens and cost of a session; without ID, of every app (for operators)."""
    if by is None and (first is not None or last is not None):
        raise click.UsageError("--from and --to go with --by, such as --by day")
    if by is not None and session is not None:
        raise click.UsageError("--by adds up all sessions: leave ID out")
    if by is not None:
        _usage_by(target, [name.strip() for name in by.split(",")], first, last, as_json=as_json)
        return
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


def _usage_by(
    target: Target, by: Sequence[Any], first: str | None, last: str | None, *, as_json: bool
) -> None:
    if "app" in by:
        with connect_as_operator(target) as forge:
            found = list(forge.admin.usage_by(*by, from_day=first, to_day=last))
    else:
        with connect(target) as forge:
            found = list(forge.usage_by(*by, from_day=first, to_day=last))
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in found], indent=2))
        return
    names = [name for name in ("day", "app", "agent", "model") if name in by]
    rows = [
        (
            *(getattr(one, name) or "-" for name in names),
            str(one.turns),
            tokens(one.reported.total_tokens),
            money(one.reported.cost_usd) or "-",
            tokens(one.estimated.total_tokens),
            money(one.estimated.cost_usd) or "-",
        )
        for one in found
    ]
    head = (*names, "turns", "reported", "cost", "estimated", "estimated cost")
    _print_table(target, head, rows)


def _print_table(target: Target, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if target.is_terminal:
        lines = align(rows, colour=target.colour, head=head)
    else:
        lines = ["\t".join(row) for row in rows]
    click.echo("\n".join(lines))
