"""`clawdforge pause` and `resume`: the operator's switch that keeps turns from starting."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from clawdforge.cli.tables import align
from clawdforge.cli.target.completing import complete_agent
from clawdforge.cli.target.connect import connect_as_operator
from clawdforge.cli.target.options import Target, target_options
from clawdforge.client.models import Pause

Command = TypeVar("Command", bound=Callable[..., Any])


def whose_options(command: Command) -> Command:
    """Whose turns are meant; without a name, everybody's."""
    command = click.option("--agent", shell_complete=complete_agent, metavar="NAME", help="Only this agent.")(
        command
    )
    return click.option("--app", "app_name", metavar="NAME", help="Only this app.")(command)


@click.command()
@whose_options
@click.option("--stop", is_flag=True, help="Also cancel the turns that run there.")
@click.option("--reason", metavar="TEXT", help="The reason that refused callers get.")
@click.option("--list", "lists", is_flag=True, help="Pause nothing; show what is paused.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def pause(
    target: Target,
    /,
    *,
    app_name: str | None,
    agent: str | None,
    stop: bool,
    reason: str | None,
    lists: bool,
    as_json: bool,
) -> None:
    """Let no turn start until `resume`: on the whole server, of an app, or of an agent. For operators.

    When this returns, nothing starts there any more, also after a restart of the server. Prompts are
    refused. What is queued stays queued, and what runs goes on unless --stop is given.
    """
    with connect_as_operator(target) as forge:
        if lists:
            _print_pauses(target, forge.admin.pauses(), as_json=as_json)
            return
        done = forge.admin.pause(app_name=app_name, agent=agent, reason=reason, stop=stop)
    if as_json:
        click.echo(done.model_dump_json(indent=2))
        return
    stopped = f"; {done.stopped} stopped" if stop else ""
    target.note(f"paused: {describe(done.pause)}{stopped}. `clawdforge resume` goes on")


@click.command()
@whose_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def resume(target: Target, /, *, app_name: str | None, agent: str | None, as_json: bool) -> None:
    """End a pause, and start what waits there. For operators.

    Name the app or the agent as for `pause`; without a name, it ends the pause of the whole server.
    """
    with connect_as_operator(target) as forge:
        done = forge.admin.resume(app_name=app_name, agent=agent)
    if as_json:
        click.echo(done.model_dump_json(indent=2))
        return
    target.note("resumed" if done.resumed else "that was not paused")
    for left in done.pauses:
        target.note(f"still paused: {describe(left)}")


def describe(pause: Pause) -> str:
    names = [f"{kind} {name}" for kind, name in (("app", pause.app_name), ("agent", pause.agent)) if name]
    why = f" ({pause.reason})" if pause.reason else ""
    return f"{', '.join(names) or 'everything'}{why}"


def _print_pauses(target: Target, pauses: list[Pause], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([one.model_dump() for one in pauses], indent=2))
        return
    rows = [(one.app_name or "(all)", one.agent or "(all)", one.reason or "-") for one in pauses]
    if rows:
        click.echo("\n".join(align(rows, colour=target.colour, head=("app", "agent", "reason"))))
