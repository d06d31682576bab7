"""Which node runs what nobody holds, and how each node knows a caller's folder by itself."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.nodes import Telling
from clawdforge.core.models.rows import AppRow, SessionRow
from clawdforge.core.rules.placement import choose, find_able, find_room, name_turn
from clawdforge.core.rules.quotas import NO_QUOTAS
from clawdforge.core.rules.sessions import create_session
from clawdforge.core.running.known_workspaces import KnownWorkspaces
from clawdforge.drivers.folders.workspaces import Workspaces
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.errors import WorkspaceChanged, WorkspaceRefused

TURN = name_turn("s", 3)
OTHERS = {
    "new": Telling(),
    "without": Telling(free=2, usable=["demo"]),
    "full": Telling(free=0, usable=["demo", "special"]),
    "roomy": Telling(free=1, usable=["special"]),
    "unable": Telling(free=9, usable=["special"], cannot=[TURN]),
}


def test_whoever_does_not_say_otherwise_may_be_able() -> None:
    assert find_able(OTHERS, "special", TURN) == ["new", "full", "roomy"]
    assert find_able(OTHERS, "special", name_turn("s", 4)) == ["new", "full", "roomy", "unable"]
    assert find_able(OTHERS, "unheard of", TURN) == ["new"]
    assert find_able({}, "special", TURN) == []


def test_room_is_where_somebody_says_that_there_is_some() -> None:
    assert find_room(OTHERS, "special") == ["roomy", "unable"]
    assert find_room(OTHERS, "demo") == ["without"]


def test_the_same_session_comes_to_the_same_node() -> None:
    assert {choose("s", ["a", "b", "c"]) for _ in range(10)} == {choose("s", ["a", "b", "c"])}
    assert {choose(f"session {n}", ["a", "b"]) for n in range(50)} == {"a", "b"}
    assert choose("s", []) is None


def test_what_an_older_node_tells_lacks_some() -> None:
    assert Telling.read({"agents": 2}) == Telling(agents=2)
    assert find_room({"old": Telling.read({"agents": 2})}, "special") == []


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "data", SystemClock())
    assert isinstance(opened, SqliteStore)
    yield opened
    await opened.close()


def node(store: SqliteStore, tmp_path: Path, name: str, *roots: Path) -> KnownWorkspaces:
    """A machine of its own: what is done to the folder before it looks makes it another one."""
    folder = make_folder(tmp_path, name)
    return KnownWorkspaces(store, Workspaces(folder, roots), lambda: name)


def make_folder(tmp_path: Path, name: str) -> Path:
    made = tmp_path / name
    made.mkdir(exist_ok=True)
    return made


async def make(store: SqliteStore, app: str, name: str, folder: Path, here: str, data: Path) -> SessionRow:
    found = Workspaces(data).check(folder, anywhere=True)
    row = SessionRow(
        app_name=app,
        session_id=name,
        agent="demo",
        cwd=str(folder),
        workspace_identity=found.identity,
        identities={here: found.identity},
        created_at=1,
        updated_at=1,
    )
    await store.write_system(lambda tx: tx.put_app(AppRow(app_name=app, created_at=1)))
    await store.write(app, lambda tx: create_session(tx, row, NO_QUOTAS, 1, above=found.above))
    return row


async def stored(store: SqliteStore, row: SessionRow) -> SessionRow:
    found = await store.read(row.app_name, lambda view: view.session(row.session_id))
    assert found is not None
    return found


def replace_folder(folder: Path, name: str) -> Path:
    """Another folder under its name; the old one is kept."""
    kept = folder.rename(folder.with_name(name))
    folder.mkdir()
    return kept


async def test_each_node_compares_a_callers_folder_with_what_it_was_there(
    store: SqliteStore, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    a, b = node(store, tmp_path, "a", project), node(store, tmp_path, "b", project)
    row = await make(store, "x", "s", project, "a", make_folder(tmp_path, "a"))
    of_a = replace_folder(project, "of a")
    assert not await a.is_offered(row), "at a it was replaced"
    assert await b.is_offered(row), "b is another machine"
    at_b = await b.confirm(row)
    assert set((await stored(store, row)).identities) == {"a", "b"}
    assert at_b.workspace_identity == at_b.identities["b"] != at_b.identities["a"]
    of_b = replace_folder(project, "of b")
    assert not await b.is_offered(at_b), "now it was replaced at b as well"
    with pytest.raises(WorkspaceChanged):
        await b.confirm(at_b)
    with pytest.raises(WorkspaceChanged):
        await a.confirm(at_b)
    project.rmdir()
    of_a.rename(project)
    assert (await a.confirm(at_b)).workspace_identity == row.workspace_identity
    project.rename(of_a)
    of_b.rename(project)
    assert await b.is_offered(await stored(store, row))


async def test_a_folder_comes_to_a_node_only_where_it_is_granted_and_by_no_link(
    store: SqliteStore, tmp_path: Path
) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    other.mkdir()
    row = await make(store, "x", "s", project, "a", make_folder(tmp_path, "a"))
    for b in (node(store, tmp_path, "b"), node(store, tmp_path, "b", other)):
        assert not await b.is_offered(row)
        with pytest.raises(WorkspaceRefused):
            await b.confirm(row)
    project.rename(tmp_path / "away")
    project.symlink_to(other)
    linked = node(store, tmp_path, "b", tmp_path)
    assert not await linked.is_offered(row)
    assert (await stored(store, row)).identities == row.identities


async def test_a_folder_in_which_another_app_works_under_another_name_does_not_come(
    store: SqliteStore, tmp_path: Path
) -> None:
    """There its identity is what both have in common; at the node before, it was another folder."""
    project, named = tmp_path / "project", tmp_path / "named"
    project.mkdir()
    b = node(store, tmp_path, "b", tmp_path)
    row = await make(store, "x", "s", project, "a", make_folder(tmp_path, "a"))
    replace_folder(project, "of a")
    theirs = await make(store, "y", "t", project.rename(named), "b", make_folder(tmp_path, "b"))
    named.rename(project)  # as if it were mounted at both places
    assert theirs.cwd != row.cwd
    assert not await b.is_offered(row), "others may have it free"
    with pytest.raises(WorkspaceRefused):
        await b.confirm(row)
    assert (await stored(store, row)).workspace_identity == row.workspace_identity


async def test_a_session_from_before_nodes_kept_identities_is_known_where_it_fits(
    store: SqliteStore, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    a = node(store, tmp_path, "a")
    row = replace(await make(store, "x", "s", project, "a", tmp_path / "a"), identities={})
    await store.write("x", lambda tx: tx.change_session("s", identities={}))
    assert (await a.confirm(row)).identities == {"a": row.workspace_identity}
    replace_folder(project, "of a")
    with pytest.raises(WorkspaceChanged):
        await node(store, tmp_path, "b", project).confirm(row)


async def test_a_data_folder_that_came_to_another_machine_adopts_only_what_is_granted_there(
    store: SqliteStore, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    row = await make(store, "x", "s", project, "a", make_folder(tmp_path, "a"))
    replace_folder(project, "of a")
    await store.write_system(lambda tx: tx.move_to("another machine"))
    forgotten = await stored(store, row)
    assert (forgotten.workspace_identity, forgotten.identities) == (None, {})
    with pytest.raises(WorkspaceRefused):
        await node(store, tmp_path, "b").confirm(forgotten)
    adopted = await node(store, tmp_path, "a", project).confirm(forgotten)
    assert adopted.workspace_identity == adopted.identities["a"] != row.workspace_identity
