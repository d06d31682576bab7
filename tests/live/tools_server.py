"""A small MCP server of our own, written with the `mcp` package: it says what it was given.

It speaks on its standard streams, or over HTTP: with `--http FILE` it writes its address into the file.
"""

import os
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("tools")


@server.tool()
def tell(word: str, context: Context) -> str:
    """Say a word, and the secret that this server was started or called with."""
    request = context.request_context.request
    sent = None if request is None else request.headers.get("x-tools-key")
    return f"{word} {sent or os.environ.get('TOOLS_KEY', 'no key')}"


def serve_http(told: Path) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    written = told.with_suffix(".new")
    written.write_text(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
    written.rename(told)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run([listening])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        serve_http(Path(sys.argv[2]))
    else:
        server.run()
