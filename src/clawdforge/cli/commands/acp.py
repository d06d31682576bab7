"""`clawdforge acp`: durable sessions for an editor that speaks ACP, over the standard streams."""

import asyncio
from pathlib import Path
from typing import Any, Final

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.target.completing import complete_agent, complete_persona
from clawdforge.cli.target.defaults import options_for_new_session
from clawdforge.cli.target.options import Target, target_options
from clawdforge.cli.target.reaching import Reach, make_reach
from clawdforge.client.errors import ForgeError
from clawdforge.faces.acp.face import AcpFace, Manner
from clawdforge.faces.link import Link
from clawdforge.faces.stdio import OwnStdio

MODES: Final = ("approve_all", "approve_reads", "ask", "deny_all")


@click.command()
@click.option(
    "-a", "--agent", shell_complete=complete_agent, help="Agent of new sessions.  [default: the server's]"
)
@click.option("--persona", shell_complete=complete_persona, help="Persona of new sessions.")
@click.option("-m", "--model", help="Model of new sessions.")
@click.option(
    "--permission-mode",
    type=click.Choice(MODES),
    help="What happens in new sessions when the agent asks.  [default: ask]",
)
@click.option(
    "--own-folders",
    is_flag=True,
    help="Let the server make a folder for each session, instead of the editor's folder.",
)
@target_options
@click.pass_obj
def acp(target: Target, /, *, own_folders: bool, **flags: Any) -> None:
    """Be an ACP agent on stdin and stdout, for editors that speak the Agent Client Protocol.

    Name this command in the editor's settings. Its sessions are those of the server: they outlive the editor,
    and can be continued in a terminal, on the page, or in another editor.
    """

    def defaults(folder: str) -> dict[str, Any]:
        try:
            return {"permission_mode": "ask", **options_for_new_session(Path(folder), flags)}
        except Failure as failure:
            raise ForgeError(failure.message) from None

    try:
        asyncio.run(_serve(make_reach(target), Manner(defaults, own_folders)))
    except ValueError as error:
        raise Failure(
            f"stdin and stdout must be pipes, as an editor makes them ({error})", Exit.USAGE
        ) from None


async def _serve(reach: Reach, manner: Manner) -> None:
    pipe = await OwnStdio.open()
    link = Link(reach)
    try:
        await AcpFace(pipe, link, manner).run()
    finally:
        await link.close()
        await pipe.close()
