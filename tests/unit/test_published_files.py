"""Files that were published: what is damaged is said, and what a stale holder publishes is not used."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.blobs import PublicationRow
from clawdforge.core.models.rows import SessionRow
from clawdforge.core.ports import LeaseLost, Store
from clawdforge.core.ports.shared_files import NotStill, Piece
from clawdforge.core.running.arrivals import Arrivals
from clawdforge.core.running.elsewhere import Elsewhere
from clawdforge.core.running.piece_box import PieceBox
from clawdforge.core.running.publisher import TRIES, Publisher
from clawdforge.stores.blobs.folder import FolderPlaces
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import WorkspaceChanged
from tests.conformance.stores.samples import APP, make

DATA = b"what is in a workspace"
DIGEST = sha256(DATA).hexdigest()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await SqliteStore.open(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


@pytest.fixture
async def box(store: Store, tmp_path: Path) -> PieceBox:
    made = PieceBox(store, SystemClock(), FolderPlaces(tmp_path / "blobs"))
    await made.send(APP, [Piece(DIGEST, DATA)])
    return made


@pytest.mark.parametrize("is_gone", [True, False])
async def test_a_workspace_with_a_damaged_piece_is_missed_with_a_sentence(
    store: Store, box: PieceBox, tmp_path: Path, *, is_gone: bool
) -> None:
    (piece,) = (path for path in (tmp_path / "blobs").rglob("*") if path.is_file())
    piece.unlink() if is_gone else piece.write_bytes(b"something else")
    arrivals = Arrivals(store, cast(Any, None), cast(Any, SimpleNamespace(write_workspace=bytes)), box)
    sid = await make(store)
    found = PublicationRow(session_id=sid, published_at=1, workspace=(DIGEST,))
    why = "not there any more" if is_gone else "damaged"
    with pytest.raises(
        WorkspaceChanged, match=f"what was published of it cannot be used: .* is {why}; start"
    ):
        await arrivals._place_workspace(cast(Any, SimpleNamespace(app=APP, session_id=sid)), found)


async def test_what_a_node_publishes_whose_claim_is_over_is_not_used(store: Store, box: PieceBox) -> None:
    sid = await make(store)
    await store.write(APP, lambda tx: tx.claim(sid, "a"))
    session = await store.read(APP, lambda view: view.session(sid))
    assert session is not None
    late = Publisher.__new__(Publisher)
    vars(late).update(_store=store, _clock=SystemClock(), _box=box)
    reading = cast(Any, SimpleNamespace(digests=frozenset({DIGEST})))
    await late._record(session, "owner", reading, workspace=(DIGEST,))
    assert await store.read(APP, lambda view: view.publication(sid)) is not None
    await store.write(APP, lambda tx: tx.claim(sid, "b"))
    with pytest.raises(LeaseLost):
        await late._record(session, "owner", reading, workspace=("f" * 64,))
    kept = await store.read(APP, lambda view: view.publication(sid))
    assert kept is not None
    assert kept.workspace == (DIGEST,)


class Reading:
    """A workspace with one piece."""

    manifest = (sha256(b"its manifest").hexdigest(),)
    digests = frozenset(manifest)

    def __init__(self) -> None:
        self._left = [Piece(self.manifest[0], b"its manifest")]

    def read(self) -> list[Piece]:
        left, self._left = self._left, []
        return left

    def close(self) -> None:
        pass


class Moving(Reading):
    """One in which something moves whenever it is read; says so in a list."""

    def __init__(self, read: list[str], session_id: str) -> None:
        self._read, self._session_id = read, session_id

    def read(self) -> list[Piece]:
        self._read.append(self._session_id)
        raise NotStill("it moves")


HERE = "here"


async def make_here(store: Store) -> str:
    sid = await make(store)
    await store.write(APP, lambda tx: tx.change_session(sid, own_cwd=True, folder=HERE, home_at=HERE))
    return sid


def make_publisher(
    store: Store, box: PieceBox, read: Callable[[SessionRow], Reading] = lambda _: Reading()
) -> Publisher:
    files = SimpleNamespace(read_workspace=read, read_home=lambda _: None)
    member = SimpleNamespace(node="a", folder=HERE, has_peers=True)
    return Publisher(store, SystemClock(), cast(Any, member), cast(Any, files), box)


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record for record in caplog.records if "needs this server" in record.message]
    return [vars(record)["session_id"] for record in found]


async def test_a_workspace_that_always_moves_is_complained_of_once(
    store: Store, box: PieceBox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clawdforge.core.running.publisher.AGAIN_SECS", 0.0)
    monkeypatch.setattr("clawdforge.core.running.publisher.STILL_SECS", 0.0)
    sid, read = await make_here(store), list[str]()
    publisher = make_publisher(store, box, lambda row: Moving(read, row.session_id))
    publisher.note(APP, sid)
    for _ in range(TRIES - 1):
        assert not await publisher.finish(sid)
    assert complaints(caplog) == []
    assert not await publisher.finish(sid)
    assert complaints(caplog) == [sid]


@pytest.mark.parametrize("how", ["away", "moving"])
async def test_what_was_tried_just_now_is_not_tried_at_once_by_whoever_lets_go(
    store: Store, box: PieceBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A node asks every two seconds: all tries were used up in an outage of less than a minute."""
    monkeypatch.setattr("clawdforge.core.running.publisher.STILL_SECS", 0.0)
    sid, read = await make_here(store), list[str]()

    def look(row: SessionRow) -> Reading:
        read.append(row.session_id)
        return Moving(read, row.session_id) if how == "moving" else Reading()

    publisher = make_publisher(store, box, look)
    (tmp_path / "blobs").rename(tmp_path / "away")
    (tmp_path / "blobs").touch()
    publisher.note(APP, sid)
    assert not await publisher.finish(sid)
    before = len(read)
    assert [await publisher.finish(sid) for _ in range(TRIES)] == [False] * TRIES
    assert len(read) == before > 0
    (tmp_path / "blobs").unlink()
    (tmp_path / "away").rename(tmp_path / "blobs")
    await publisher.finish_all()
    assert len(read) > before, "it is the last chance"


