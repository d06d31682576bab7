"""Files that were published: what is damaged is said, and what a stale holder publishes is not used."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.core.blob_model import PublicationRow
from clawdforge.core.model import SystemClock
from clawdforge.core.ports import LeaseLost, Store
from clawdforge.core.ports.shared_files import Piece
from clawdforge.core.running.arrivals import Arrivals
from clawdforge.core.running.piece_box import PieceBox
from clawdforge.core.running.publisher import Publisher
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
