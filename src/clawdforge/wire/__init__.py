"""The shapes that client and server share: pure types and functions, no I/O, nothing of ours below."""