async def test_what_moved_while_its_agent_was_there_is_published_when_that_is_gone(
    store: Store, box: PieceBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawdforge.core.running.publisher.REST_SECS", 0.0)
    sid, read, moved = await make_here(store), list[str](), threading.Event()

    def look(row: SessionRow) -> Reading:
        if moved.is_set():
            return Reading()
        moved.set()
        return Moving(read, row.session_id)

    publisher = make_publisher(store, box, look)
    publisher.note(APP, sid)
    work = asyncio.create_task(publisher._work())
    assert await asyncio.to_thread(moved.wait, 10)
    assert await publisher.finish(sid)
    work.cancel()


async def test_one_workspace_that_always_moves_leaves_the_time_of_a_stop_to_the_others(
    store: Store, box: PieceBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawdforge.core.running.publisher.STILL_SECS", 0.0)
    moving, still = await make_here(store), await make_here(store)
    read = list[str]()

    def look(row: SessionRow) -> Reading:
        if row.session_id == moving:
            return Moving(read, moving)
        read.append(still)
        return Reading()

    publisher = make_publisher(store, box, look)
    for sid in (moving, still):
        publisher.note(APP, sid)
    await publisher.finish_all()
    assert read == [moving, still, *[moving] * (TRIES - 1)]


async def test_what_could_not_be_published_is_not_held_for_published_however_often_it_was_tried(
    store: Store,
    box: PieceBox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """After some tries it counted as done: a session was then left to others without its files."""
    monkeypatch.setattr("clawdforge.core.running.publisher.AGAIN_SECS", 0.0)
    sid = await make_here(store)
    publisher = make_publisher(store, box)
    (tmp_path / "blobs").rename(tmp_path / "away")
    (tmp_path / "blobs").touch()
    publisher.note(APP, sid)
    assert [await publisher.finish(sid) for _ in range(TRIES + 3)] == [False] * (TRIES + 3)
    assert complaints(caplog) == [sid]
    await publisher.finish_all()
    assert "the files of this session are not published as they are now" in caplog.text
    (tmp_path / "blobs").unlink()
    (tmp_path / "away").rename(tmp_path / "blobs")
    publisher.note(APP, sid)
    assert await publisher.finish(sid)
    kept = await store.read(APP, lambda view: view.publication(sid))
    assert kept is not None
    assert kept.workspace == Reading.manifest
    caplog.clear()
    await publisher.finish_all()
    assert "not published" not in caplog.text


@pytest.mark.parametrize("failure", [RuntimeError("can't start new thread"), OSError("no more of them")])
async def test_a_look_at_a_workspace_that_fails_costs_no_turn_its_answer(
    store: Store, box: PieceBox, failure: Exception
) -> None:
    def is_empty(_: SessionRow) -> bool:
        raise failure

    sid = await make_here(store)
    session = await store.read(APP, lambda view: view.session(sid))
    assert session is not None
    files, member = SimpleNamespace(is_empty=is_empty), SimpleNamespace(node="a", folder=HERE, has_peers=True)
    publisher = Publisher(store, SystemClock(), cast(Any, member), cast(Any, files), box)
    elsewhere = Elsewhere(store, SystemClock(), cast(Any, member), publisher, cast(Any, None))
    assert not await elsewhere.is_first_and_empty(session, 1)
