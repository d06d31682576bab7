"""The database of graphs: each process reaches the threads of its own claim, and the role nothing else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import asyncpg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import errors

from clawdforge.core.ports import LeaseLost
from clawdforge.core.ports.threads import BegunThread
from clawdforge.graphs.database import open_saver
from clawdforge.stores.postgres.examination import examine_graphs
from clawdforge.stores.postgres.graph_threads import ENV_DATABASE, ENV_PASS, ENV_THREADS, PgGraphThreads
from clawdforge.stores.postgres.link import Link
from clawdforge.wire.errors import StoreUnavailable
from tests.graph_database import PASSWORD, ROLE, GraphDatabase, free_port, in_thread
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = [needs("postgres"), needs("langgraph"), needs("langgraph-postgres")]
MARKS, BYTES = 3, 1 << 20


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with run_postgres(port=free_port()) as server:
        yield server


@pytest.fixture
def database(postgres: Postgres) -> GraphDatabase:
    return GraphDatabase(postgres)


@pytest.fixture
def empty(postgres: Postgres) -> str:
    return postgres.make_empty()


@pytest.fixture
async def threads(database: GraphDatabase) -> AsyncIterator[PgGraphThreads]:
    found = await PgGraphThreads.open(database.main, database.given, MARKS, BYTES)
    yield found
    await found.close()


def saver(begun: BegunThread) -> contextlib.AbstractAsyncContextManager[AsyncPostgresSaver]:
    return open_saver(begun.env[ENV_DATABASE], begun.env[ENV_PASS])


def config(thread: str | None, **more: str) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


async def put(begun: BegunThread, thread: str | None, word: str, number: str | None = None) -> str:
    """A checkpoint after the latest one of a thread, with a value in the row and another beside it."""
    async with saver(begun) as found:
        last = await found.aget_tuple(config(thread))
        at = config(thread) if last is None else last.config
        made = empty_checkpoint()
        made["id"] = number or made["id"]
        made["channel_values"] = {"word": word, "words": [word]}
        versions: Any = {"word": made["id"], "words": made["id"]}
        made["channel_versions"] = versions
        kept = await found.aput(at, made, {"parents": {}}, versions)
        await found.aput_writes(kept, [("words", [word])], "task")
        return str(made["id"])


async def get(begun: BegunThread, thread: str | None) -> Any:
    async with saver(begun) as found:
        last = await found.aget_tuple(config(thread))
        if last is None:
            return None
        assert last.pending_writes is not None
        values = last.checkpoint["channel_values"]
        assert values["words"] == [values["word"]] == last.pending_writes[0][2]
        return values["word"]


def fetch(link: Link, sql: str) -> list[tuple[Any, ...]]:
    return link.fetch(sql)


def first(begun: BegunThread) -> str:
    return f"{begun.env[ENV_THREADS]}1"


@pytest.mark.usefixtures("threads")
async def test_the_tables_are_those_that_langgraph_makes(database: GraphDatabase, empty: str) -> None:
    columns = """SELECT table_name, column_name, data_type, is_nullable, column_default
        FROM information_schema.columns WHERE table_name LIKE 'checkpoint%' ORDER BY 1, 2"""
    keys = """SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE contype = 'p' AND conrelid::regclass::text LIKE 'checkpoint%' ORDER BY 1"""
    async with AsyncPostgresSaver.from_conn_string(empty) as theirs:
        await theirs.setup()
    for sql in (columns, keys, "SELECT v FROM checkpoint_migrations ORDER BY v"):
        assert database.fetch(sql) == in_thread(empty, partial(fetch, sql=sql))


async def test_a_graph_remembers_across_claims(threads: PgGraphThreads) -> None:
    one = await threads.begin("s", 1, None)
    assert one.load is None
    await put(one, first(one), "red")
    await put(one, first(one), "blue")
    two = await threads.begin("s", 7, first(one))
    assert two.load == "s:7:1"
    assert await get(two, two.load) == "blue"
    again = await threads.begin("s", 7, two.load)
    assert again.load == two.load
    assert await get(again, again.load) == "blue"


async def test_the_latest_is_the_latest_also_where_the_clock_is_behind(threads: PgGraphThreads) -> None:
    one = await threads.begin("s", 1, None)
    await put(one, first(one), "red", "fffffffe-0000-6000-8000-000000000001")
    await put(one, first(one), "blue", "fffffffe-0000-6000-8000-000000000002")
    two = await threads.begin("s", 2, first(one))
    await put(two, two.load, "green")
    assert await get(two, two.load) == "green"


async def test_a_late_checkpoint_is_not_seen(threads: PgGraphThreads, database: GraphDatabase) -> None:
    stale = await threads.begin("s", 1, None)
    await put(stale, first(stale), "red")
    async with saver(stale) as open_before:
        two = await threads.begin("s", 2, first(stale))
        made = empty_checkpoint()
        with pytest.raises(errors.InsufficientPrivilege):
            await open_before.aput(config(first(stale)), made, {}, {})
        with pytest.raises(errors.InsufficientPrivilege):
            await open_before.aput(config(two.load), made, {}, {})
    # Had it come an instant sooner, it would stand in a thread that nobody reads.
    late = "SELECT 's:1:1', '', 'ff', NULL, NULL, checkpoint FROM checkpoints LIMIT 1"
    database.run(f"INSERT INTO checkpoints {late}")
    assert await get(two, two.load) == "red"
    with pytest.raises(LeaseLost):
        await threads.begin("s", 1, first(stale))
    assert await get(two, two.load) == "red"
    certain = await threads.begin("s", 1, two.load, is_certain=True)
    assert await get(certain, certain.load) == "red"


async def test_marks_lead_back_to_the_ends_of_turns(threads: PgGraphThreads) -> None:
    one = await threads.begin("s", 1, None)
    for turn, word in enumerate(("red", "blue", "green"), 1):
        await put(one, first(one), word)
        await threads.mark("s", turn, first(one))
    back = await threads.begin("s", 2, await threads.find("s", 2))
    assert await get(back, back.load) == "blue"
    fork = await threads.branch("s", "f", 1)
    assert fork == "f:0:1"
    forked = await threads.begin("f", 1, fork)
    assert await get(forked, forked.load) == "red"
    forward = await threads.begin("s", 3, await threads.find("s", 3))
    assert await get(forward, forward.load) == "green"
    assert await threads.find("s", 9) is None
    assert await threads.branch("s", "g", 9) is None


async def test_what_no_mark_leads_to_is_dropped_and_marks_are_limited(
    threads: PgGraphThreads, database: GraphDatabase
) -> None:
    load = None
    for claim in range(1, 9):
        begun = await threads.begin("s", claim, load)
        load = begun.load or first(begun)
        await put(begun, load, f"word {claim}")
        if claim != 7:
            await threads.mark("s", claim, load)
    assert database.fetch("SELECT turn_index FROM marks ORDER BY 1") == [(5,), (6,), (8,)]
    await threads.begin("s", 9, load)
    assert database.list_threads() == ["s:5:1", "s:6:1", "s:8:1", "s:9:1"]


async def test_threads_go_with_their_session(
    threads: PgGraphThreads, database: GraphDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawdforge.stores.postgres.graph_threads.ROWS_AT_ONCE", 2)
    for session in ("s", "other"):
        begun = await threads.begin(session, 1, None)
        for word in ("a", "b", "c"):
            await put(begun, first(begun), word)
        await threads.mark(session, 1, first(begun))
    await threads.remove("s")
    for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "marks"):
        found = database.fetch(f"SELECT DISTINCT split_part(thread_id, ':', 1) FROM {table}")  # noqa: S608
        assert found == [("other",)], table
    assert database.fetch("SELECT session_id FROM passes") == [("other",)]


async def test_a_thread_that_is_too_large_or_no_langgraphs_is_not_copied(
    threads: PgGraphThreads, database: GraphDatabase
) -> None:
    one = await threads.begin("s", 1, None)
    await put(one, first(one), "red")
    database.run("UPDATE checkpoints SET checkpoint = '[1]'")
    assert (await threads.begin("s", 2, first(one))).load is None
    large = await threads.begin("t", 1, None)
    await put(large, first(large), "red")
    database.run("ALTER TABLE checkpoint_blobs ALTER blob SET STORAGE EXTERNAL")  # not compressed
    database.run(f"UPDATE checkpoint_blobs SET blob = convert_to(repeat('x', {BYTES}), 'UTF8')")  # noqa: S608
    assert (await threads.begin("t", 2, first(large))).load is None


async def test_nobody_is_given_the_memory_that_another_session_has(threads: PgGraphThreads) -> None:
    """What an agent says its own session is called could be anybody's thread."""
    victim = await threads.begin("victim", 1, None)
    await put(victim, first(victim), "secret")
    await threads.mark("victim", 1, first(victim))
    assert (await threads.begin("s", 1, first(victim))).load is None
    await threads.mark("s", 1, first(victim))
    assert await threads.find("s", 1) is None
    assert await get(victim, first(victim)) == "secret"


