"""What is to be said about a database before it is trusted: for `clawdforge doctor`."""

import contextlib
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

import asyncpg
import orjson

from clawdforge.core.models.nodes import Telling
from clawdforge.stores.postgres.advice import advise
from clawdforge.stores.postgres.graph_role import (
    find_owner,
    find_problems,
    find_risks,
    name_database,
    name_role,
)
from clawdforge.stores.postgres.link import LOST, Link, describe
from clawdforge.stores.postgres.migrations import check_server
from clawdforge.stores.postgres.passage import check_passage
from clawdforge.stores.postgres.queries import SQL
from clawdforge.stores.sqlite.migrations import list_migrations
from clawdforge.wire.errors import StoreUnavailable

LACKING: Final = (
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    " AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')"
    " AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) ORDER BY relname"
)


class Remark(NamedTuple):
    level: Literal["ok", "warn", "bad"]
    text: str
    advice: str = ""


def examine_database(url: str) -> Iterator[Remark]:
    try:
        with contextlib.closing(Link(url)) as link:
            yield from _examine(url, link)
            yield from _find_own_settings(url)
    except (*LOST, asyncpg.PostgresError) as error:
        yield Remark(
            "bad",
            f"it cannot be used: {describe(error)}",
            advise(error),
        )


def examine_graphs(main: str, given: str) -> Iterator[Remark]:
    """Of the database of graphs: whether the role that they are given reaches nothing else."""
    fine = True
    try:
        with contextlib.closing(Link(find_owner(main, given))) as link:
            for problem in find_problems(link, given, name_database(main)):
                fine = False
                yield Remark("bad", *problem)
            for risk in find_risks(link, given) if fine else ():
                yield Remark("warn", *risk)
        if fine:
            Link(given).close()
            yield Remark("ok", f"graphs are let into {name_database(given)} as {name_role(given)}")
    except (*LOST, asyncpg.PostgresError) as error:
        yield Remark(
            "bad",
            f"it cannot be used: {describe(error)}",
            "make it as docs/guides/graphs.md says, or correct CLAWDFORGE_GRAPHS_DATABASE_URL",
        )


def _examine(url: str, link: Link) -> Iterator[Remark]:
    try:
        check_passage(url, link)
        check_server(link)
    except StoreUnavailable as error:
        yield Remark("bad", error.message, "name another database in CLAWDFORGE_DATABASE_URL")
        return
    yield _find_schema(link)
    yield from _find_lacks(link)
    yield from _find_risks(link)
    yield from _find_differences(link)


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


def _find_lacks(link: Link) -> Iterator[Remark]:
    """What keeps a server from writing."""
    ((is_standby, is_read_only),) = link.fetch(
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'"
    )
    if is_standby:
        yield Remark("bad", "it is a standby, which cannot be written", "name the primary server")
    elif is_read_only:
        advice = "set default_transaction_read_only to off, for the database and for its user"
        yield Remark("bad", "it can only be read", advice)
    lacking = [name for (name,) in link.fetch(LACKING)]
    if lacking:
        some = ", ".join(lacking[:3]) + (" …" if len(lacking) > 3 else "")
        advice = "grant SELECT, INSERT, UPDATE and DELETE on all tables to its user"
        yield Remark("bad", f"its user may not read and write {some}", advice)


def _find_own_settings(url: str) -> Iterator[Remark]:
    """What a connection is like for which the server sets nothing."""
    with contextlib.closing(Link(url, settings={})) as link:
        ((value,),) = link.fetch("SHOW synchronous_commit")
    if value == "off":
        yield Remark(
            "warn",
            "synchronous_commit is off for all, or for this database or user; servers turn it on themselves",
            "turn it on: what others write there may be lost with the power",
        )


def _find_risks(link: Link) -> Iterator[Remark]:
    """What makes an acknowledged turn less safe than it is said to be."""
    for name in ("fsync", "full_page_writes"):
        ((value,),) = link.fetch(f"SHOW {name}")
        if value == "off":
            advice = f"set {name} to on in postgresql.conf, and run `SELECT pg_reload_conf()`"
            yield Remark("bad", f"{name} is off: a loss of power loses what was acknowledged", advice)
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


def _find_differences(link: Link) -> Iterator[Remark]:
    """Settings that servers which share the database should share as well, as they tell of them."""
    columns = "SELECT count(*) FROM information_schema.columns WHERE table_name = 'members'"
    if link.fetch(f"{columns} AND column_name = 'tells' AND table_schema = current_schema()") == [(0,)]:
        return
    rows = link.fetch("SELECT name, tells FROM members WHERE state <> 'dead' ORDER BY started_at, node")
    first, *others = [(str(name), Telling.read(orjson.loads(tells))) for name, tells in rows] or [
        ("", Telling())
    ]
    for name, telling in others:
        names = telling.differs_in(first[1])
        if names:
            yield Remark(
                "warn",
                f"the servers {first[0]} and {name} have different settings: {', '.join(names)}",
                "give all servers of a database the same, and start them again",
            )
