"""How much an agent may say, and how long it may take."""

from dataclasses import dataclass

from clawdforge.jsonrpc.ndjson import MAX_LINE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpLimits:
    """How many bytes an agent may send, and how long it may take to answer."""

    max_line_bytes: int = MAX_LINE_BYTES
    max_turn_bytes: int = 256 * 1024 * 1024
    start_timeout: float = 30.0  # for each answer until the session is open
    reply_timeout: float = 10.0  # for small requests beside a prompt
    orphaned_secs: float = 10.0  # for an adapter that has lost the program behind it, to say so
