"""The threads of graphs in a database of their own: who may use which, and where each turn has ended.

Graphs are agents: what they write is not trusted. They come with a role that reaches LangGraph's tables only,
and in these, by the secret that each is given, only the threads of its own claim. The server owns the tables,
and alone goes from one claim to the next.
"""

import asyncio
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

import asyncpg

from clawdforge.core.ids import new_id, new_token
from clawdforge.core.ports import LeaseLost
from clawdforge.core.ports.threads import BegunThread
from clawdforge.stores.postgres.graph_role import check_entry, find_owner, make_tables, name_database
from clawdforge.stores.postgres.link import ALL_ERRORS, LOST, Link, describe
from clawdforge.stores.postgres.queries import SQL
from clawdforge.wire.errors import Stopping, StoreUnavailable

T = TypeVar("T")
CONNECTIONS: Final = 4
ROWS_AT_ONCE: Final = 2000
FIRST_CLAIM: Final = 0
"""Of what a fork begins with: nobody has claimed the session yet."""
TABLES: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
ENV_DATABASE: Final = "CLAWDFORGE_GRAPH_DATABASE"
ENV_PASS: Final = "CLAWDFORGE_GRAPH_PASS"  # noqa: S105 - a variable's name, not a secret
ENV_THREADS: Final = "CLAWDFORGE_GRAPH_THREADS"

COPY: Final = (SQL / "graph_copy.sql").read_text("utf-8")
OF_SESSION: Final = "split_part(thread_id, ':', 1) = $1"
THREADS: Final = " UNION ".join(f"SELECT thread_id FROM {table} WHERE {OF_SESSION}" for table in TABLES)  # noqa: S608
SIZE: Final = """
SELECT (SELECT coalesce(sum(pg_column_size(checkpoint)), 0) FROM checkpoints WHERE thread_id = $1)
     + (SELECT coalesce(sum(pg_column_size(blob)), 0) FROM checkpoint_blobs WHERE thread_id = $1)
     + (SELECT coalesce(sum(pg_column_size(blob)), 0) FROM checkpoint_writes WHERE thread_id = $1)
"""
ENTER: Final = """
INSERT INTO passes VALUES ($1, $2, $3) ON CONFLICT (session_id)
DO UPDATE SET claim = excluded.claim, secret_hash = excluded.secret_hash
WHERE passes.claim <= excluded.claim OR $4
RETURNING 1
"""
MARK: Final = """
INSERT INTO marks
SELECT $1::text, $2::bigint, $3::text, max(checkpoint_id) FROM checkpoints WHERE thread_id = $3
HAVING max(checkpoint_id) IS NOT NULL ON CONFLICT (session_id, turn_index)
DO UPDATE SET thread_id = excluded.thread_id, checkpoint_id = excluded.checkpoint_id
"""
FORGET: Final = """
DELETE FROM marks WHERE session_id = $1 AND turn_index <=
(SELECT turn_index FROM marks WHERE session_id = $1 ORDER BY turn_index DESC OFFSET $2 LIMIT 1)
"""
MARKED: Final = "SELECT thread_id FROM marks WHERE session_id = $1"
FIND: Final = "SELECT thread_id, checkpoint_id FROM marks WHERE session_id = $1 AND turn_index = $2"


