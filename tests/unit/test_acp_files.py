"""Files for agents: the workspace, all of it, and nothing else."""

import contextlib
import os
import stat
import threading
from pathlib import Path

import pytest

from clawdforge.drivers.acp import files as acp_files
from clawdforge.drivers.acp.files import RESOURCE_NOT_FOUND, WorkspaceFiles
from clawdforge.drivers.processes.folder_identity import NotTheFolder, read_identity
from clawdforge.jsonrpc.rpc import INVALID_PARAMS, RpcError


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
    assert str(files.read(path, None, None)) == "one\ntwo\nthree\n"
    assert str(files.read(path, 2, 1)) == "two\n"
    assert str(files.read(path, 2, None)) == "two\nthree\n"
    assert str(files.read(path, 0, 2)) == "one\ntwo\n"
    assert str(files.read(path, 9, 9)) == ""
    assert str(files.read(path, 1, 0)) == ""
    (root / "b").write_bytes(b"\xff\xfe")
    assert str(files.read(str(root / "b"), None, None)) == "\ufffd\ufffd"


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
    assert str(files.read(str(root / "link.txt"), None, 1)) == "one\n"
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


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a/" * 2049, "longer than 4096 bytes"),
        ("é/" * 1400, "longer than 4096 bytes"),
        ("é" * 128, "longer than 255 bytes"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused_before_it_is_looked_at(
    files: WorkspaceFiles, monkeypatch: pytest.MonkeyPatch, path: str, words: str
) -> None:
    monkeypatch.setattr(acp_files, "resolve", lambda _path: pytest.fail("it was looked at"))
    with pytest.raises(RpcError, match=words):
        files.check(path, write=False)
    with pytest.raises(RpcError, match=words):
        files.find_folder(path)


def test_links_are_followed_as_far_as_the_kernel_follows_them(root: Path, files: WorkspaceFiles) -> None:
    (root / "link0").symlink_to("a.txt")
    for number in range(1, 1500):
        (root / f"link{number}").symlink_to(f"link{number - 1}")
    assert str(files.read("link39", None, 1)) == "one\n"
    for name in ("link40", "link1499"):
        with pytest.raises(RpcError, match="more than 40 links"):
            files.read(name, None, None)
    for number in range(40):
        (root / f"wide{number}").symlink_to(f"{'sub/../' * 400}wide{number - 1}" if number else "a.txt")
    with pytest.raises(RpcError, match="or through long ones"):
        files.read("wide39", None, None)


def test_a_file_is_not_written_into_a_tree_that_is_too_deep_to_be_walked(
    root: Path, files: WorkspaceFiles
) -> None:
    files.write("d/" * 64 + "x", "x")
    with pytest.raises(RpcError, match="more than 64 folders"):
        files.write("e/" * 65 + "x", "x")
    assert not (root / "e").exists(), "nothing is made for what is refused"


def test_a_missing_file_is_named(root: Path, files: WorkspaceFiles) -> None:
    with pytest.raises(RpcError, match="does not exist") as caught:
        files.read(str(root / "none"), None, None)
    assert caught.value.code == RESOURCE_NOT_FOUND


def test_what_was_attached_can_be_read_but_not_written(root: Path) -> None:
    files = WorkspaceFiles(root, (root.parent / "secret.txt",))
    path = str(root.parent / "secret.txt")
    assert str(files.read(path, None, None)) == "secret"
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
    assert str(files.read(str(root / "big"), 900, 2)) == "line\nline\n"
    (root / "long").write_text("x" * 5000)
    with pytest.raises(RpcError):
        files.read(str(root / "long"), None, 1)
    with pytest.raises(RpcError, match="at most"):
        files.write(str(root / "big"), "x" * 1001)


def test_a_folder_that_takes_its_place_again_and_again_is_neither_read_nor_written(tmp_path: Path) -> None:
    mine, decoy, aside = (tmp_path / name for name in ("mine", "decoy", "aside"))
    for folder in (mine, decoy):
        folder.mkdir()
    (decoy / "secret.txt").write_text("CANARY")
    files, done, rounds = WorkspaceFiles(mine), threading.Event(), [0]

    def swap() -> None:
        while not done.is_set():
            for old, new in ((mine, aside), (decoy, mine), (mine, decoy), (aside, mine)):
                old.rename(new)
            rounds[0] += 1

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: list[str] = []
    written = 0
    try:
        while rounds[0] < 2000 or not written:
            with contextlib.suppress(RpcError):
                seen.append(str(files.read("secret.txt", None, None)))
            with contextlib.suppress(RpcError):
                files.write("sub/out.txt", "x")
                written += 1
    finally:
        done.set()
        swapper.join()
    assert seen == []
    assert [path.name for path in decoy.iterdir()] == ["secret.txt"]
    assert (mine / "sub" / "out.txt").read_text() == "x", "it was not only refused"


def test_files_are_only_those_of_the_folder_that_was_recorded(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    fd = os.open(mine, os.O_PATH)
    identity = read_identity(fd)
    os.close(fd)
    WorkspaceFiles(mine, (), identity).write("a.txt", "x")
    mine.rename(tmp_path / "aside")
    mine.mkdir()
    with pytest.raises(NotTheFolder, match="put the folder back"):
        WorkspaceFiles(mine, (), identity)


def test_pieces_are_short_and_lines_and_letters_may_lie_across_them(
    root: Path, files: WorkspaceFiles
) -> None:
    lines = [f"{number} \u00e9\U0001f600 {'x' * (number % 97)}\n" for number in range(5_000)]
    path = str(root / "long.txt")
    (root / "long.txt").write_text("".join(lines))
    found = files.read(path, None, None)
    assert len(found.pieces) > 3
    assert max(map(len, found.pieces)) <= acp_files.PIECE_BYTES
    assert str(found) == "".join(lines)
    for line, limit in ((1, 1), (2_000, 2_500), (4_999, 10), (5_000, None), (1_234, None), (5_001, 3)):
        end = None if limit is None else line - 1 + limit
        assert str(files.read(path, line, limit)) == "".join(lines[line - 1 : end])
    assert str(files.read(path, 10**30, 10**30)) == ""
