"""`clawdforge sessions show`: a session's state and its transcript."""

import json
import shutil

import click

from clawdforge.cli import render
from clawdforge.cli.choose import find, id_argument
from clawdforge.cli.connect import connected
from clawdforge.cli.options import Target, target_options
from clawdforge.cli.paint import Painter
from clawdforge.cli.tables import state_word

FACTS = ("session_id", "title", "agent", "model", "cwd", "permission_mode", "turn_count", "parent_session_id")


@click.command()
@id_argument
@click.option("--all", "archived", is_flag=True, help="Show archived messages as well.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the session with its messages.")
@target_options
@click.pass_obj
def show(target: Target, /, session: str, *, archived: bool, as_json: bool) -> None:
    """Show a session and what was said in it."""
    place = target.reach()
    row = find(place, session)
    with connected(target) as forge:
        messages = [message.model_dump() for message in forge.handle(row).messages(all=archived)]
    if as_json:
        click.echo(json.dumps({**row, "messages": messages}, ensure_ascii=False, indent=2))
        return
    painter = Painter(colour=target.colour)
    facts = [f"{name.ljust(18)}{row[name]}" for name in FACTS if row.get(name) not in (None, "")]
    lines = render.note("\n".join([*facts, f"{'state'.ljust(18)}{state_word(row)}", ""]))
    for message in messages:
        lines += render.message(message)
    click.echo(painter.paint(lines, shutil.get_terminal_size().columns), nl=False)
