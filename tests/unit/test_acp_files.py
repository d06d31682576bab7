"""Files for agents: the workspace, all of it, and nothing else."""

import os
import stat
import threading
from pathlib import Path

import pytest

from clawdforge.drivers.acp import files as acp_files
from clawdforge.drivers.acp.files import RESOURCE_NOT_FOUND, WorkspaceFiles
from clawdforge.drivers.acp.rpc import INVALID_PARAMS, RpcError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    workspace = tmp_path / "work"
    (workspace / "sub").mkdir(parents=True)
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    return workspace


@pytest.fixture
def files(root: Path) -> WorkspaceFiles:
    return WorkspaceFiles(root)


def test_a_file_is_read_whole_or_by_lines(root: Path, files: WorkspaceFiles) -> None:
    path = str(root / "a.txt")
    assert files.read(path, None, None) == "one\ntwo\nthree\n"
    assert files.read(path, 2, 1) == "two\n"
    assert files.read(path, 2, None) == "two\nthree\n"
    assert files.read(path, 0, 2) == "one\ntwo\n"
    assert files.read(path, 9, 9) == ""
    assert files.read(path, 1, 0) == ""
    (root / "b").write_bytes(b"\xff\xfe")
    assert files.read(str(root / "b"), None, None) == "\ufffd\ufffd"


def test_a_file_is_written_with_its_folders_and_keeps_its_mode(root: Path, files: WorkspaceFiles) -> None:
    files.write(str(root / "new/deep/x.txt"), "é")
    assert (root / "new/deep/x.txt").read_text() == "é"
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    files.write(str(script), "new")
    assert (script.read_text(), stat.S_IMODE(script.stat().st_mode)) == ("new", 0o750)
    assert sorted(path.name for path in root.iterdir()) == ["a.txt", "new", "run.sh", "sub"]


def test_a_link_that_stays_inside_is_followed(root: Path, files: WorkspaceFiles) -> None:
    (root / "link.txt").symlink_to("a.txt")
    (root / "folder").symlink_to(root / "sub")
    assert files.read(str(root / "link.txt"), None, 1) == "one\n"
    files.write(str(root / "link.txt"), "through")
    files.write(str(root / "folder" / "y"), "y")
    assert (root / "link.txt").is_symlink()
    assert (root / "a.txt").read_text() == "through"
    assert (root / "sub" / "y").read_text() == "y"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "{root}/../secret.txt",
        "{root}/sub/../../secret.txt",
        "/etc/passwd",
        "{root}x/secret.txt",
        "{root}/to-file",
        "{root}/to-folder/secret.txt",
        "{root}/chain/secret.txt",
        "{root}/nothing/../../secret.txt",
        "/proc/self/root{root}/../secret.txt",
    ],
)
def test_nothing_outside_can_be_read_or_written(root: Path, files: WorkspaceFiles, path: str) -> None:
    (root / "to-file").symlink_to("../secret.txt")
    (root / "to-folder").symlink_to("..")
    (root / "chain").symlink_to("to-folder")
    path = path.format(root=root)
    for attempt in (
        lambda: files.read(path, None, None),
        lambda: files.write(path, "evil"),
        lambda: files.check(path, write=True),
        lambda: files.check(path, write=False),
        lambda: files.find_folder(path),
    ):
        with pytest.raises(RpcError):
            attempt()
    assert (root.parent / "secret.txt").read_text() == "secret"


def test_a_dangling_link_to_the_outside_is_not_created_through(root: Path, files: WorkspaceFiles) -> None:
    (root / "dangling").symlink_to(root.parent / "made")
    with pytest.raises(RpcError, match="outside"):
        files.write(str(root / "dangling"), "x")
    assert not (root.parent / "made").exists()


