"""The server as an MCP server, `/mcp`: sessions as tools, for agents and programs that speak MCP."""
