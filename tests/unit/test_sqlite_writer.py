"""The writing thread: groups, survives a full disk and a kill, writes nothing when idle."""

import asyncio
import resource
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import Commit, SessionRow
from clawdforge.core.ports import Store, Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.stores.sqlite.writer import MAX_BATCH
from clawdforge.wire.errors import Stopping, StoreUnavailable
from clawdforge.wire.event import EventType

APP = "alpha"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


async def make(store: Store, session_id: str = "s1") -> str:
    row = SessionRow(app_name=APP, session_id=session_id, agent="demo", cwd="/w", created_at=1, updated_at=1)
    await store.write(APP, lambda tx: tx.add_session(row))
    return session_id


def adds(session_id: str, size: int = 10) -> Callable[[Tx], int]:
    event = draft(EventType.TEXT, None, 1, {"content": "x" * size})
    return lambda tx: tx.append(session_id, [event])


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the writer is a thread
            await asyncio.sleep(0.01)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """A disk that is full: a write beyond this fails with EFBIG (Python ignores SIGXFSZ)."""
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_many_jobs_are_one_commit(store: SqliteStore) -> None:
    """S3-22."""
    sid = await make(store)
    before = store._writer.commits
    await asyncio.gather(*(store.write(APP, adds(sid)) for _ in range(500)))
    assert store._writer.commits - before <= 50


async def test_writes_are_synchronous_and_logged_ahead(store: SqliteStore) -> None:
    db = store._writer._db
    assert db is not None
    assert db.connection.pragma("journal_mode") == "wal"
    assert db.connection.pragma("synchronous") == 2
    assert db.connection.pragma("locking_mode") == "normal"
    assert apsw.sqlite_lib_version() in store.version()


async def test_a_full_disk_fails_the_batch_and_heals_by_itself(store: SqliteStore) -> None:
    sid = await make(store)
    told: list[Commit] = []
    store.listen(told.append)
    with no_file_grows_beyond(1 << 20):
        jobs = (store.write(APP, adds(sid, 1_200_000)) for _ in range(10))
        results = await asyncio.gather(*jobs, return_exceptions=True)
        assert {type(result) for result in results} == {StoreUnavailable}
        assert "outcome is unknown" in str(results[0])
        assert told == []
        reason = store.health()
        assert reason is not None
        assert "forge.db" in reason
        row = await store.read(APP, lambda v: v.session(sid))
        assert row is not None
        assert row.head == 0
    await until(lambda: store.health() is None)
    assert await store.write(APP, adds(sid, 300_000)) == 1
    assert [event.seq for commit in told for event in commit.events] == [1]
    assert await store.integrity() == []


async def test_while_it_is_down_jobs_fail_at_once(store: SqliteStore) -> None:
    sid = await make(store)
    with no_file_grows_beyond(0):
        with pytest.raises(StoreUnavailable, match="unknown"):
            await store.write(APP, adds(sid))
        for _ in range(20):
            async with asyncio.timeout(60):  # it would wait for the disk, which stays full
                with pytest.raises(StoreUnavailable, match="nothing was recorded"):
                    await store.write(APP, adds(sid))
        assert await store.read(APP, lambda v: v.session(sid)) is not None
    await until(lambda: store.health() is None)
    assert await store.write(APP, adds(sid)) == 1


async def test_a_job_that_hides_a_disk_error_fails_the_batch_all_the_same(store: SqliteStore) -> None:
    sid = await make(store)

    def careless(tx: Tx) -> str:
        try:
            for _ in range(200):  # beyond the page cache, so that it is written before the commit
                adds(sid, 1_000_000)(tx)
        except apsw.Error:
            return "never mind"
        return "there was room"

    with no_file_grows_beyond(1 << 20):
        results = await asyncio.gather(
            store.write(APP, adds(sid)), store.write(APP, careless), return_exceptions=True
        )
        assert StoreUnavailable in {type(result) for result in results[1:]}
    await until(lambda: store.health() is None)
    head = await store.write(APP, adds(sid))
    assert head in (1, 2)
    assert await store.integrity() == []


