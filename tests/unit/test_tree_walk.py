"""Trees of agents, walked, deleted and written: no link is followed, nothing hangs, everything is bounded."""

import contextlib
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawdforge.drivers.folders import tree_removal
from clawdforge.drivers.folders.tree_removal import TreeRemoval, delete_tree, delete_tree_in_slices
from clawdforge.drivers.folders.tree_walk import Limits, TreeTooLarge, open_folder, walk_tree
from clawdforge.drivers.folders.tree_write import BadPath, TreeWriter, finish, split_path
from tests.needs import needs
from tests.unit.trees import FILES, count_descriptors, make_deep, swapped_folder

WIDE = Limits(entries=1000, depth=50, seconds=60.0)


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "tree"
    folder.mkdir()
    yield folder
    delete_tree(folder)  # pytest cannot delete what is deep


@pytest.fixture
def swapping(top: Path, tmp_path: Path) -> Iterator[Path]:
    with swapped_folder(top, tmp_path) as outside:
        yield outside


def look(top: Path, limits: Limits = WIDE, skipped: tuple[str, ...] = ()) -> tuple[list[str], dict[str, str]]:
    left_out: dict[str, str] = {}
    with open_folder(top) as root:
        found = [one.path for one in walk_tree(root, limits, left_out.__setitem__, skipped=skipped)]
    return found, left_out


