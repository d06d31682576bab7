"""What the shell offers for a word: ids with titles, agents and personas, as a running server knows them.

No server is started for a keystroke, and one that does not answer at once is left alone.
"""

from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from clawdforge.cli.failures import Failure
from clawdforge.cli.target.options import Target
from clawdforge.cli.target.quick_get import get

PATIENCE_SECS: Final = 2.0
MOST: Final = 50


def complete_id(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids that begin so, the last used first."""
    rows = _ask(ctx, "/sessions", "sessions", limit=MOST, prefix=incomplete or None)
    return [
        CompletionItem(str(row["session_id"]), help=str(row.get("title") or row["agent"])) for row in rows
    ]


def complete_agent(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Agents that can be run here come before those that are not installed."""
    rows = _begin_so(_ask(ctx, "/agents", "agents"), incomplete)
    rows.sort(key=lambda row: not row.get("installed"))
    return [
        CompletionItem(str(row["name"]), help="" if row.get("installed") else "not installed") for row in rows
    ]


def complete_persona(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    rows = _begin_so(_ask(ctx, "/personas", "personas"), incomplete)
    return [CompletionItem(str(row["name"]), help=str(row.get("agent") or "")) for row in rows]


def _begin_so(rows: list[dict[str, Any]], incomplete: str) -> list[dict[str, Any]]:
    return [row for row in rows if str(row["name"]).startswith(incomplete)]


def _ask(ctx: click.Context, path: str, what: str, **params: object) -> list[dict[str, Any]]:
    running = ctx.ensure_object(Target).find_running()
    if running is None:
        return []
    try:
        found: list[dict[str, Any]] = get(running.url, running.token, path, PATIENCE_SECS, **params)[what]
    except Failure:
        return []
    return found