async def test_a_foreign_writer_is_waited_for_and_seen(store: SqliteStore) -> None:
    sid = await make(store)
    code = """
        import sqlite3, sys
        db = sqlite3.connect(sys.argv[1], isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE sessions SET title = 'edited', closed_at = 77")
        print("locked", flush=True)
        sys.stdin.readline()
        db.execute("COMMIT")
    """
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        textwrap.dedent(code),
        str(store.path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    assert await program.stdout.readline() == b"locked\n"
    writing = asyncio.create_task(store.write(APP, adds(sid)))
    row = await store.read(APP, lambda v: v.session(sid))
    assert row is not None
    assert row.title == ""
    program.stdin.write(b"\n")
    assert await writing == 1
    assert await program.wait() == 0
    row = await store.read(APP, lambda v: v.session(sid))
    assert row is not None
    assert (row.title, row.closed_at, row.head) == ("edited", 77, 1)


async def test_a_listener_that_fails_holds_up_nobody(store: SqliteStore) -> None:
    sid = await make(store)
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["exception"]))
    told: list[Commit] = []

    def broken(_: Commit) -> None:
        raise RuntimeError("on purpose")

    store.listen(broken)
    store.listen(told.append)
    assert await store.write(APP, adds(sid)) == 1
    assert len(told) == 1
    assert [str(problem) for problem in problems] == ["on purpose"]


async def test_what_was_submitted_is_written_before_it_closes(tmp_path: Path) -> None:
    store = await open_store(tmp_path, SystemClock())
    sid = await make(store)
    writes = [asyncio.ensure_future(store.write(APP, adds(sid))) for _ in range(300)]
    await asyncio.sleep(0)
    await store.close()
    assert [await write for write in writes] == list(range(1, 301))
    with pytest.raises(Stopping):
        await store.write(APP, adds(sid))
    with pytest.raises(Stopping):
        await store.read(APP, lambda v: v.session(sid))
    await store.close()
    assert names(tmp_path) == ["forge.db"]


async def test_an_idle_store_and_its_readers_write_nothing(store: SqliteStore) -> None:
    sid = await make(store)

    def state() -> dict[str, tuple[int, int]]:
        folder = store.path.parent
        found = {path.name: path.stat() for path in folder.iterdir() if not path.name.endswith("-shm")}
        return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}

    before = state()
    assert "forge.db-wal" in before
    for _ in range(50):
        await store.read(APP, lambda v: (v.session(sid), v.search("x", limit=5)))
        await store.read_system(lambda v: (v.idle_sessions(10**18, 9), v.waiting_sessions()))
        await asyncio.sleep(0.002)
    assert state() == before


async def test_a_reader_cannot_write(store: SqliteStore) -> None:
    await make(store)

    def meddle(view: object) -> None:
        view._db.connection.execute("DELETE FROM sessions")  # type: ignore[attr-defined]

    with pytest.raises(StoreUnavailable):
        await store.read(APP, meddle)
    assert await store.read(APP, lambda v: v.session("s1")) is not None


async def test_the_log_stays_bounded(store: SqliteStore) -> None:
    sid = await make(store)
    for _ in range(600):
        await store.write(APP, adds(sid, 200_000))
    log = store.path.with_name("forge.db-wal").stat().st_size
    assert store.path.stat().st_size > 40_000_000
    assert log < 80_000_000


CHILD = """
import asyncio, sys
from pathlib import Path
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.clock import SystemClock
from clawdforge.stores import open_store
from clawdforge.wire.event import EventType

async def main():
    store = await open_store(Path(sys.argv[1]), SystemClock())
    row = SessionRow(app_name="alpha", session_id="s1", agent="demo", cwd="/w", created_at=1, updated_at=1)
    if await store.read("alpha", lambda v: v.session("s1")) is None:
        await store.write("alpha", lambda tx: tx.add_session(row))
    event = draft(EventType.TEXT, None, 1, {"content": "x" * 500})
    async def append():
        while True:
            print(await store.write("alpha", lambda tx: tx.append("s1", [event] * 3)), flush=True)
    await asyncio.gather(*(append() for _ in range(5)))

asyncio.run(main())
"""


