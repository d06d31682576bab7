"""JSON-RPC over lines, as agents and their clients speak it: framing, and a connection with two ends."""
