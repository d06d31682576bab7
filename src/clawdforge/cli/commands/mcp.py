"""`clawdforge mcp`: sessions as tools of an MCP server, over the standard streams."""

import asyncio

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.target.options import Target, target_options
from clawdforge.cli.target.reaching import Reach, make_reach
from clawdforge.faces.link import Link
from clawdforge.faces.mcp.bridge import McpBridge
from clawdforge.faces.stdio import OwnStdio


@click.command()
@target_options
@click.pass_obj
def mcp(target: Target, /) -> None:
    """Be an MCP server on stdin and stdout, whose tools begin and lead sessions.

    Name this command in the settings of a program that speaks the Model Context Protocol. The server must
    serve it: CLAWDFORGE_FACES=mcp.
    """
    try:
        asyncio.run(_serve(make_reach(target)))
    except ValueError as error:
        raise Failure(
            f"stdin and stdout must be pipes, as an MCP client makes them ({error})", Exit.USAGE
        ) from None


async def _serve(reach: Reach) -> None:
    pipe = await OwnStdio.open()
    link = Link(reach)
    try:
        await McpBridge(pipe, link).run()
    finally:
        await link.close()
        await pipe.close()