async def test_nothing_acknowledged_is_lost_to_kill_9(tmp_path: Path) -> None:
    """S3-17."""
    acknowledged = 0
    for round_ in range(4):
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, str(tmp_path), stdout=subprocess.PIPE
        )
        assert program.stdout is not None
        async with asyncio.timeout(30):
            for _ in range(40 + 37 * round_):
                acknowledged = max(acknowledged, int(await program.stdout.readline()))
        program.kill()
        rest = (await program.stdout.read()).split(b"\n")[:-1]
        acknowledged = max([acknowledged, *map(int, rest)])
        await program.wait()
        store = await open_store(tmp_path, SystemClock())
        events = await store.read(APP, lambda v: v.events("s1", after=0, limit=10**6, max_bytes=1 << 40))
        row = await store.read(APP, lambda v: v.session("s1"))
        assert await store.integrity() == []
        await store.close()
        assert row is not None
        assert [event.seq for event in events] == list(range(1, row.head + 1))
        assert row.head >= acknowledged


async def test_a_bug_in_the_writing_thread_leaves_nobody_waiting_and_is_survived(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More jobs than fit into a batch waited when it died, and the rest of them were never answered."""
    sid, begun, go_on = await make(store), threading.Event(), threading.Event()

    def hold(_: Tx) -> bool:
        begun.set()
        return go_on.wait(10)

    def fail(_: apsw.Connection, **_more: bool) -> None:
        if go_on.is_set():
            monkeypatch.undo()
            raise RuntimeError("a bug of ours")

    monkeypatch.setattr(store._writer.checkpoints, "after_commit", fail)
    first = asyncio.create_task(store.write(APP, hold))
    await until(begun.is_set)  # before that the thread may still be behind the commit of the session
    waiting = [asyncio.create_task(store.write(APP, adds(sid))) for _ in range(2 * MAX_BATCH + 10)]
    await asyncio.sleep(0)
    go_on.set()
    async with asyncio.timeout(20):
        assert await first
        for done in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(done, int | StoreUnavailable)
    await until(lambda: store.health() is None)
    await store.write(APP, adds(sid))


async def test_a_job_of_another_app_comes_after_one_of_a_crowd(store: SqliteStore) -> None:
    """It waited for all that had come before it."""
    ran: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: Tx) -> None:
        begun.set()
        go_on.wait(30)

    def say(name: str) -> Callable[[Tx], None]:
        return lambda _: ran.append(name)

    jobs = [asyncio.ensure_future(store.write("noisy", hold))]
    await until(begun.is_set)
    jobs += [asyncio.ensure_future(store.write("noisy", say("noisy"))) for _ in range(100)]
    jobs.append(asyncio.ensure_future(store.write("quiet", say("quiet"))))
    await asyncio.sleep(0)  # all of them are submitted
    go_on.set()
    await asyncio.gather(*jobs)
    assert ran.index("quiet") <= 1
    assert len(ran) == 101


async def test_a_batch_that_takes_long_is_written_before_it_is_full(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever was done waited for the commit of everybody else's work."""
    monkeypatch.setattr("clawdforge.stores.sqlite.job_queue.MAX_BATCH_SECS", -1.0)
    before = store._writer.commits
    await asyncio.gather(*(store.write(APP, lambda _: None) for _ in range(20)))
    assert store._writer.commits - before == 20


async def test_a_slice_is_not_in_the_transaction_of_those_before_it(store: SqliteStore) -> None:
    begun, go_on, sliced = threading.Event(), threading.Event(), threading.Event()
    never = threading.Event()

    def hold(_: Tx) -> None:
        begun.set()
        go_on.wait(30)

    def work_long(_: Tx) -> None:
        sliced.set()
        never.wait(30)

    first = asyncio.ensure_future(store.write("noisy", hold))
    await until(begun.is_set)
    part = asyncio.ensure_future(store.write_slice("noisy", work_long))
    await asyncio.sleep(0)
    go_on.set()
    await first  # the slice is at work, or has not begun
    await until(sliced.is_set)
    assert not part.done()
    never.set()
    await part
