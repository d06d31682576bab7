"""`clawdforge mcp`: the server's MCP server over the standard streams, for programs that start theirs."""
