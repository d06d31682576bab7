"""`undo`, `redo` and `retry`: a session's last turns taken back, brought back, sent again."""

from typing import Any

import click

from clawdforge.cli.output.answer import Printer, outcome_code
from clawdforge.cli.tables import one_line
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.find_session import find, find_open, id_argument
from clawdforge.cli.target.options import Target, target_options

FILES = "Restore the files of the workspace as well, where that is possible."


@click.command()
@id_argument
@click.option(
    "-n", "--turns", type=click.IntRange(min=1), default=1, show_default=True, help="How many turns."
)
@click.option("--files", is_flag=True, help=FILES)
@target_options
@click.pass_obj
def undo(target: Target, /, session: str, *, turns: int, files: bool) -> None:
    """Take back the last turn, in the transcript and in the agent's memory. Prints its prompt."""
    row = find(target.reach(), session)
    with connect(target) as forge:
        cut = forge.handle(row).undo(turns, files=files or None)
    target.note(
        f"took back {cut.removed_count} messages; undo that with `clawdforge redo {row['session_id'][:8]}`"
    )
    click.echo(cut.last_user_text)


@click.command()
@id_argument
@click.option("--files", is_flag=True, help=FILES)
@target_options
@click.pass_obj
def redo(target: Target, /, session: str, *, files: bool) -> None:
    """Bring back what the last undo removed."""
    row = find(target.reach(), session)
    with connect(target) as forge:
        back = forge.handle(row).redo(files=files or None)
    target.note(f"brought back {back.restored_count} messages")


@click.command()
@id_argument
@click.option("--prompt", help="Send this prompt instead.")
@click.option("--files", is_flag=True, help=FILES)
@click.option("--detach", is_flag=True, help="Do not wait for the answer.")
@target_options
@click.pass_obj
def retry(target: Target, /, session: str, *, prompt: str | None, files: bool, detach: bool) -> None:
    """Take back the last turn and send its prompt again; print the answer."""
    row = find_open(target.reach(), session)
    with connect(target) as forge:
        handle = forge.handle(row)
        options: dict[str, Any] = {"prompt": prompt, "files": files or None}
        cut = handle.retry(run=True, **options)
        target.note(f"retrying: {one_line(prompt or cut.last_user_text, 80)}")
        if detach or cut.turn_index is None:
            click.echo(cut.turn_index)
            return
        printer = Printer(target, handle, "text")
        result = printer.follow(handle.watch(cut.turn_index, max(cut.head - 2, 0)))
    raise SystemExit(outcome_code(target, printer, result))