class PgGraphThreads:
    """`owner` is the address that the server uses, `given` the one that graphs are given."""

    def __init__(self, owner: str, given: str, max_marks: int, max_bytes: int) -> None:
        self._owner = owner
        self._given = given
        self._max_marks = max_marks
        self._max_bytes = max_bytes
        self._workers = ThreadPoolExecutor(CONNECTIONS, "graph-threads")
        self._idle: list[Link] = []
        self._guard = threading.Lock()
        self._is_closed = False

    @classmethod
    async def open(cls, main: str, given: str, max_marks: int, max_bytes: int) -> "PgGraphThreads":
        """StoreUnavailable when it cannot be used, or when the role of `given` reaches more than it should.

        `main` is the address of the server's own database.
        """
        made = cls(find_owner(main, given), given, max_marks, max_bytes)
        try:
            await made._run(partial(make_tables, given=given, main=name_database(main)))
            await made._try_entry()
        except BaseException:
            await made.close()
            raise
        return made

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.to_thread(self._end_all)

    async def begin(
        self, session_id: str, claim: int, load: str | None, *, is_certain: bool = False
    ) -> BegunThread:
        secret = new_token("cfg_")

        def work(link: Link) -> str | None:
            digest = hashlib.sha256(secret.encode()).digest()
            if not link.fetch(ENTER, (session_id, claim, digest, is_certain)):
                raise LeaseLost
            thread, _, until = (load or "").partition("@")
            if not thread.startswith(f"{session_id}:"):  # agents say this: it could be anybody's
                return None
            if thread.startswith(f"{session_id}:{claim}:") and not until:
                return thread
            return self._copy(link, thread, until or None, session_id, claim)

        found = await self._run(work)
        await self._run(lambda link: self._drop_unused(link, session_id, (found, load)))
        env = {
            ENV_DATABASE: self._given,
            ENV_PASS: secret,
            ENV_THREADS: f"{session_id}:{claim}:",
        }
        return BegunThread(found, env)

    async def _try_entry(self) -> None:
        nobody = new_id()
        try:
            begun = await self.begin(nobody, FIRST_CLAIM, None)
            await asyncio.to_thread(check_entry, self._given, begun.env[ENV_PASS], begun.env[ENV_THREADS])
        finally:
            await self.remove(nobody)

    async def mark(self, session_id: str, turn_index: int, thread: str) -> None:
        if not thread.startswith(f"{session_id}:"):
            return

        def work(link: Link) -> None:
            if link.run(MARK, (session_id, turn_index, thread)):
                link.run(FORGET, (session_id, self._max_marks))

        await self._run(work)

    async def find(self, session_id: str, turn_index: int) -> str | None:
        found = await self._run(lambda link: link.fetch(FIND, (session_id, turn_index)))
        return f"{found[0][0]}@{found[0][1]}" if found else None

    async def branch(self, source: str, target: str, turn_index: int) -> str | None:
        def work(link: Link) -> str | None:
            for thread, until in link.fetch(FIND, (source, turn_index)):
                copied = self._copy(link, thread, until, target, FIRST_CLAIM)
                link.run(MARK, (target, turn_index, copied or ""))  # an undo in the other comes back to it
                return copied
            return None

        return await self._run(work)

    async def remove(self, session_id: str) -> None:
        """Some rows at a time; what was left when it is cut off is removed by the next try."""
        await self._run(lambda link: link.run("DELETE FROM passes WHERE session_id = $1", (session_id,)))
        await self._run(lambda link: link.run("DELETE FROM marks WHERE session_id = $1", (session_id,)))
        for table in TABLES:
            while await self._run(partial(_delete_some, table=table, where=OF_SESSION, args=(session_id,))):
                pass

    def _copy(self, link: Link, thread: str, until: str | None, session_id: str, claim: int) -> str | None:
        """The name of the new thread; None where there is nothing to copy, or too much."""
        ((size,),) = link.fetch(SIZE, (thread,))
        if size > self._max_bytes:
            return None
        taken = {name for (name,) in link.fetch(THREADS, (session_id,))}
        number = 1
        while (target := f"{session_id}:{claim}:{number}") in taken:
            number += 1
        link.run("SAVEPOINT copying")
        try:
            ((count,),) = link.fetch(COPY, (thread, until, target))
        except asyncpg.DataError:  # the graph has written what LangGraph would not have
            link.run("ROLLBACK TO copying")
            return None
        return target if count else None

    def _drop_unused(self, link: Link, session_id: str, used: tuple[str | None, ...]) -> None:
        """Remove some of what no mark leads to. What was just loaded stays until the next time."""
        kept = {(name or "").partition("@")[0] for name in used}
        kept |= {name for (name,) in link.fetch(MARKED, (session_id,))}
        for table in TABLES:
            where = f"{OF_SESSION} AND thread_id <> ALL($2)"
            _delete_some(link, table=table, where=where, args=(session_id, sorted(kept)))

    async def _run(self, work: Callable[[Link], T]) -> T:
        if self._is_closed:
            raise Stopping
        return await asyncio.get_running_loop().run_in_executor(self._workers, self._try, work)

    def _try(self, work: Callable[[Link], T]) -> T:
        """In one transaction. A connection that was idle may be gone by now, so there is a second try."""
        try:
            with self._guard:
                link = self._idle.pop() if self._idle else None
            if link is not None:
                try:
                    return self._transact(link, work)
                except LOST:
                    pass
            return self._transact(Link(self._owner), work)
        except ALL_ERRORS as error:
            raise StoreUnavailable(
                f"the database of graphs cannot be used: {describe(error)}; look whether it runs, and correct"
                " CLAWDFORGE_GRAPHS_DATABASE_URL; `clawdforge doctor` says more"
            ) from error

    def _transact(self, link: Link, work: Callable[[Link], T]) -> T:
        try:
            link.run("BEGIN")
            result = work(link)
            link.run("COMMIT")
        except BaseException:
            link.close()
            raise
        with self._guard:
            if not self._is_closed:
                self._idle.append(link)
                return result
        link.close()
        return result

    def _end_all(self) -> None:
        self._workers.shutdown()
        while self._idle:
            self._idle.pop().close()


def _delete_some(link: Link, *, table: str, where: str, args: tuple[object, ...]) -> int:
    found = f"SELECT ctid FROM {table} WHERE {where} LIMIT {ROWS_AT_ONCE}"  # noqa: S608 - our own names
    return link.run(f"DELETE FROM {table} WHERE ctid = ANY(ARRAY({found}))", args)  # noqa: S608
