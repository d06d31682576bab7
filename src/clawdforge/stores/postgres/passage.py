"""Looks whether connections reach Postgres as they are meant: with their settings, and each for itself."""

import contextlib
from typing import Final

from clawdforge.stores.postgres.advice import ONE_EACH
from clawdforge.stores.postgres.link import Link
from clawdforge.wire.errors import StoreUnavailable

UNSAFE: Final = (
    "SELECT current_setting('synchronous_commit') = 'off'"
    " OR current_setting('idle_in_transaction_session_timeout') = '0'"
)
"""With the one, what was acknowledged could be lost; with the other, a frozen server would stop others."""
WHO: Final = "SELECT pg_backend_pid()"


def check_passage(url: str, link: Link) -> None:
    """Raises StoreUnavailable. What a pooler in between does to connections shows when there are two."""
    if link.fetch(UNSAFE) != [(False,)]:
        raise StoreUnavailable(
            "settings that the server makes for its connections do not reach Postgres; connect to Postgres"
            " itself, or have the pooler pass them on"
        )
    with contextlib.closing(Link(url)) as other:
        if other.fetch(WHO) == link.fetch(WHO):
            raise StoreUnavailable(f"two connections to the database are one; {ONE_EACH}")
