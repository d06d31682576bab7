"""Reads from Postgres: each on one consistent state.

Most ask for one thing only. That is one statement, which needs no transaction and no thread; who asks for a
second is run again in both, and so are those of its kind for a while.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final, TypeVar

import asyncpg

from clawdforge.stores.postgres.asked import Asked
from clawdforge.stores.postgres.link import LOST, Link, describe
from clawdforge.stores.postgres.loop_links import LoopLinks
from clawdforge.stores.postgres.one_answer import OneAnswer, Question, SecondQuestion
from clawdforge.stores.postgres.ordinary import Ordinary
from clawdforge.stores.postgres.plain_jobs import PlainJobs
from clawdforge.stores.postgres.statements import READ_PACKS, Binding, PgDb
from clawdforge.stores.sqlite.packs import DAMAGED, unpack
from clawdforge.stores.sqlite.queries import Queries
from clawdforge.stores.sqlite.statements import Statements
from clawdforge.wire.errors import SessionDamaged, Stopping, StoreUnavailable

T = TypeVar("T")
READERS: Final = 2
BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PgReaders:
    def __init__(self, url: str, queries: Queries) -> None:
        self._url = url
        self._queries = queries
        self._ordinary = Ordinary(queries)
        self._binding = Binding()
        self._unpack = lru_cache(READ_PACKS)(unpack)
        self._links = LoopLinks(url)
        self._plain = PlainJobs()
        self._threads = ThreadPoolExecutor(READERS, "store-reader")
        self._idle: list[PgDb] = []
        self._guard = threading.Lock()
        self._is_closed = False

    async def read(self, work: Callable[[Statements], T], of: Callable[..., T]) -> T:
        """`of` is what work is made of."""
        if self._is_closed:
            raise Stopping
        if not self._plain.is_plain(of):
            try:
                return await self._read_one(work)
            except SecondQuestion:
                self._plain.note(of)
            except DAMAGED as error:
                raise SessionDamaged from error
            except LOST as error:
                raise _unavailable(error) from error
        self._plain.count(of)
        if self._is_closed:
            raise Stopping
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, work)

    def read_now(self, work: Callable[[Statements], T]) -> T:
        """In the thread that calls it."""
        if self._is_closed:
            raise Stopping
        return self._read(work)

    def _read(self, work: Callable[[Statements], T]) -> T:
        try:
            return self._read_all(work)
        except DAMAGED as error:
            raise SessionDamaged from error
        except LOST as error:
            raise _unavailable(error) from error

    async def close(self) -> None:
        """What Postgres was asked is still answered; who has more to ask is told that the server stops."""
        self._is_closed = True
        await self._links.close()
        await asyncio.to_thread(self._end_all)

    def _end_all(self) -> None:
        self._threads.shutdown()
        self._forget_idle()

    async def _read_one(self, work: Callable[[Statements], T]) -> T:
        try:
            return work(OneAnswer(self._queries, self._unpack, {}))
        except Asked as asked:
            question = Question(asked, self._ordinary, self._binding)
        rows = [] if question.bound is None else await self._links.fetch(*question.bound)
        return work(OneAnswer(self._queries, self._unpack, question.read(rows)))

    def _read_all(self, work: Callable[[Statements], T]) -> T:
        db = self._begin()
        try:
            result = work(db)
            db.link.run("ROLLBACK")
        except (*LOST, asyncpg.PostgresError):
            db.link.close()
            raise
        except BaseException:
            self._end(db)
            raise
        self._keep(db)
        return result

    def _begin(self) -> PgDb:
        """Connections that were lost while nobody used them are thrown away."""
        while True:
            with self._guard:
                db = self._idle.pop() if self._idle else None
            if db is None:
                return self._begin_anew()
            try:
                db.link.run(BEGIN)
            except LOST:
                db.link.close()
                self._forget_idle()  # else each of them would be waited for
            else:
                return db

    def _begin_anew(self) -> PgDb:
        db = PgDb(Link(self._url), self._queries)
        try:
            db.link.run(BEGIN)
        except BaseException:
            db.link.close()
            raise
        return db

    def _forget_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for db in idle:
            db.link.close()

    def _end(self, db: PgDb) -> None:
        """After work that raised: its answer is an error of its own."""
        try:
            db.link.run("ROLLBACK")
        except LOST:
            db.link.close()
        else:
            self._keep(db)

    def _keep(self, db: PgDb) -> None:
        with self._guard:
            self._idle.append(db)
        if self._is_closed:  # a long read ended later
            self._forget_idle()


def _unavailable(error: BaseException) -> StoreUnavailable:
    return StoreUnavailable(f"the store cannot be read ({describe(error)}); try again later", retry_after=1.0)
