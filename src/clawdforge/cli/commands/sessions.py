"""`clawdforge sessions`: the list, and one session's past. What has to be quick is here."""

import json
from typing import Any, Final

import click

from clawdforge.cli.lazy import LazyCommand, LazyGroup
from clawdforge.cli.tables import session_fields, session_lines
from clawdforge.cli.target.completing import complete_agent
from clawdforge.cli.target.find_session import list_newest, list_recent
from clawdforge.cli.target.options import Target, target_options

COMMANDS: Final = {
    "delete": LazyCommand("sessions_change:delete", "Delete a session with its files, for good."),
    "end": LazyCommand("sessions_change:end", "End a session."),
    "export": LazyCommand(
        "sessions_change:export", "Write a session to a file, to read or import it elsewhere."
    ),
    "fork": LazyCommand("sessions_change:fork", "Make an independent copy and print its id."),
    "import": LazyCommand(
        "sessions_change:import_", "Make a session from FILE (- for stdin) and print its id."
    ),
    "rename": LazyCommand("sessions_change:rename", "Give a session another title."),
    "resume": LazyCommand("chat:resume", "Continue a session in the terminal."),
    "search": LazyCommand("sessions_change:search", "Find messages with these words, in all sessions."),
    "show": LazyCommand("sessions_show:show", "Show a session and what was said in it."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS)
@target_options
def sessions() -> None:
    """List, read and manage sessions.

    ID is a session's id, the first six or more characters of it, or its title.
    """


@sessions.command(name="list")
@click.option("--all", "everywhere", is_flag=True, help="Sessions of all projects, not only of this one.")
@click.option("--state", type=click.Choice(["active", "ended"]), help="Only open ones, or only ended ones.")
@click.option("--agent", shell_complete=complete_agent, help="Only sessions with this agent.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def list_(
    target: Target, /, *, everywhere: bool, state: str | None, agent: str | None, limit: int, as_json: bool
) -> None:
    """List sessions, last activity first.

    Shows the sessions of this project: the git work tree around the working directory, or else the
    directory itself. Into a pipe it prints whole values with tabs between them: id, state, time of the
    last activity, agent, turns, title.
    """
    endpoint = target.reach()
    wanted: dict[str, Any] = {"state": state, "agent": agent}
    rows = (
        list_newest(endpoint, limit=limit, **wanted)
        if everywhere
        else list_recent(endpoint, limit=limit, **wanted)
    )
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    elif target.is_terminal:
        click.echo("\n".join(session_lines(rows, colour=target.colour)) if rows else "", nl=bool(rows))
    else:
        click.echo("".join("\t".join(session_fields(row)) + "\n" for row in rows), nl=False)
    if not rows:
        target.note(
            "there are no sessions yet; start one with `clawdforge`"
            if everywhere
            else "there are no sessions in this project; list those of all projects with --all"
        )