def make_troublesome(top: Path, victim: Path) -> None:
    """One of everything that has ever been in the way."""
    (top / "sub" / "locked").mkdir(parents=True)
    (top / "sub" / "locked" / "file").write_text("x")
    (top / "sub" / "locked").chmod(0o000)
    (top / "sub").chmod(0o500)
    os.mkfifo(top / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()  # noqa: PTH109 - a socket's path is short
        os.chdir(top)
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
    (top / "to-folder").symlink_to(victim)
    (top / "to-file").symlink_to(victim / "file")
    (top / "loop").symlink_to("loop")
    os.link(victim / "file", top / "hard link")
    (top / b"new\nline \xff".decode(errors="surrogateescape")).write_text("x")
    with (top / "sparse").open("wb") as file:
        file.truncate(5 << 30)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file").write_text("mine")
    (folder / "file").chmod(0o640)
    return folder


def test_a_walk_finds_folders_files_and_links_and_nothing_else(top: Path, victim: Path) -> None:
    make_troublesome(top, victim)
    (top / "sub" / "locked").chmod(0o700)
    before = count_descriptors()
    found, left_out = look(top, skipped=("sparse",))
    odd = b"new\nline \xff".decode(errors="surrogateescape")
    links = ["loop", odd, "sub", "sub/locked", "sub/locked/file", "to-file", "to-folder"]
    assert (found, left_out) == (["hard link", *links], {})
    assert count_descriptors() == before


def test_a_walk_ends_at_its_limits_and_closes_what_it_opened(top: Path) -> None:
    before = count_descriptors()
    make_deep(top)
    found, left_out = look(top)
    deepest = "/".join("d" * 51)
    assert (len(found), list(left_out)) == (50, [deepest])
    assert "50 folders deep" in left_out[deepest]
    for number in range(1000):
        (top / str(number)).touch()
    with pytest.raises(TreeTooLarge, match="more than 1000"):
        look(top)
    with pytest.raises(TreeTooLarge, match="longer than 0 s"):
        look(top, Limits(entries=10_000, depth=9, seconds=0.0))
    with open_folder(top / "d") as root:
        assert next(walk_tree(root, WIDE, left_out.__setitem__)).path == "d"  # a caller that stops early
    assert count_descriptors() == before


MOUNTED = """
import json, sys
from pathlib import Path
from tests.unit.test_tree_walk import delete_tree, look
top = Path(sys.argv[1])
seen = look(top)
delete_tree(top)
print(json.dumps([seen, [str(path.relative_to(top)) for path in sorted(top.rglob("*"))]]))
"""


@needs("tmpfs")
def test_a_file_system_that_is_mounted_inside_is_neither_read_nor_emptied(top: Path) -> None:
    (top / "sub" / "mount").mkdir(parents=True)
    (top / "own").touch()
    mount = 'mount -t tmpfs tmpfs "$1/sub/mount" && touch "$1/sub/mount/foreign" && exec "$2" -c "$3" "$1"'
    line = ["unshare", "--mount", "sh", "-c", mount, "sh", str(top), sys.executable, MOUNTED]
    done = subprocess.run(line, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    (found, left_out), left = json.loads(done.stdout)
    assert found == ["own", "sub"]
    assert left_out == {"sub/mount": "another file system is mounted there"}
    assert left == ["sub", "sub/mount", "sub/mount/foreign"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a file of another user")
def test_a_hard_link_to_a_file_of_another_user_is_not_taken(top: Path, victim: Path) -> None:
    os.chown(victim / "file", 12345, 12345)
    os.link(victim / "file", top / "shadow")
    (top / "own").write_text("x")
    os.link(top / "own", top / "own too")
    found, left_out = look(top)
    assert (found, list(left_out)) == (["own", "own too"], ["shadow"])


def test_a_walk_never_enters_what_is_swapped_for_a_folder(top: Path, swapping: Path) -> None:
    """The race is run until both sides of it were met: the folder was there once, and once it was not."""
    seen: set[int] = set()
    for _ in range(20_000):
        with open_folder(top) as root:
            for found in walk_tree(root, WIDE, lambda _path, _why: None):
                if found.is_file:
                    assert Path(f"/proc/self/fd/{found.parent}").readlink() != swapping
            seen.add(len(look(top)[0]))
        if len(seen) > 1:
            break
    assert len(seen) > 1, "the folder was never swapped in time: this shows nothing"


def test_everything_troublesome_can_be_deleted_and_nothing_outside_is(top: Path, victim: Path) -> None:
    make_troublesome(top, victim)
    make_deep(top)
    before = count_descriptors()
    delete_tree(top)
    assert not top.exists()
    assert ((victim / "file").read_text(), (victim / "file").stat().st_mode & 0o777) == ("mine", 0o640)
    assert count_descriptors() == before
    delete_tree(top)
    (top.parent / "link").symlink_to(victim)
    delete_tree(top.parent / "link")
    delete_tree(victim / "file")
    assert list(victim.iterdir()) == []


def test_an_ordinary_user_can_delete_what_an_agent_locked(
    top: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may do anything, so it is tried as somebody who may not."""
    make_troublesome(top, victim)
    if os.geteuid() != 0:
        delete_tree(top)
    else:
        for here, folders, files in os.walk(top):
            for name in (*folders, *files):
                os.chown(Path(here, name), 12345, 12345, follow_symlinks=False)
        os.chown(top, 12345, 12345)
        top.parent.chmod(0o777)
        monkeypatch.chdir(top.parent)
        _delete_as(Path(top.name), 12345)
    assert not top.exists()
    assert (victim / "file").read_text() == "mine"


def _delete_as(top: Path, user: int) -> None:
    """In this thread only: file systems ask for the rights of a thread."""
    setfsuid = ctypes.CDLL(None).setfsuid
    failures: list[BaseException] = []

    def work() -> None:
        setfsuid(user)
        try:
            delete_tree(top)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failures == []


@pytest.mark.skipif(shutil.which("chattr") is None, reason="needs chattr")
def test_what_cannot_be_deleted_is_said_and_the_rest_goes(
    top: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (top / "sub").mkdir()
    for name in ("stays", "goes"):
        (top / "sub" / name).touch()
    made = subprocess.run(["chattr", "+i", str(top / "sub" / "stays")], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no immutable files on this file system")
    try:
        delete_tree(top)
        assert [path.name for path in (top / "sub").iterdir()] == ["stays"]
        assert "remove it by hand" in caplog.text
    finally:
        subprocess.run(["chattr", "-i", str(top / "sub" / "stays")], check=True)


async def test_a_large_tree_is_deleted_in_slices(top: Path) -> None:
    for number in range(3000):
        (top / f"{number % 7}").mkdir(exist_ok=True)
        (top / f"{number % 7}" / str(number)).touch()
    removal = TreeRemoval(top)
    assert not removal.step(100)
    left = sum(len(files) for _, _, files in os.walk(top))
    assert 2800 <= left < 3000
    await delete_tree_in_slices(top)
    assert TreeRemoval(top).step()
    assert top.name not in os.listdir(top.parent)  # noqa: PTH208 - in a coroutine


def test_a_tree_that_grows_while_it_is_deleted_does_not_hold_us_for_ever(
    top: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    removal = TreeRemoval(top)
    monkeypatch.setattr(tree_removal, "MAX_STEPS", 5)
    steps = 0
    is_done = False
    while not is_done:
        for name in "ab":
            (top / f"{steps}{name}").touch()
        is_done = removal.step(1)
        steps += 1
        assert steps <= 5
    assert "keeps growing" in caplog.text


def test_a_folder_that_is_swapped_while_it_is_deleted_costs_nobody_a_file(top: Path, swapping: Path) -> None:
    for number in range(200):
        inside = top / f"more{number}"
        inside.mkdir()
        (inside / "x").touch()
        delete_tree(top / "inside")
        with contextlib.suppress(FileExistsError):
            (top / "inside").mkdir()
    delete_tree(top)
    assert len(list(swapping.iterdir())) == FILES


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a/..", "a\0b", "/", "a/", "x/" * 20],
)
def test_a_path_that_is_not_plainly_below_is_refused(path: str) -> None:
    with pytest.raises(BadPath):
        split_path(path, 10)


def test_nothing_is_written_through_a_link_or_twice(top: Path, victim: Path) -> None:
    before = count_descriptors()
    with open_folder(top) as root, TreeWriter(root, 10) as writer:
        writer.add_link("out", str(victim))
        writer.add_folder("a/b/c")
        writer.add_folder("a/b")
        fd = writer.create_file("a/b/file")
        finish(fd, 0o6755, 1 << 80)
        os.close(fd)
        for call in (
            lambda: writer.create_file("out/file"),
            lambda: writer.create_file("out/deep/file"),
            lambda: writer.add_folder("out/deep"),
            lambda: writer.add_link("out/link", "x"),
            lambda: writer.finish_folder("out", 0o777),
            lambda: writer.create_file("a/b/file"),
            lambda: writer.add_link("a/b/file", "x"),
            lambda: writer.create_file("out"),
            lambda: writer.add_folder("a/b/file/more"),
        ):
            with pytest.raises(OSError, match=r".") as caught:
                call()
            assert not isinstance(caught.value, FileNotFoundError)
        writer.finish_folder("a/b/c", 0o7711)
    assert [path.name for path in victim.iterdir()] == ["file"]
    assert ((victim / "file").read_text(), victim.stat().st_mode & 0o7777) == ("mine", 0o755)
    assert [(top / name).stat().st_mode & 0o7777 for name in ("a/b/file", "a/b/c")] == [0o755, 0o711]
    assert count_descriptors() == before
