"""What makes a folder the same folder, whatever its name leads to: links, renames, mounts."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from clawdforge.drivers.folders.workspaces import Workspaces
from clawdforge.drivers.processes.folder_identity import is_same, lies_in, read_identity, walk_up
from clawdforge.wire.errors import InvalidRequest, WorkspaceChanged, WorkspaceRefused
from tests.needs import needs


def open_folder(path: Path) -> int:
    return os.open(path, os.O_PATH | os.O_DIRECTORY)


def identity_of(path: Path) -> str:
    fd = open_folder(path)
    try:
        return read_identity(fd)
    finally:
        os.close(fd)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "workspaces").mkdir(parents=True)
    return folder


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "srv" / "mine"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("recorded", "found", "same"),
    [
        ("8:1:5", "8:1:5", True),
        ("8:1:5", "9:1:5", True),  # the disk got another number
        ("8:1:0", "8:1:0", True),
        ("8:1:0", "9:1:0", False),  # without a birth the device decides
        ("8:1:5", "8:2:5", False),
        ("8:1:5", "8:1:6", False),  # the inode was used again
        ("8:1:0", "8:1:6", False),
        ("0:1:5", "0:1:5", True),
        ("", "8:1:5", False),
    ],
)
def test_two_identities_are_of_one_folder(recorded: str, found: str, same: bool) -> None:
    assert is_same(recorded, found) is same


def test_a_folder_keeps_its_identity_and_a_new_one_of_its_name_has_another(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    before = identity_of(folder)
    (folder / "file").write_text("x")
    folder.rename(tmp_path / "renamed")
    assert identity_of(tmp_path / "renamed") == before
    for _ in range(20):  # some file systems use the inode again at once
        folder.mkdir()
        assert not is_same(before, identity_of(folder))
        before = identity_of(folder)
        folder.rmdir()


def test_a_walk_up_ends_at_the_root(mine: Path) -> None:
    fd = open_folder(mine)
    try:
        found = [read_identity(one) for one in walk_up(fd)]
    finally:
        os.close(fd)
    assert found == [identity_of(folder) for folder in (mine, *mine.parents)]


def test_a_folder_that_was_moved_into_another_lies_in_it(data: Path, mine: Path) -> None:
    inner, outer = open_folder(mine), open_folder(data)
    try:
        assert not lies_in(inner, outer)
        mine.rename(data / "moved")
        assert lies_in(inner, outer)
        assert lies_in(outer, outer)
        assert not lies_in(outer, inner)
    finally:
        os.close(inner)
        os.close(outer)


@pytest.fixture
def workspaces(data: Path) -> Workspaces:
    return Workspaces(data)


@pytest.fixture(params=["link", "rename", "link above", "gone", "data folder"])
def swapped(request: pytest.FixtureRequest, workspaces: Workspaces, data: Path, mine: Path) -> str:
    """The identity of a folder that is no longer at its place."""
    identity = workspaces.identify(str(mine), None)
    decoy = mine.parent / "decoy"
    (decoy / "mine").mkdir(parents=True)
    if request.param == "link above":
        mine.parent.rename(mine.parent.with_name("aside"))
        mine.parent.symlink_to(mine.parent.with_name("aside") / "decoy")
    else:
        mine.rename(mine.with_name("aside"))
    if request.param == "link":
        mine.symlink_to(decoy)
    elif request.param == "rename":
        decoy.rename(mine)
    elif request.param == "data folder":
        mine.symlink_to(data)
    return identity


def test_another_folder_of_the_same_name_is_refused(workspaces: Workspaces, mine: Path, swapped: str) -> None:
    with pytest.raises(WorkspaceChanged, match="put the folder back, or start a new session"):
        workspaces.identify(str(mine), swapped)


def test_a_workspace_around_or_in_a_data_folder_that_was_moved_is_refused(
    workspaces: Workspaces, data: Path, mine: Path
) -> None:
    identity = workspaces.identify(str(mine), None)
    data.rename(mine / "data")
    data.symlink_to(mine / "data")
    with pytest.raises(WorkspaceChanged, match="data folder"):
        workspaces.identify(str(mine), identity)
    with pytest.raises(WorkspaceRefused, match="data folder"):
        workspaces.check(mine, anywhere=True)


def test_a_root_that_is_gone_or_a_link_says_so(workspaces: Workspaces, mine: Path) -> None:
    root = mine.parent
    assert workspaces.check(mine, [str(root)]).path == mine
    root.rename(root.with_name("elsewhere"))
    with pytest.raises(WorkspaceRefused, match="was granted to this app, but it does not exist"):
        workspaces.check(mine, [str(root)])
    root.symlink_to(root.with_name("elsewhere"))
    with pytest.raises(WorkspaceRefused, match="was granted to this app, but it is a link"):
        workspaces.check(mine, [str(root)])


def test_only_a_real_folder_can_be_granted(workspaces: Workspaces, data: Path, mine: Path) -> None:
    link, file = mine.parent / "link", mine.parent / "file"
    link.symlink_to(mine)
    file.write_text("x")
    assert workspaces.check_root(f"{mine}/../mine/") == str(mine)
    for bad, why in (
        ("mine", "absolute"),
        (f"{mine}\0", "absolute"),
        (str(link), "link"),
        (str(link / "x"), "not exist"),
        (str(file), "not a folder"),
        (str(mine / "no"), "not exist"),
        (str(data / "workspaces"), "data folder"),
    ):
        with pytest.raises(InvalidRequest, match=why):
            workspaces.check_root(bad)


MOUNTS = """
import os, subprocess, sys
from pathlib import Path
from clawdforge.drivers.folders.workspaces import Workspaces
from clawdforge.drivers.processes.folder_identity import read_identity, walk_up
from clawdforge.wire.errors import WorkspaceChanged, WorkspaceRefused

