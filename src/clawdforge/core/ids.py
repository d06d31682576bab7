"""New names that nobody can guess: ids of sessions, and secrets."""

import secrets
import uuid


def new_id() -> str:
    """A session's id: bare uuid4 text, so that short prefixes tell sessions apart."""
    return str(uuid.uuid4())


def new_token(prefix: str) -> str:
    """256 random bits behind a prefix that says what it opens."""
    return prefix + secrets.token_urlsafe(32)
