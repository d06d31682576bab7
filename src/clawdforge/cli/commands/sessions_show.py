"""`clawdforge sessions show`: a session's state and its transcript."""

import json
import shutil
from typing import Any

import click

from clawdforge.cli.output import render
from clawdforge.cli.output.painter import make_painter
from clawdforge.cli.tables import kept_until, state_word
from clawdforge.cli.target.find_session import find, id_argument
from clawdforge.cli.target.options import Endpoint, Target, target_options
from clawdforge.cli.target.quick_get import get

FACTS = ("session_id", "title", "agent", "model", "cwd", "permission_mode", "turn_count", "parent_session_id")


@click.command()
@id_argument
@click.option("--all", "archived", is_flag=True, help="Show archived messages as well.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the session with its messages.")
@target_options
@click.pass_obj
def show(target: Target, /, session: str, *, archived: bool, as_json: bool) -> None:
    """Show a session and what was said in it."""
    endpoint = target.reach()
    row = find(endpoint, session)
    messages = _read_messages(endpoint, row["session_id"], archived=archived)
    if as_json:
        click.echo(json.dumps({**row, "messages": messages}, ensure_ascii=False, indent=2))
        return
    facts = [f"{name.ljust(18)}{row[name]}" for name in FACTS if row.get(name) not in (None, "")]
    facts += [f"{'state'.ljust(18)}{state_word(row)}", f"{'kept'.ljust(18)}{kept_until(row)}"]
    lines = render.note("\n".join([*facts, ""]))
    for message in messages:
        lines += render.message(message)
    click.echo(make_painter(colour=target.colour).paint(lines, shutil.get_terminal_size().columns), nl=False)


def _read_messages(endpoint: Endpoint, session_id: str, *, archived: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        path = f"/sessions/{session_id}/messages"
        page = get(endpoint.url, endpoint.token, path, after=after, limit=500, all=archived)
        found += page["messages"]
        after = page.get("next")
    return found
