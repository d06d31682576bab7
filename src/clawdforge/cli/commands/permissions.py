"""`approve` and `deny`: answers to what an agent asks, from another terminal."""

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.output.lines import clean
from clawdforge.cli.target.connect import connect
from clawdforge.cli.target.find_session import find, id_argument
from clawdforge.cli.target.options import Target, target_options
from clawdforge.wire.turn import Decision


@click.command()
@id_argument
@click.argument("request", required=False)
@click.option("--always", is_flag=True, help="Allow the same thing for the rest of the session.")
@target_options
@click.pass_obj
def approve(target: Target, /, session: str, request: str | None, *, always: bool) -> None:
    """Allow what the agent asks for: REQUEST, or the only one that is waiting."""
    _decide(target, session, request, Decision.ALLOW_ALWAYS if always else Decision.ALLOW_ONCE)


@click.command()
@id_argument
@click.argument("request", required=False)
@target_options
@click.pass_obj
def deny(target: Target, /, session: str, request: str | None) -> None:
    """Refuse what the agent asks for: REQUEST, or the only one that is waiting."""
    _decide(target, session, request, Decision.REJECT)


def _decide(target: Target, session: str, request: str | None, decision: Decision) -> None:
    row = find(target.reach(), session)
    with connect(target) as forge:
        handle = forge.handle(row)
        waiting = handle.permissions()
        found = [one for one in waiting if request is None or one.permission_id.startswith(request)]
        if not found:
            what = f"no request {request!r} is waiting" if request else "nothing is waiting for an answer"
            raise Failure(f"{what} in session {row['session_id']}", Exit.NOT_FOUND)
        if len(found) > 1:
            listed = "\n".join(f"  {one.permission_id[:8]}  {clean(one.tool)}" for one in found)
            raise Failure(f"several requests are waiting; name one of them:\n{listed}", Exit.NOT_FOUND)
        decided = handle.decide(found[0].permission_id, decision)
    target.note(f"{clean(decided.tool)}: {decided.decision}")
