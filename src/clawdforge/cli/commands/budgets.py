"""`clawdforge budgets` and `budget`: what may be spent, and what is left of it."""

import json
from collections.abc import Sequence
from typing import Final

import click

from clawdforge.cli.tables import align, bar, money, tokens
from clawdforge.cli.target.connect import connect, connect_as_operator
from clawdforge.cli.target.find_session import find
from clawdforge.cli.target.options import Target, target_options
from clawdforge.client.models import (
    Budget,
    BudgetPeriodWord,
    BudgetScopeWord,
    BudgetThenWord,
)
from clawdforge.wire.base import to_iso

HEAD: Final = ("budget", "of", "period", "used", "spent", "held", "of at most", "then", "begins anew")
PERIODS: Final = ("day", "month", "total")
THEN: Final = ("refuse", "ask", "stop")


@click.command()
@click.option("--app", "app_name", metavar="NAME", help="Those of this app. For operators.")
@click.option("--all", "everybody", is_flag=True, help="Those of all apps. For operators.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def budgets(target: Target, /, *, app_name: str | None, everybody: bool, as_json: bool) -> None:
    """Show what may be spent, and what is spent and left of it."""
    if everybody or app_name is not None:
        with connect_as_operator(target) as forge:
            found = list(forge.admin.budgets(None if everybody else app_name))
    else:
        with connect(target) as forge:
            found = forge.budgets()
    if as_json:
        click.echo(json.dumps([one.model_dump(mode="json") for one in found], indent=2))
        return
    rows = [row for one in found for row in _make_rows(one)]
    if not target.is_terminal:
        lines = ["\t".join(row) for row in rows]
    else:
        lines = align(rows, colour=target.colour, head=HEAD)
    if rows:
        click.echo("\n".join(lines))
    else:
        target.note("no budgets; `clawdforge budget set` makes one")


@click.group()
@target_options
def budget() -> None:
    """Set and remove budgets: what an app, a token or a session may spend."""


@budget.command(name="set")
@click.option("--app", "app_name", metavar="NAME", help="Of this app, which cannot loosen it. For operators.")
@click.option("--token", "token_id", metavar="ID", help="Of this token of the app.")
@click.option("--session", metavar="ID", help="Of this session of the app, and its sub-sessions.")
@click.option(
    "--period", type=click.Choice(PERIODS), default="day", show_default=True, help="Per day, month or in all."
)
@click.option("--cost", type=click.FloatRange(min=0), metavar="USD", help="At most this many dollars.")
@click.option("--tokens", "max_tokens", type=click.IntRange(min=0), help="At most this many tokens.")
@click.option("--share-cost", type=click.FloatRange(min=0, min_open=True), metavar="USD",
              help="What a turn without its own limit holds.  [default: a twentieth]")  # fmt: skip
@click.option("--share-tokens", type=click.IntRange(min=1), help="The same for tokens.")
@click.option("--warn-at", type=click.FloatRange(min=0, max=1, min_open=True), metavar="FRACTION",
              help="Warn when this fraction of it is spent.  [default: 0.8]")  # fmt: skip
@click.option("--then", type=click.Choice(THEN), default="refuse", show_default=True,
              help="When nothing is left: refuse new turns, ask first, or stop running ones.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def set_(
    target: Target,
    /,
    *,
    app_name: str | None,
    token_id: str | None,
    session: str | None,
    period: BudgetPeriodWord,
    cost: float | None,
    max_tokens: int | None,
    share_cost: float | None,
    share_tokens: int | None,
    warn_at: float | None,
    then: BudgetThenWord,
    as_json: bool,
) -> None:
    """Limit what your app, one of its tokens or one of its sessions may spend; with --app, any app's.

    A budget of the same scope and period is replaced, and what was spent of it stays spent.
    """
    if cost is None and max_tokens is None:
        raise click.UsageError("give --cost, --tokens or both")
    if token_id is not None and session is not None:
        raise click.UsageError("give --token or --session, not both")
    if session is not None and app_name is None:
        session = str(find(target.reach(), session)["session_id"])
    scope: BudgetScopeWord = "token" if token_id else "session" if session else "app"
    scope_id = token_id or session
    if app_name is not None:
        with connect_as_operator(target) as forge:
            made = forge.admin.set_budget(
                app_name, scope=scope, id=scope_id, period=period, max_cost_usd=cost, max_tokens=max_tokens,
                share_cost_usd=share_cost, share_tokens=share_tokens, warn_at=warn_at, then=then,
            )  # fmt: skip
    else:
        with connect(target) as forge:
            made = forge.set_budget(
                scope=scope, id=scope_id, period=period, max_cost_usd=cost, max_tokens=max_tokens,
                share_cost_usd=share_cost, share_tokens=share_tokens, warn_at=warn_at, then=then,
            )  # fmt: skip
    if as_json:
        click.echo(made.model_dump_json(indent=2))
        return
    click.echo(made.budget_id)


@budget.command()
@click.argument("budget_id")
@click.option("--app", "app_name", metavar="NAME", help="Of this app, whoever has set it. For operators.")
@target_options
@click.pass_obj
def remove(target: Target, /, budget_id: str, *, app_name: str | None) -> None:
    """Remove a budget, and forget what was spent of it. `budgets` shows the ids."""
    if app_name is not None:
        with connect_as_operator(target) as forge:
            forge.admin.remove_budget(budget_id)
    else:
        with connect(target) as forge:
            forge.remove_budget(budget_id)
    target.note(f"budget {budget_id} is removed")


def _make_rows(one: Budget) -> list[Sequence[str]]:
    """A line for its money, and one for its tokens."""
    lines: list[tuple[float, float, float, tuple[str, ...]]] = []
    if one.max_cost_usd is not None:
        spent, held, most = (
            one.spent.cost_usd + one.estimated.cost_usd,
            one.reserved.cost_usd,
            one.max_cost_usd,
        )
        lines.append((spent, held, most, (money(spent), money(held), money(most))))
    if one.max_tokens is not None:
        amounts = (one.spent.tokens + one.estimated.tokens, one.reserved.tokens, one.max_tokens)
        lines.append((*amounts, tuple(f"{tokens(amount)} tokens" for amount in amounts)))
    whose = f"{one.scope} {one.id or one.app_name}{' (operator)' if one.by_operator else ''}"
    anew = "never" if one.period_ends is None else to_iso(one.period_ends * 1_000_000)[:10]
    return [
        (
            one.budget_id,
            whose,
            one.period,
            f"{bar(spent, limit, held)} {spent / limit * 100 if limit else 100:3.0f} %",
            *shown,
            one.then,
            anew,
        )
        for spent, held, limit, shown in lines
    ]
