"""Makes the tables of graphs, and makes sure that the role which graphs are given reaches nothing else."""

import contextlib
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from clawdforge.stores.postgres.link import ALL_ERRORS, Link, describe
from clawdforge.stores.postgres.migrations import check_server
from clawdforge.stores.postgres.queries import SQL
from clawdforge.wire.errors import StoreUnavailable

SETTING: Final = "CLAWDFORGE_GRAPHS_DATABASE_URL"
LOCK: Final = "SELECT pg_advisory_xact_lock(4710423072)"
TABLES: Final = (SQL / "graphs.sql").read_text("utf-8")
GRANTS: Final = (
    "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
    "REVOKE ALL ON SCHEMA public FROM PUBLIC",
    "REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, {role}",
    "GRANT CONNECT ON DATABASE {database} TO {role}",
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT ON checkpoint_migrations TO {role}",
    "GRANT SELECT, INSERT ON checkpoints, checkpoint_blobs, checkpoint_writes TO {role}",
    # Of single columns: who may update or delete in a whole table may also lock it for everybody.
    "GRANT UPDATE (checkpoint, metadata) ON checkpoints TO {role}",
    "GRANT UPDATE (channel, type, blob) ON checkpoint_writes TO {role}",
)
POWERS: Final = """
SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls,
    EXISTS (SELECT 1 FROM pg_auth_members WHERE member = pg_roles.oid),
    rolname = current_user
        OR EXISTS (SELECT 1 FROM pg_shdepend WHERE refobjid = pg_roles.oid AND deptype = 'o'),
    EXISTS (SELECT 1 FROM pg_database WHERE datname = $2 AND has_database_privilege(rolname, oid, 'CONNECT'))
FROM pg_roles WHERE rolname = $1
"""
OTHERS: Final = """
SELECT string_agg(relname, ', ') FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND relkind IN ('r', 'p', 'v', 'm', 'f')
    AND NOT (nspname = 'public' AND relname IN
        ('checkpoint_migrations', 'checkpoints', 'checkpoint_blobs', 'checkpoint_writes'))
    AND has_any_column_privilege($1, pg_class.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
"""
ELSEWHERE: Final = """
SELECT string_agg(datname, ', ' ORDER BY datname) FROM pg_database
WHERE datallowconn AND datname <> current_database() AND has_database_privilege($1, oid, 'CONNECT')
"""


class UnfitRole(StoreUnavailable):
    """The role reaches more than LangGraph's tables; the message says what to run."""


class Problem(NamedTuple):
    text: str
    advice: str


def make_tables(link: Link, *, given: str, main: str) -> None:
    """For its owner, in a transaction. `main` is the server's own database, which the role must not enter."""
    check_server(link)
    link.fetch(LOCK)
    for problem in find_problems(link, given, main):
        raise UnfitRole("; ".join(problem))
    link.run(TABLES)
    ((database,),) = link.fetch("SELECT current_database()")
    for grant in GRANTS:
        link.run(grant.format(role=quote(name_role(given)), database=quote(database)))


def find_problems(link: Link, given: str, main: str) -> Iterator[Problem]:
    """What makes the role one that no hostile program may have."""
    role = name_role(given)
    ((database, owner),) = link.fetch("SELECT current_database(), current_user")
    named = f"the role {role} of {SETTING}"
    found = link.fetch(POWERS, (role, main))
    if not found:
        yield Problem(f"there is no role {role}, which {SETTING} names", f"run `{write_role(role)}`")
        return
    ((has_powers, is_member, is_owner, enters_main),) = found
    another = f"name another one: run `{write_role('forge_graph')}`"
    if is_owner:
        yield Problem(f"{named} owns something, or is the server's own user {owner}", another)
    if has_powers or is_member:
        yield Problem(f"{named} has powers of its own, or those of another role", another)
    if enters_main:
        yield Problem(
            f"{named} may connect to {main}, the server's own database, as by default everybody may",
            f"run `REVOKE CONNECT ON DATABASE {quote(main)} FROM PUBLIC;`",
        )
    ((others,),) = link.fetch(OTHERS, (role,))
    if others:
        yield Problem(
            f"{named} may use other tables of {database} than LangGraph's: {others}",
            f"name a database of its own: run `CREATE DATABASE forge_graphs OWNER {quote(owner)};`",
        )


def find_risks(link: Link, given: str) -> Iterator[Problem]:
    """What hostile graphs could disturb; they read nothing by it."""
    role = name_role(given)
    ((others,),) = link.fetch(ELSEWHERE, (role,))
    if others:
        yield Problem(
            f"graphs may also connect to {others}",
            "run `REVOKE CONNECT ON DATABASE … FROM PUBLIC` for each, unless others need it",
        )
    ((ends,),) = link.fetch(
        "SELECT has_function_privilege($1, 'pg_terminate_backend(int, bigint)', 'EXECUTE')", (role,)
    )
    if ends:
        yield Problem(
            "a graph can end the connections of other graphs",
            "run `REVOKE EXECUTE ON FUNCTION pg_terminate_backend, pg_cancel_backend FROM PUBLIC` there",
        )


def check_entry(given: str, secret: str, expected: str) -> None:
    """Come in as graphs do, with a pass: the address must lead to the same database, with that very role."""
    try:
        with contextlib.closing(Link(given)) as link:
            link.fetch("SELECT set_config('clawdforge.pass', $1, false)", (secret,))
            found = link.fetch("SELECT current_user = $1, own_threads()", (name_role(given),))
    except ALL_ERRORS as error:
        raise StoreUnavailable(
            f"graphs cannot use the database that {SETTING} names: {describe(error)}; correct its host, role"
            " and password"
        ) from error
    if found != [(True, expected)]:
        raise StoreUnavailable(
            f"{SETTING} leads to another database than the one of that name beside the server's own; name one"
            " on the same Postgres as CLAWDFORGE_DATABASE_URL"
        )


def find_owner(main: str, given: str) -> str:
    """The server's own way to the database of graphs: on the same Postgres as its own, as the same user."""
    return urlsplit(main)._replace(path=urlsplit(given).path).geturl()


def name_database(url: str) -> str:
    return unquote(urlsplit(url).path.strip("/"))


def name_role(url: str) -> str:
    return unquote(urlsplit(url).username or "")


def write_role(role: str) -> str:
    return f"CREATE ROLE {quote(role)} LOGIN PASSWORD '…';"


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