top = Path(sys.argv[1])
data, mine, decoy, there = (top / name for name in ("data", "srv/mine", "srv/decoy", "there"))
for folder in (data / "workspaces" / "a", mine, decoy, there):
    folder.mkdir(parents=True)
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
workspaces = Workspaces(data)

def mount(*words):
    subprocess.run(["mount", *words], check=True)

def refuse(kind, words, work):
    try:
        work()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")

identity = workspaces.identify(str(mine), None)
mount("--bind", str(decoy), str(mine))
refuse(WorkspaceChanged, "mounted", lambda: workspaces.identify(str(mine), identity))
on_a_mount = workspaces.check(mine, anywhere=True)
assert workspaces.identify(str(mine), on_a_mount.identity) == workspaces.identify(str(decoy), None)
subprocess.run(["umount", str(mine)], check=True)
refuse(WorkspaceChanged, "unmounted", lambda: workspaces.identify(str(mine), on_a_mount.identity))
assert workspaces.identify(str(mine), identity) == identity

mount("-t", "tmpfs", "tmpfs", str(mine))
refuse(WorkspaceChanged, "mounted", lambda: workspaces.identify(str(mine), identity))
subprocess.run(["umount", str(mine)], check=True)

mount("--bind", str(data), str(there))
for path in (there, there / "workspaces" / "a"):
    refuse(WorkspaceRefused, "data folder", lambda: workspaces.check(path, anywhere=True))
    refuse(WorkspaceChanged, "data folder", lambda: workspaces.identify(str(path), None))
subprocess.run(["umount", str(there)], check=True)

mount("--bind", str(top), str(there))
refuse(WorkspaceRefused, "data folder", lambda: workspaces.check(there, anywhere=True))
inner = os.open(there, os.O_PATH)
assert len(list(walk_up(inner))) == len(there.parts), "a folder that is mounted in itself is not the root"
found = workspaces.check(there / "srv" / "mine", anywhere=True)
assert (found.identity, found.above[0]) == (identity, workspaces.identify(str(mine.parent), None))
print("done")
"""


@needs("tmpfs")
def test_mounts_do_not_pass_for_the_folder_nor_hide_the_data_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        ["unshare", "--mount", sys.executable, "-c", MOUNTS, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


CLOSED = """
import os, sys
from pathlib import Path

from clawdforge.drivers.folders.workspaces import Workspaces
from clawdforge.wire.errors import WorkspaceChanged, WorkspaceRefused

top = Path(sys.argv[1])
if os.getuid() == 0:  # root may enter every folder
    os.chown(top, 65534, 65534)
    os.setgid(65534), os.setuid(65534)
data, mine = top / "data", top / "mine"
(data / "workspaces").mkdir(parents=True)
mine.mkdir()
workspaces = Workspaces(data)
recorded = workspaces.check(mine, anywhere=True).identity
mine.chmod(0)
for kind, look in (
    (WorkspaceRefused, lambda: workspaces.check(mine, anywhere=True)),
    (WorkspaceChanged, lambda: workspaces.identify(str(mine), recorded)),
):
    try:
        look()
    except kind as error:
        print(kind.__name__, error)
mine.chmod(0o700)
assert workspaces.identify(str(mine), recorded) == recorded
"""


def test_a_folder_that_the_server_may_not_enter_is_refused_with_a_sentence() -> None:
    with tempfile.TemporaryDirectory() as top:  # all folders above `tmp_path` are closed to other users
        done = subprocess.run(
            [sys.executable, "-c", CLOSED, top], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 0, done.stderr
    said = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [name for name, _, _ in said] == ["WorkspaceRefused", "WorkspaceChanged"]
    assert all("may not enter the working directory" in text for _, _, text in said)
