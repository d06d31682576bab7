"""The Agent Client Protocol over a WebSocket: the server as an agent of editors that are elsewhere."""
