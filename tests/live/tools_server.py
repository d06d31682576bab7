"""A small MCP server of our own, written with the `mcp` package: it says what it was given."""

import os

from mcp.server.fastmcp import FastMCP

server = FastMCP("tools")


@server.tool()
def tell(word: str) -> str:
    """Say a word, and the secret that this server was started with."""
    return f"{word} {os.environ.get('TOOLS_KEY', 'no key')}"


if __name__ == "__main__":
    server.run()
