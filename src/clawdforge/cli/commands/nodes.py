"""`clawdforge nodes` and `drain`: the servers that share one database, and how one leaves its work."""

import json
import time
from typing import Final

import click

from clawdforge.cli.failures import Failure
from clawdforge.cli.tables import align
from clawdforge.cli.target.connect import connect_as_operator
from clawdforge.cli.target.options import Target, target_options
from clawdforge.client import Forge
from clawdforge.client.models import Node

LOOK_SECS: Final = 0.5


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def nodes(target: Target, /, *, as_json: bool) -> None:
    """Show the servers that share one database: which of them live, and what they run. For operators."""
    with connect_as_operator(target) as forge:
        found = forge.admin.nodes()
    if as_json:
        click.echo(json.dumps([one.model_dump(mode="json") for one in found], indent=2))
        return
    rows = [
        (
            one.name + (" (this)" if one.is_this else ""),
            ("drained" if one.is_drained else one.state.value) + (", on duty" if one.is_on_duty else ""),
            str(one.sessions),
            str(one.turns),
            str(one.agents),
            one.version,
            one.node,
        )
        for one in found
    ]
    head = ("server", "state", "sessions", "turns", "agents", "version", "id")
    click.echo("\n".join(align(rows, colour=target.colour, head=head)))
    for one in found:
        if one.differs:
            target.note(
                f"{one.name} has other settings than the server that answers: {', '.join(one.differs)};"
                " give all of them the same"
            )


@click.command()
@click.argument("name", metavar="SERVER", required=False)
@click.option("--wait", "waits", is_flag=True, help="Wait until nothing is left there.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    metavar="SECS",
    help="How long --wait waits.",
)
@click.option("--undo", is_flag=True, help="Let it begin turns again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@target_options
@click.pass_obj
def drain(
    target: Target, /, name: str | None, *, waits: bool, timeout: float, undo: bool, as_json: bool
) -> None:
    """Have a server leave its work to the others that share its database. For operators.

    SERVER is a name or the beginning of an id, as `clawdforge nodes` shows them; without it, the server
    that is asked. It begins no turns: what is queued or comes in is run by others. Turns that run there are
    finished, and each session is left to the others when its turn ends. Requests are answered all the while,
    and `GET /readyz` says 503, so that a proxy sends no more of them. A server that is started again begins
    turns.
    """
    if undo and waits:
        raise click.UsageError("--undo has nothing to wait for; leave out --wait.")
    with connect_as_operator(target) as forge:
        node = _find(forge.admin.nodes(), name).node
        found = forge.admin.undrain(node) if undo else forge.admin.drain(node)
        if waits:
            found = _wait(target, forge, found, timeout)
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    elif undo:
        target.note(f"{found.name} begins turns again")
    else:
        target.note(_describe(found))


def _find(nodes: list[Node], name: str | None) -> Node:
    """The one that is meant; Failure where that is none, or more than one."""
    living = [one for one in nodes if one.state.value != "dead"]
    if name is None:
        found = [one for one in living if one.is_this]
    else:
        found = [one for one in living if one.name == name or one.node.startswith(name)]
    if len(found) != 1:
        many = "several servers are" if found else "no server that lives is"
        raise Failure(f"{many} called {name!r}; `clawdforge nodes` shows their names and ids")
    return found[0]


def _wait(target: Target, forge: Forge, node: Node, timeout: float) -> Node:
    """Say what is left whenever that has changed."""
    deadline, told = time.monotonic() + timeout, ""
    while not node.is_drained:
        if _describe(node) != told:
            told = _describe(node)
            target.note(told)
        if time.monotonic() > deadline:
            raise Failure(
                f"after {timeout:g} s, {told}; that goes on, and `clawdforge nodes` shows when it is done"
            )
        time.sleep(LOOK_SECS)
        found = [one for one in forge.admin.nodes() if one.node == node.node]
        if not found:
            raise Failure(f"{node.name} has ended before it was drained; what it ran is taken over by others")
        node = found[0]
    return node


def _describe(node: Node) -> str:
    if node.is_drained:
        return f"{node.name} is drained: nothing is left there, and it can be stopped"
    sessions = "1 session" if node.sessions == 1 else f"{node.sessions} sessions"
    turns = "1 turn runs" if node.turns == 1 else f"{node.turns} turns run"
    runs = f"; {node.runs} one-shot runs are to end" if node.runs else ""
    return f"{node.name} is draining: it holds {sessions}, and {turns} in them{runs}"