HOSTILE = (
    "SELECT * FROM passes",
    "SELECT * FROM marks",
    "INSERT INTO passes VALUES ('victim', 99, sha256('mine'))",
    "UPDATE checkpoints SET thread_id = 'victim:1:1'",
    "INSERT INTO checkpoints (thread_id, checkpoint_id, checkpoint) VALUES ('victim:1:1', 'ff', '{}')",
    "INSERT INTO checkpoint_writes VALUES ('victim:1:1', '', 'ff', 't', 0, 'c', NULL, '')",
    "DELETE FROM checkpoints",
    "TRUNCATE checkpoints",
    "LOCK TABLE checkpoints IN ACCESS EXCLUSIVE MODE",
    "LOCK TABLE checkpoint_writes IN SHARE MODE",
    "ALTER TABLE checkpoints DISABLE ROW LEVEL SECURITY",
    "DROP POLICY own_threads ON checkpoints",
    "CREATE OR REPLACE FUNCTION own_threads() RETURNS TEXT LANGUAGE sql AS $$ SELECT 'victim:1:' $$",
    "CREATE TABLE mine (x int)",
    "CREATE TEMP TABLE passes (session_id text, claim bigint, secret_hash bytea)",
    "CREATE SCHEMA mine",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "COPY checkpoints TO PROGRAM 'cat'",
    "SELECT pg_read_file('postgresql.conf')",
)


