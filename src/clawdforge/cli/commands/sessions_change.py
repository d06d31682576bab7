"""`clawdforge sessions …`: what changes a session, or carries it elsewhere."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from clawdforge.cli.failures import Failure
from clawdforge.cli.output.lines import clean
from clawdforge.cli.output.progress import show_progress
from clawdforge.cli.tables import one_line
from clawdforge.cli.target.completing import complete_agent
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.find_session import find, id_argument
from clawdforge.cli.target.options import Target, target_options
from clawdforge.cli.target.project import project_folder


@click.command()
@id_argument
@click.argument("title")
@target_options
@click.pass_obj
def rename(target: Target, /, session: str, title: str) -> None:
    """Give a session another title."""
    row = find(target.reach(), session)
    with connect(target) as forge:
        forge.handle(row).rename(title)


@click.command()
@id_argument
@target_options
@click.pass_obj
def end(target: Target, /, session: str) -> None:
    """End a session. Its history stays and can be read."""
    row = find(target.reach(), session)
    if row["state"] == "ended":
        target.note(f"session {row['session_id']} had ended already")
        return
    with connect(target) as forge:
        forge.handle(row).close()
    target.note(f"session {row['session_id']} has ended")


@click.command()
@id_argument
@click.option("--yes", is_flag=True, help="Do not ask first.")
@target_options
@click.pass_obj
def delete(target: Target, /, session: str, *, yes: bool) -> None:
    """Delete a session with its files, for good."""
    row = find(target.reach(), session)
    words = f"{row['session_id']} ({one_line(row['title'], 40) or 'no title'}, {row['turn_count']} turns)"
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("deleting asks for confirmation; without a terminal, give --yes")
        click.confirm(f"Delete session {words} for good?", abort=True, err=True)
    with connect(target) as forge:
        forge.handle(row).purge()
    target.note(f"session {row['session_id']} is deleted")


@click.command()
@id_argument
@click.option("--title", help="Title of the new session.")
@click.option(
    "--after-turn", type=click.IntRange(min=0), metavar="N", help="Copy the history up to this turn only."
)
@target_options
@click.pass_obj
def fork(target: Target, /, session: str, *, title: str | None, after_turn: int | None) -> None:
    """Make an independent copy and print its id."""
    row = find(target.reach(), session)
    with connect(target) as forge:
        made = forge.handle(row).fork(title=title, after_turn=after_turn)
    click.echo(made.session_id)


@click.command()
@id_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "md", "html"]),
    default="json",
    show_default=True,
    help="What to write.",
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File; else stdout.")
@click.option("--events", is_flag=True, help="With json: the event log as well.")
@target_options
@click.pass_obj
def export(target: Target, /, session: str, *, form: str, output: Path | None, events: bool) -> None:
    """Write a session to a file, to read or import it elsewhere."""
    row = find(target.reach(), session)
    with connect(target) as forge, show_progress(target, "exporting"):
        handle = forge.handle(row)
        if form == "md":
            text = handle.export_markdown()
        elif form == "html":
            text = handle.export_html()
        else:
            text = handle.export(events=events or None).model_dump_json(indent=2)
    if output is None:
        click.echo(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {output}: {error.strerror}") from None
    target.note(f"written to {output}")


@click.command(name="import")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option(
    "--format",
    "form",
    type=click.Choice(["clawdforge", "messages", "claude", "codex"]),
    help="What the file is.  [default: clawdforge, or messages for a JSON list]",
)
@click.option("--title", help="Title of the new session.")
@click.option("-a", "--agent", shell_complete=complete_agent, help="Agent of the new session.")
@target_options
@click.pass_obj
def import_(target: Target, /, file: Any, *, form: str | None, title: str | None, agent: str | None) -> None:
    """Make a session from FILE (- for stdin) and print its id.

    FILE is an export of ours, a JSON list of messages, or the transcript of another tool.
    """
    text = file.read()
    body: dict[str, Any] = {"title": title, "agent": agent, "retention": "keep"}
    endpoint = target.reach()
    if endpoint.is_local:
        body["cwd"] = project_folder()
    if form in ("claude", "codex"):
        body.update(text=text, format=form)
    else:
        try:
            found = json.loads(text)
        except ValueError as error:
            raise Failure(
                f"{file.name} is not JSON ({error}); for another tool's transcript name --format"
            ) from None
        listed = isinstance(found, list)
        body["messages" if form == "messages" or listed else "export"] = found
    with connect(target) as forge:
        with show_progress(target, "importing"):
            made = forge.import_session(**body)
        click.echo(made.session_id)


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def search(target: Target, /, words: tuple[str, ...], *, limit: int, as_json: bool) -> None:
    """Find messages with these words, in all sessions."""
    with connect(target) as forge:
        hits = [hit for hit, _ in zip(forge.search(" ".join(words)), range(limit), strict=False)]
    if as_json:
        click.echo(json.dumps([hit.model_dump() for hit in hits], ensure_ascii=False, indent=2))
        return
    for hit in hits:
        said = one_line(clean(hit.snippet), 100)
        click.echo(f"{hit.session_id[:8]}  {one_line(hit.title, 30)}  {hit.role}: {said}")
    if not hits:
        target.note("no messages found")
