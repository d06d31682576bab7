"""`clawdforge tail`: what happens in a session, watched from another terminal."""

import json
import shutil
import sys

import click

from clawdforge.cli.output.live_view import View
from clawdforge.cli.output.painter import make_painter
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.find_session import find, id_argument
from clawdforge.cli.target.options import Target, target_options
from clawdforge.wire.event import Event


@click.command()
@id_argument
@click.option("-f", "--follow", is_flag=True, help="Keep showing events as they happen, until Ctrl-C.")
@click.option("--after", type=click.IntRange(min=0), metavar="SEQ", help="Start after this event.")
@click.option("--json", "as_json", is_flag=True, help="Print the events, one JSON object per line.")
@target_options
@click.pass_obj
def tail(target: Target, /, session: str, *, follow: bool, after: int | None, as_json: bool) -> None:
    """Show what happened in a session: its last turn, or everything after an event."""
    row = find(target.reach(), session)
    with connect(target) as forge:
        handle = forge.handle(row)
        if after is None:
            turns = [turn for turn in handle.turns() if turn.first_seq is not None]
            after = (turns[-1].first_seq or 1) - 1 if turns else 0
        printer = _EventPrinter(target, as_json=as_json)
        try:
            for event in handle.follow(after) if follow else handle.events(after):
                printer.print_event(event)
        except KeyboardInterrupt:
            return


class _EventPrinter:
    """Prints events one by one."""

    def __init__(self, target: Target, *, as_json: bool) -> None:
        self._as_json = as_json
        self._view = View()
        self._painter = make_painter(colour=target.colour)

    def print_event(self, event: Event) -> None:
        if self._as_json:
            text = json.dumps(event.model_dump(exclude_unset=True), ensure_ascii=False) + "\n"
        else:
            text = self._painter.paint(self._view.take(event), shutil.get_terminal_size().columns)
        sys.stdout.write(text)
        sys.stdout.flush()
