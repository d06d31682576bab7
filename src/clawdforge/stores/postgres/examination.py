"""What is to be said about a database before it is trusted: for `clawdforge doctor`."""

import contextlib
from collections.abc import Iterator
from typing import Literal, NamedTuple

import asyncpg

from clawdforge.stores.postgres.link import LOST, Link, describe
from clawdforge.stores.postgres.migrations import check_server
from clawdforge.stores.postgres.queries import SQL
from clawdforge.stores.sqlite.migrations import list_migrations
from clawdforge.wire.errors import StoreUnavailable


class Remark(NamedTuple):
    level: Literal["ok", "warn", "bad"]
    text: str
    advice: str = ""


def examine_database(url: str) -> Iterator[Remark]:
    try:
        with contextlib.closing(Link(url)) as link:
            yield from _examine(link)
    except (*LOST, asyncpg.PostgresError) as error:
        yield Remark(
            "bad",
            f"it cannot be used: {describe(error)}",
            "look whether it runs; correct CLAWDFORGE_DATABASE_URL, or the rights of its user",
        )


def _examine(link: Link) -> Iterator[Remark]:
    try:
        check_server(link)
    except StoreUnavailable as error:
        yield Remark("bad", error.message, "name another database in CLAWDFORGE_DATABASE_URL")
        return
    yield _find_schema(link)
    yield from _find_risks(link)


def _find_schema(link: Link) -> Remark:
    known = len(list_migrations(SQL / "migrations"))
    where = f"Postgres {link.server_version[0]}"
    if link.fetch("SELECT to_regclass('schema_migrations') IS NULL") == [(True,)]:
        return Remark("warn", f"{where}, without tables yet", "`clawdforge serve` makes them")
    ((found,),) = link.fetch("SELECT coalesce(max(version), 0) FROM schema_migrations")
    if found > known:
        return Remark("bad", f"schema {found} is newer than this program's {known}", "install the newer one")
    ((size,),) = link.fetch("SELECT pg_size_pretty(pg_database_size(current_database()))")
    return Remark("ok", f"{where}, schema {found}, {size}")


def _find_risks(link: Link) -> Iterator[Remark]:
    """What makes an acknowledged turn less safe than it is said to be."""
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        ((value,),) = link.fetch(f"SHOW {name}")
        if value == "off":
            advice = f"set {name} to on in postgresql.conf, and run `SELECT pg_reload_conf()`"
            yield Remark("bad", f"{name} is off: a loss of power loses what was acknowledged", advice)
    ((is_standby,),) = link.fetch("SELECT pg_is_in_recovery()")
    if is_standby:
        yield Remark("bad", "it is a standby, which cannot be written", "name the primary server")
    ((late, hidden),) = link.fetch(
        "SELECT count(*) FILTER (WHERE sync_state = 'async'), count(*) FILTER (WHERE sync_state IS NULL)"
        " FROM pg_stat_replication"
    )
    if hidden:
        yield Remark(
            "warn",
            "this user cannot see whether its standbys are asynchronous",
            "run `GRANT pg_read_all_stats TO` that user",
        )
    if late:
        yield Remark(
            "warn",
            f"{late} of its standbys are asynchronous: after a failover the last turns may be missing",
            "name them in synchronous_standby_names",
        )
