"""Files that every node can have: pieces are named, stored, used, unused, doomed and forgotten."""

from clawdforge.core.models.blobs import BlobRow, BlobState, PublicationRow
from clawdforge.core.ports import Store, Tx
from tests.conformance.stores.samples import APP, OTHER, a_file, make


def a_piece(place: str, digest: str = "d", app: str = APP, at: int = 10) -> BlobRow:
    return BlobRow(place=place, app_name=app, digest=digest, size=1, state=BlobState.PENDING, touched_at=at)


async def put(store: Store, *rows: BlobRow) -> None:
    for row in rows:

        def work(tx: Tx, row: BlobRow = row) -> None:
            tx.add_blobs([row])
            tx.keep_blob_data(row.place, row.digest.encode())
            tx.mark_stored([row.place])

        await store.write(row.app_name, work)


async def doomed(store: Store, before: int) -> list[str]:
    return [row.place for row in await store.write_system(lambda tx: tx.doom_blobs(before, 99))]


async def test_a_piece_is_found_only_when_it_is_stored_and_by_its_own_app(store: Store) -> None:
    await store.write(APP, lambda tx: tx.add_blobs([a_piece("p1", "one"), a_piece("p2", "two")]))
    await store.write(APP, lambda tx: tx.keep_blob_data("p1", b"\x00one"))
    assert await store.read(APP, lambda view: view.find_blobs(["one", "two"])) == {}
    await store.write(APP, lambda tx: tx.mark_stored(["p1"]))
    assert await store.read(APP, lambda view: view.find_blobs(["one", "two"])) == {"one": "p1"}
    assert await store.read(OTHER, lambda view: view.find_blobs(["one"])) == {}
    assert await store.read(APP, lambda view: view.blob_data("p1")) == b"\x00one"
    assert await store.read(OTHER, lambda view: view.blob_data("p1")) is None
    assert await store.read(APP, lambda view: view.blob_data("p2")) is None


async def test_whoever_uses_pieces_uses_all_of_them_or_none(store: Store) -> None:
    await put(store, a_piece("p1", "one"), a_piece("p2", "two"))
    assert not await store.write(APP, lambda tx: tx.use_blobs("s", ["p1", "nowhere"], 20))
    assert await doomed(store, 11) == ["p1", "p2"], "nobody uses what could not be used together"
    assert not await store.write(APP, lambda tx: tx.use_blobs("s", ["p1"], 20)), "it is being removed"


async def test_what_is_used_stays_and_what_is_not_goes_after_a_while(store: Store) -> None:
    await put(store, a_piece("p1", "one"), a_piece("p2", "two"), a_piece("p3", "three"))
    assert await store.write(APP, lambda tx: tx.use_blobs("s", ["p1", "p2"], 20))
    assert await store.write(APP, lambda tx: tx.use_blobs("t", ["p2"], 20))
    assert await doomed(store, 10**9) == ["p3"]
    await store.write_system(lambda tx: tx.forget_blobs(["p1", "p3"]))
    assert await store.read(APP, lambda view: view.find_blobs(["one", "two", "three"])) == {
        "one": "p1",
        "two": "p2",
    }, "only what is doomed is forgotten"
    assert await store.write(APP, lambda tx: tx.use_blobs("s", [], 30))
    assert await doomed(store, 30) == [], "it was in use until a moment ago"
    assert await doomed(store, 31) == ["p1"], "the other one uses the second"


async def test_a_piece_that_was_never_stored_goes_too_and_comes_not_back(store: Store) -> None:
    await store.write(APP, lambda tx: tx.add_blobs([a_piece("p1")]))
    assert await doomed(store, 11) == ["p1"]
    await store.write(APP, lambda tx: tx.mark_stored(["p1"]))
    assert await store.read(APP, lambda view: view.find_blobs(["d"])) == {}
    assert await doomed(store, 11) == ["p1"], "until somebody has removed it"
    await store.write_system(lambda tx: tx.forget_blobs(["p1"]))
    assert await doomed(store, 11) == []


async def test_data_is_dropped_by_its_own_app(store: Store) -> None:
    await put(store, a_piece("p1"))
    await store.write(OTHER, lambda tx: tx.drop_blob_data(["p1"]))
    assert await store.read(APP, lambda view: view.blob_data("p1")) == b"d"
    await store.write(APP, lambda tx: tx.drop_blob_data(["p1"]))
    assert await store.read(APP, lambda view: view.blob_data("p1")) is None


async def test_a_publication_takes_the_place_of_the_last_and_goes_with_its_session(store: Store) -> None:
    session_id = await make(store)
    await put(store, a_piece("p1"))
    for turn, workspace in ((1, None), (2, ("w",))):
        row = PublicationRow(
            session_id=session_id,
            turn_index=turn,
            agent_session_id="a",
            home=("h1", "h2"),
            workspace=workspace,
            published_at=5,
        )
        await store.write(APP, lambda tx, row=row: tx.publish(row))  # type: ignore[misc]
        assert await store.read(APP, lambda view: view.publication(session_id)) == row
    await store.write(APP, lambda tx: tx.use_blobs(session_id, ["p1"], 20))
    await store.write(APP, lambda tx: tx.change_session(session_id, deleted_at=1))
    assert await store.read(APP, lambda view: view.publication(session_id)) is None
    while not await store.write(APP, lambda tx: tx.purge(session_id, 100)):
        pass
    assert await doomed(store, 2**62) == ["p1"]


async def test_an_upload_that_is_removed_uses_nothing_any_more(store: Store) -> None:
    await put(store, a_piece("p1"))
    await store.write(APP, lambda tx: tx.add_file(a_file("ff-1", pieces=("d",))))
    await store.write(APP, lambda tx: tx.use_blobs("ff-1", ["p1"], 20))
    found = await store.read(APP, lambda view: view.file("ff-1"))
    assert found is not None
    assert found.pieces == ("d",)
    await store.write(OTHER, lambda tx: tx.remove_file("ff-1"))
    assert await doomed(store, 2**62) == []
    await store.write(APP, lambda tx: tx.remove_file("ff-1"))
    assert await doomed(store, 2**62) == ["p1"]