def test_a_link_that_appears_after_the_check_is_refused(
    root: Path, files: WorkspaceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is swapped for a link between looking and opening."""
    real = acp_files._open_folder

    def swapped(base: acp_files._Root, parts: tuple[str, ...], *, create: bool) -> int:
        if (root / "sub").is_dir() and not (root / "sub").is_symlink():
            (root / "sub").rmdir()
            (root / "sub").symlink_to(root.parent)
        return real(base, parts, create=create)

    monkeypatch.setattr(acp_files, "_open_folder", swapped)
    with pytest.raises(RpcError, match="link"):
        files.read(str(root / "sub" / "secret.txt"), None, None)
    with pytest.raises(RpcError):
        files.write(str(root / "sub" / "secret.txt"), "evil")
    assert (root.parent / "secret.txt").read_text() == "secret"


def test_a_workspace_that_is_swapped_for_another_folder_is_refused(tmp_path: Path) -> None:
    """The agent owns the folder above its workspace, and leads that name to the homes of others."""
    (tmp_path / "data" / "homes").mkdir(parents=True)
    (tmp_path / "data" / "homes" / "token").write_text("secret")
    (tmp_path / "mine" / "homes").mkdir(parents=True)
    files = WorkspaceFiles(tmp_path / "mine" / "homes")
    (tmp_path / "mine").rename(tmp_path / "moved")
    (tmp_path / "data").rename(tmp_path / "mine")
    path = str(tmp_path / "mine" / "homes" / "token")
    with pytest.raises(RpcError, match="link"):
        files.read(path, None, None)
    with pytest.raises(RpcError):
        files.write(path, "evil")
    assert (tmp_path / "mine" / "homes" / "token").read_text() == "secret"


def test_what_is_no_file_is_refused_at_once(root: Path, files: WorkspaceFiles) -> None:
    os.mkfifo(root / "pipe")
    done = threading.Event()

    def attempt() -> None:
        for name in ("pipe", "sub", "."):
            with pytest.raises(RpcError):
                files.read(str(root / name), None, None)
            with pytest.raises(RpcError):
                files.write(str(root / name), "x")
        done.set()

    threading.Thread(target=attempt, daemon=True).start()
    assert done.wait(5), "a named pipe must not hold us"


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5000, "a.txt/b", "a.txt/../a.txt/b"])
def test_odd_paths_are_errors_and_not_crashes(root: Path, files: WorkspaceFiles, path: str) -> None:
    with pytest.raises(RpcError):
        files.read(path and f"{root}/{path}", None, None)
    with pytest.raises(RpcError):
        files.write(path and f"{root}/{path}", "x")


def test_a_missing_file_is_named(root: Path, files: WorkspaceFiles) -> None:
    with pytest.raises(RpcError, match="does not exist") as caught:
        files.read(str(root / "none"), None, None)
    assert caught.value.code == RESOURCE_NOT_FOUND


def test_what_was_attached_can_be_read_but_not_written(root: Path) -> None:
    files = WorkspaceFiles(root, (root.parent / "secret.txt",))
    path = str(root.parent / "secret.txt")
    assert files.read(path, None, None) == "secret"
    files.check(path, write=False)
    with pytest.raises(RpcError, match="outside"):
        files.write(path, "x")
    with pytest.raises(RpcError, match="outside"):
        files.read(str(root.parent / "other.txt"), None, None)


def test_too_much_text_is_refused_and_parts_of_it_are_given(
    root: Path, files: WorkspaceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acp_files, "MAX_FILE_BYTES", 1000)
    (root / "big").write_text("line\n" * 1000)
    with pytest.raises(RpcError, match="line and limit") as caught:
        files.read(str(root / "big"), None, None)
    assert caught.value.code == INVALID_PARAMS
    assert files.read(str(root / "big"), 900, 2) == "line\nline\n"
    (root / "long").write_text("x" * 5000)
    with pytest.raises(RpcError):
        files.read(str(root / "long"), None, 1)
    with pytest.raises(RpcError, match="at most"):
        files.write(str(root / "big"), "x" * 1001)