@pytest.mark.parametrize("sql", HOSTILE)
async def test_a_hostile_graph_is_refused(threads: PgGraphThreads, sql: str) -> None:
    victim, mine = await threads.begin("victim", 1, None), await threads.begin("mine", 1, None)
    await put(victim, first(victim), "secret")
    await put(mine, first(mine), "mine")
    connection = await asyncpg.connect(mine.env[ENV_DATABASE])
    try:
        await connection.execute("SELECT set_config('clawdforge.pass', $1, false)", mine.env[ENV_PASS])
        with pytest.raises(asyncpg.PostgresError, match=r"denied|must be owner|row-level"):
            await connection.execute(f"BEGIN; {sql}")
    finally:
        await connection.close()
    assert await get(victim, first(victim)) == "secret"


async def test_the_role_alone_sees_nothing(threads: PgGraphThreads, database: GraphDatabase) -> None:
    victim, mine = await threads.begin("victim", 1, None), await threads.begin("mine", 1, None)
    await put(victim, first(victim), "secret")
    connection = await asyncpg.connect(database.given)
    try:
        for secret in (None, "", "victim", "cfg_", mine.env[ENV_PASS]):
            await connection.execute("SELECT set_config('clawdforge.pass', $1, false)", secret)
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                assert await connection.fetch(f"TABLE {table}") == [], (secret, table)
    finally:
        await connection.close()
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied for database"):
        await asyncpg.connect(database.given.replace(database.name, database.main_name))


