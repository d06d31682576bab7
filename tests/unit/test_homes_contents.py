"""What we put into homes ourselves: shared credentials and uploads; and the folders that agents work in."""

import os
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core import ports
from clawdforge.core.models.rows import FileRow
from clawdforge.drivers.folders.credentials import shared_files
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.drivers.folders.workspaces import Workspaces
from clawdforge.wire.errors import UnknownFile, WorkspaceRefused
from tests.unit.contained import SESSION
from tests.unit.homes_bench import AGENT, homes_on, kept, objects


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def homes(tmp_path: Path) -> AsyncIterator[HomeFolders]:
    async with homes_on(tmp_path) as folders:
        yield folders


async def test_credentials_are_links_to_one_place(homes: HomeFolders, tmp_path: Path) -> None:
    shared = tmp_path / "operator" / ".agent" / "token.json"
    home = await homes.prepare(SESSION, AGENT)
    mine = home / ".agent" / "token.json"
    assert mine.readlink() == shared
    assert not (home / ".absent").is_symlink()
    await kept(homes, 1)
    mine.write_text("refreshed through the link")
    await homes.restore(SESSION, 1)
    assert mine.read_text() == shared.read_text() == "refreshed through the link"


async def test_a_credential_file_that_an_agent_replaced_serves_all_and_is_not_copied(
    homes: HomeFolders, tmp_path: Path, data: Path
) -> None:
    shared = tmp_path / "operator" / ".agent" / "token.json"
    home = await homes.prepare(SESSION, AGENT)
    mine = home / ".agent" / "token.json"
    mine.unlink()
    mine.write_text("newer")
    os.utime(mine, (time.time() + 5, time.time() + 5))
    await kept(homes, 1)
    assert shared.read_text() == "newer"
    assert stat.S_IMODE(shared.stat().st_mode) == 0o600
    assert mine.readlink() == shared
    assert objects(data) == set()
    mine.unlink()
    mine.write_text("stale")
    os.utime(mine, (1, 1))
    await homes.prepare(SESSION, AGENT)
    assert shared.read_text() == "newer"


async def test_a_link_in_place_of_a_credential_folder_is_not_followed(
    homes: HomeFolders, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    home = await homes.prepare(SESSION, AGENT)
    (home / ".agent" / "token.json").unlink()
    (home / ".agent").rmdir()
    (home / ".agent").symlink_to(victim)
    await homes.prepare(SESSION, AGENT)
    assert list(victim.iterdir()) == []
    assert (home / ".agent" / "token.json").read_text() == "shared"


@pytest.mark.parametrize("made", ["link", "folder", "hard link"])
async def test_a_credential_file_that_leads_elsewhere_is_not_shared(
    homes: HomeFolders, tmp_path: Path, data: Path, made: str
) -> None:
    """An agent may write the operator's file, so it may also replace it by a link to the admin token."""
    shared, secret = tmp_path / "operator" / ".agent" / "token.json", data / "admin.token"
    secret.write_text("cfa_secret")
    shared.unlink()
    if made == "link":
        shared.symlink_to(secret)
    elif made == "hard link":
        shared.hardlink_to(secret)
    else:
        (data / "token.json").write_text("cfa_secret")
        shared.parent.rmdir()
        shared.parent.symlink_to(data)
    assert shared_files(AGENT.credentials, tmp_path / "operator") == ()
    home = await homes.prepare(SESSION, AGENT)
    assert not (home / ".agent" / "token.json").exists()
    (home / ".agent").mkdir(exist_ok=True)
    (home / ".agent" / "token.json").write_text("forged")
    os.utime(home / ".agent" / "token.json", (time.time() + 5, time.time() + 5))
    await homes.prepare(SESSION, AGENT)
    assert secret.read_text() == "cfa_secret"


def upload(tmp_path: Path, name: str, content: str = "the upload") -> FileRow:
    stored = tmp_path / "stored"
    stored.write_text(content)
    return FileRow(
        file_token="ff_1", app_name="a", name=name, size=len(content), path=str(stored), created_at=0
    )


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("a\\b.txt", "b.txt"),
        ("..", "file"),
        (".bashrc", ".bashrc"),
        ("new\nline\u202etxt.exe", "newlinetxt.exe"),
        ("ü" * 300, "ü" * 127),
    ],
)
async def test_an_upload_is_placed_under_a_safe_name(
    homes: HomeFolders, tmp_path: Path, name: str, safe: str
) -> None:
    home = await homes.prepare(SESSION, AGENT)
    (path,) = await homes.attach(SESSION, [upload(tmp_path, name)])
    assert path == home / "uploads" / "ff_1" / safe
    assert path.read_text() == "the upload"


