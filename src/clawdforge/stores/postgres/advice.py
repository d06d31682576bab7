"""What an operator does about an error of Postgres, in one sentence."""

import ssl
from typing import Final

import asyncpg

ONE_EACH: Final = (
    "a pooler in between gives out connections for a transaction only: connect to Postgres itself, or have"
    " the pooler give them out for a session"
)
ADVICE: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (
        asyncpg.ReadOnlySQLTransactionError,
        "it can only be read now: name the primary server, or set default_transaction_read_only to off",
    ),
    (
        asyncpg.InsufficientPrivilegeError,
        "give its user the rights that docs/guides/postgres.md lists; whoever owns the tables makes them",
    ),
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        "correct the user and the password in CLAWDFORGE_DATABASE_URL",
    ),
    (
        asyncpg.InvalidCatalogNameError,
        "make it with `createdb`, or correct the name in CLAWDFORGE_DATABASE_URL",
    ),
    (
        asyncpg.TooManyConnectionsError,
        "raise max_connections, of Postgres or of its user: a server takes seven",
    ),
    (asyncpg.DiskFullError, "make room on its disk"),
    (
        asyncpg.ProtocolViolationError,
        "a pooler seems to be in between: connect to Postgres itself",
    ),
    (asyncpg.DuplicatePreparedStatementError, ONE_EACH),
    (asyncpg.InvalidSQLStatementNameError, ONE_EACH),
    (
        ssl.SSLError,
        "name the certificate of who has signed its own with `sslrootcert=` in CLAWDFORGE_DATABASE_URL",
    ),
)
OTHERWISE: Final = "look whether it runs, and whether CLAWDFORGE_DATABASE_URL has its host and port"


def advise(error: BaseException) -> str:
    """Of an error, or of the one that it was made of."""
    for one in filter(None, (error, error.__cause__)):
        for kind, advice in ADVICE:
            if isinstance(one, kind):
                return advice
    return OTHERWISE
