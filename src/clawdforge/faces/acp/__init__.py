"""The server as an ACP agent: an editor that speaks the protocol opens durable sessions."""
