"""Programs that people already use, brought to a durable session: each face is a client of the server."""