async def refuse(database: GraphDatabase, **changes: str) -> str:
    given = changes.get("given", database.given)
    with pytest.raises(StoreUnavailable) as refused:
        await PgGraphThreads.open(changes.get("main", database.main), given, MARKS, BYTES)
    assert "\n" not in refused.value.message
    assert PASSWORD not in refused.value.message
    return refused.value.message


async def test_a_role_that_reaches_more_is_refused(database: GraphDatabase) -> None:
    database.run(f"GRANT CONNECT ON DATABASE {database.main_name} TO PUBLIC")
    assert f'run `REVOKE CONNECT ON DATABASE "{database.main_name}" FROM PUBLIC;`' in await refuse(database)
    database.run(f"REVOKE CONNECT ON DATABASE {database.main_name} FROM PUBLIC")
    database.run("CREATE TABLE diary (day int)")
    database.run("GRANT SELECT (day) ON diary TO PUBLIC")
    assert "other tables" in await refuse(database)
    database.run("DROP TABLE diary")
    for power in ("SUPERUSER", "CREATEROLE", "CREATEDB", "REPLICATION", "BYPASSRLS"):
        database.run(f"ALTER ROLE {ROLE} {power}")
        try:
            said = await refuse(database)
        finally:
            database.run(f"ALTER ROLE {ROLE} NO{power}")
        assert "has powers of its own" in said, power
        assert "CREATE ROLE \"forge_graph\" LOGIN PASSWORD '…';" in said
    database.run(f"GRANT pg_read_all_data TO {ROLE} WITH INHERIT FALSE")
    try:
        assert "those of another role" in await refuse(database)
    finally:
        database.run(f"REVOKE pg_read_all_data FROM {ROLE}")
    assert "is the server's own user" in await refuse(
        database, given=database.given.replace(f"//{ROLE}:", "//postgres:")
    )
    assert database.fetch("SELECT to_regclass('checkpoints') IS NULL") == [(True,)]


async def test_an_address_that_leads_nowhere_or_elsewhere_is_one_sentence(
    postgres: Postgres, database: GraphDatabase
) -> None:
    said = await refuse(database, given=database.given.replace(ROLE, "nobody_else"))
    assert "there is no role nobody_else" in said
    assert 'CREATE ROLE "nobody_else" LOGIN' in said
    assert "does not exist" in await refuse(database, given=database.given.replace(database.name, "nowhere"))
    assert "password authentication failed" in await refuse(
        database, given=database.given.replace("graph%2Fsecret", "wrong")
    )
    assert "cannot use the database" in await refuse(
        database, given=database.given.replace(str(postgres.port), str(free_port()))
    )


def test_an_ordinary_user_can_own_it(database: GraphDatabase) -> None:
    database.run("CREATE ROLE forge LOGIN")
    for name in (database.name, database.main_name):
        database.run(f"ALTER DATABASE {name} OWNER TO forge")
    main = database.main.replace("//postgres@", "//forge@")

    async def use() -> None:
        threads = await PgGraphThreads.open(main, database.given, MARKS, BYTES)
        try:
            begun = await threads.begin("s", 1, None)
            await put(begun, first(begun), "red")
            assert await get(begun, first(begun)) == "red"
        finally:
            await threads.close()

    for _ in range(2):  # the second time the tables are there
        asyncio.run(use())
    remarks = list(examine_graphs(main, database.given))
    assert [remark.level for remark in remarks] == ["warn", "warn", "ok"]
    database.run("REVOKE EXECUTE ON FUNCTION pg_terminate_backend, pg_cancel_backend FROM PUBLIC")
    assert len(list(examine_graphs(main, database.given))) == 2
    database.run(f"ALTER ROLE {ROLE} BYPASSRLS")
    try:
        (bad,) = examine_graphs(main, database.given)
    finally:
        database.run(f"ALTER ROLE {ROLE} NOBYPASSRLS")
    assert bad.level == "bad"
    (missing,) = examine_graphs(main, database.given.replace(database.name, "nowhere"))
    assert (missing.level, "does not exist" in missing.text) == ("bad", True)
