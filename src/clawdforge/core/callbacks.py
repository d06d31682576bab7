"""Tokens with which agents call the server back: signed, bound to a session, never stored."""

import hashlib
import hmac
import secrets
from typing import Final
from urllib.parse import quote, unquote

PREFIX: Final = "cfs_"
BY_AGENT: Final = "by-agent"
"""The label of a session that an agent made with such a token."""


class CallbackTokens:
    """Made for each start of an agent. They end with the server, since the key does, and with the session."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._key = secrets.token_bytes(32)

    def make(self, app: str, session_id: str) -> str:
        head = f"{session_id}.{quote(app, safe='')}"
        return f"{PREFIX}{head}.{self._sign(head)}"

    def read(self, token: str) -> tuple[str, str] | None:
        """App and session of a token that we made; None for any other."""
        head, _, signature = token.removeprefix(PREFIX).rpartition(".")
        if not token.startswith(PREFIX) or not hmac.compare_digest(
            signature.encode("utf-8", "surrogatepass"), self._sign(head).encode()
        ):
            return None
        session_id, _, app = head.partition(".")
        return unquote(app), session_id

    def _sign(self, head: str) -> str:
        return hmac.new(self._key, head.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
