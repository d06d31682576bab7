"""Where sessions work: who is found in a folder, above and below it, and what is forgotten after a move."""

import pytest

from clawdforge.core.models.rows import AppRow
from clawdforge.core.models.workspaces import Area
from clawdforge.core.ports import Store, SystemTx, SystemView
from tests.conformance.stores.samples import APP, OTHER, a_session, make

HERE = Area("/srv/a", ("1:2:3", "1:1:1"))


@pytest.mark.parametrize("cwd", ["/srv/a", "/srv", "/", "/srv/a/b/c"])
async def test_a_folder_is_taken_by_another_app_in_it_above_it_and_below_it(store: Store, cwd: str) -> None:
    await make(store, a_session(app_name=OTHER, cwd=cwd))
    assert await store.read(APP, lambda view: view.is_taken(HERE))
    assert not await store.read(OTHER, lambda view: view.is_taken(HERE)), "an app may share with itself"


@pytest.mark.parametrize("identity", HERE.identities)
async def test_a_folder_is_taken_by_whoever_has_it_under_another_name(store: Store, identity: str) -> None:
    await make(store, a_session(app_name=OTHER, cwd="/mnt/x", workspace_identity=identity))
    assert await store.read(APP, lambda view: view.is_taken(HERE))
    assert not await store.read(OTHER, lambda view: view.is_taken(HERE))


@pytest.mark.parametrize(
    "session",
    [
        {"cwd": "/srv/ab"},
        {"cwd": "/srv/a0"},
        {"cwd": "/srv/b/a"},
        {"cwd": "/srv/a", "closed_at": 1},
        {"cwd": "/srv/a", "closed_at": 1, "deleted_at": 1},
        {"cwd": "/mnt/x", "workspace_identity": "1:2:4"},
    ],
)
async def test_a_folder_is_free_beside_others_and_once_they_are_closed(
    store: Store, session: dict[str, object]
) -> None:
    await make(store, a_session(app_name=OTHER, **session))
    assert not await store.read(APP, lambda view: view.is_taken(HERE))
    assert await store.read_system(lambda view: view.sessions_in(HERE)) == []


async def test_everybody_in_a_folder_is_found_once(store: Store) -> None:
    wanted = {
        (APP, await make(store, a_session(cwd="/srv/a", workspace_identity="1:2:3"))),
        (APP, await make(store, a_session(cwd="/srv/a/b"))),
        (OTHER, await make(store, a_session(app_name=OTHER, cwd="/srv"))),
    }
    await make(store, a_session(cwd="/srv/b"))
    found = await store.read_system(lambda view: view.sessions_in(HERE))
    assert (len(found), set(found)) == (3, wanted)


async def test_the_folders_that_were_named_for_open_sessions_are_listed_once(store: Store) -> None:
    for cwd in ("/srv/a", "/srv/a", "/data/workspaces/1", "/data/workspaces", "/data/workspaces0", "/x/y"):
        await make(store, a_session(cwd=cwd))
    await make(store, a_session(app_name=OTHER, cwd="/other"))
    await make(store, a_session(cwd="/closed", closed_at=1))
    found = await store.read_system(lambda view: view.named_folders("/data/workspaces"))
    assert sorted(found) == ["/data/workspaces", "/data/workspaces0", "/other", "/srv/a", "/x/y"]


async def test_a_move_of_the_data_folder_forgets_what_the_workspaces_were(store: Store) -> None:
    known = await make(store, a_session(workspace_identity="1:2:3"))
    closed = await make(store, a_session(workspace_identity="1:2:3", closed_at=1))
    assert await store.read_system(lambda view: view.place()) is None

    def move(tx: SystemTx) -> None:
        tx.move_to("here")
        tx.move_to("there")

    await store.write_system(move)
    assert await store.read_system(lambda view: view.place()) == "there"
    for session_id in (known, closed):
        row = await store.read(APP, lambda view, one=session_id: view.session(one))  # type: ignore[misc]
        assert row is not None
        assert row.workspace_identity is None


async def test_the_folders_of_an_app_are_kept_in_order(store: Store) -> None:
    row = AppRow("granted", 1, max_sessions=3, workspace_roots=("/srv/b", "/srv/a"))
    await store.write_system(lambda tx: tx.put_app(row))

    def read(view: SystemView) -> AppRow | None:
        return view.app_row("granted")

    assert await store.read_system(read) == row
    assert await store.read("granted", lambda view: view.app_row()) == row