async def test_an_upload_is_never_written_through_a_link_of_the_agent(
    homes: HomeFolders, tmp_path: Path
) -> None:
    home = await homes.prepare(SESSION, AGENT)
    victim = tmp_path / "victim"
    victim.mkdir()
    (home / "uploads").symlink_to(victim)
    (path,) = await homes.attach(SESSION, [upload(tmp_path, "x")])
    assert list(victim.iterdir()) == []
    path.unlink()
    path.symlink_to(victim / "x")
    await homes.attach(SESSION, [upload(tmp_path, "x", "again")])
    assert list(victim.iterdir()) == []
    path.unlink()
    path.mkdir()
    assert (await homes.attach(SESSION, [upload(tmp_path, "x", "third")]))[0].read_text() == "third"


async def test_an_upload_stays_when_a_home_is_put_back(homes: HomeFolders, tmp_path: Path) -> None:
    (path,) = await homes.attach(SESSION, [upload(tmp_path, "x")])
    await kept(homes, 1)
    assert objects(tmp_path / "data") == set()
    assert await homes.restore(SESSION, 1) == "agent-1"
    assert path.read_text() == "the upload"
    await homes.restore(SESSION, 0)
    assert path.read_text() == "the upload"


async def test_an_upload_that_is_gone_says_what_to_do(homes: HomeFolders, tmp_path: Path) -> None:
    await homes.prepare(SESSION, AGENT)
    row = upload(tmp_path, "x")
    (tmp_path / "stored").unlink()
    with pytest.raises(UnknownFile, match="upload it again"):
        await homes.attach(SESSION, [row])


def test_workspaces_are_made_under_the_data_folder_and_removed(data: Path) -> None:
    workspaces = Workspaces(data)
    port: ports.Workspaces = workspaces
    path = port.make(SESSION).path
    assert path.parent == data / "workspaces"
    (path / "readonly").mkdir()
    (path / "readonly" / "file").write_text("x")
    (path / "readonly").chmod(0o500)
    workspaces.remove(SESSION)
    assert not path.exists()
    with pytest.raises(ValueError, match="session id"):
        workspaces.make("../x")


def test_a_named_workspace_must_be_inside_the_roots(data: Path, tmp_path: Path) -> None:
    root = tmp_path / "projects"
    (root / "mine").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path)
    (root / "file").write_text("x")
    data.mkdir()
    workspaces = Workspaces(data, [root])
    assert workspaces.check(root / "mine").path == root / "mine"
    assert workspaces.check(root).path == root
    for bad in (
        "mine",
        root / "out",
        root / "out" / "data",
        root / "file",
        root / "absent",
        root / ".." / "x",
        "/",
        "/\0",
    ):
        with pytest.raises(WorkspaceRefused):
            workspaces.check(bad)


def test_the_data_folder_is_never_a_workspace_even_inside_a_root(data: Path, tmp_path: Path) -> None:
    (data / "workspaces").mkdir(parents=True)
    workspaces = Workspaces(data, [tmp_path])
    for bad in (data, data / "workspaces", tmp_path):
        with pytest.raises(WorkspaceRefused, match="data folder"):
            workspaces.check(bad)


def test_without_roots_the_refusal_says_who_grants_them(data: Path, tmp_path: Path) -> None:
    data.mkdir()
    with pytest.raises(WorkspaceRefused, match="clawdforge app grant"):
        Workspaces(data).check(tmp_path)
