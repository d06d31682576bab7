"""Homes and workspaces in pieces: what is taken apart comes together again, or not at all."""

import hashlib
import json
import os
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.core.ports.shared_files import NotStill, TooMuch, TreeReading
from clawdforge.drivers.folders import shared_trees
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.drivers.folders.shared_trees import SharedTrees
from clawdforge.drivers.folders.tree_pieces import PIECE_BYTES, decode_manifest
from clawdforge.drivers.folders.workspaces import Workspaces

MIB = 1024 * 1024
SESSION = "5e55104e"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def trees(data: Path) -> SharedTrees:
    return make_trees(data)


def make_trees(data: Path, max_bytes: int = 64 * MIB) -> SharedTrees:
    data.mkdir(exist_ok=True)
    homes = HomeFolders(data, operator_home=data / "operator")
    return SharedTrees(data, homes, Workspaces(data), max_bytes)


def session_in(folder: Path) -> Any:
    return cast("Any", SimpleNamespace(session_id=SESSION, cwd=str(folder)))


def rest(folder: Path) -> None:
    """Until nothing in it changed a moment ago."""
    for path in [folder, *folder.rglob("*")]:
        while time.time_ns() - path.lstat().st_ctime_ns < 60_000_000:
            time.sleep(0.01)


def read_all(reading: TreeReading) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    while pieces := reading.read():
        for piece in pieces:
            assert hashlib.sha256(piece.data).hexdigest() == piece.digest
            assert 0 < len(piece.data) <= PIECE_BYTES
            found[piece.digest] = piece.data
    return found


async def place(trees: SharedTrees, reading: TreeReading, pieces: Mapping[str, bytes]) -> Path:
    described = b"".join(pieces[digest] for digest in reading.manifest)
    writing = trees.write_workspace(SESSION, described)
    try:
        while wanted := writing.find_wanted():
            writing.give({digest: pieces[digest] for digest in wanted})
        return (await trees.place_workspace(SESSION, writing)).path
    finally:
        writing.close()


def picture(folder: Path) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for path in sorted(folder.rglob("*")):
        info, name = path.lstat(), str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", path.readlink())
        elif path.is_dir():
            found[name] = ("folder", info.st_mode, info.st_mtime_ns)
        else:
            found[name] = ("file", info.st_mode, info.st_mtime_ns, path.read_bytes())
    return found


def furnish(folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "nothing.txt").touch()
    (folder / "deep" / "er" / "large.bin").write_bytes(os.urandom(3 * MIB + 17))
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "same.txt").write_text("#!/bin/sh\n")
    (folder / "über \udcff\n name").write_bytes(b"odd")
    (folder / "link").symlink_to("deep/er")
    (folder / "dangling").symlink_to("/nowhere")
    for number in range(40):
        (folder / "deep" / f"{number}.txt").write_text(str(number))


async def test_a_workspace_comes_together_as_it_was(trees: SharedTrees, data: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    furnish(there)
    rest(there)
    reading = trees.read_workspace(session_in(there))
    pieces = read_all(reading)
    assert pieces.keys() == reading.digests
    placed = await place(trees, reading, pieces)
    assert placed == data / "workspaces" / SESSION
    assert picture(placed) == picture(there)
    assert not list((data / "homes").glob(".new-*")), "nothing unfinished is left"


async def test_an_older_workspace_gives_way(trees: SharedTrees, data: Path, tmp_path: Path) -> None:
    old, there = data / "workspaces" / SESSION, tmp_path / "there"
    old.mkdir(parents=True)
    (old / "stale.txt").write_text("of last week")
    there.mkdir()
    (there / "fresh.txt").write_text("of now")
    rest(there)
    reading = trees.read_workspace(session_in(there))
    placed = await place(trees, reading, read_all(reading))
    assert [path.name for path in placed.iterdir()] == ["fresh.txt"]


def test_what_has_not_changed_is_not_read_again(trees: SharedTrees, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    furnish(there)
    rest(there)
    first = trees.read_workspace(session_in(there))
    all_of_it = read_all(first)
    with (there / "deep" / "er" / "large.bin").open("ab") as grown:
        grown.write(b"more")
    rest(there)
    second = trees.read_workspace(session_in(there))
    fresh = read_all(second).keys() - set(second.manifest)
    of_large = {piece for piece in fresh if piece not in all_of_it}
    assert len(of_large) == 1, "of a file that grew, only the last piece is new"
    assert len(fresh) == 4, "and no other file was read"
    assert second.digests >= fresh


@pytest.mark.parametrize("change", ["new", "gone", "other"])
def test_what_moves_while_it_is_read_is_noticed(trees: SharedTrees, tmp_path: Path, change: str) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for name in ("a", "b", "c"):
        (there / name).write_bytes(os.urandom(5 * MIB))
    rest(there)
    reading = trees.read_workspace(session_in(there))
    assert reading.read()
    if change == "new":
        (there / "d").touch()
    elif change == "gone":
        (there / "a").unlink()
    else:
        (there / "a").write_bytes(b"other")
    with pytest.raises(NotStill):
        read_all(reading)
    assert reading.manifest == ()


def test_what_changed_a_moment_ago_may_change_again_unseen(trees: SharedTrees, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "a").write_text("just now")
    with pytest.raises(NotStill):
        read_all(trees.read_workspace(session_in(there)))


def test_a_workspace_that_is_too_large_is_not_read(data: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "a").write_bytes(bytes(2000))
    rest(there)
    with pytest.raises(TooMuch, match="more than 1000 bytes"):
        read_all(make_trees(data, 1000).read_workspace(session_in(there)))


def test_what_was_forgotten_is_read_again(trees: SharedTrees, tmp_path: Path) -> None:
    """Its pieces may be gone: they were sent for a publication that never was."""
    there = tmp_path / "there"
    there.mkdir()
    (there / "a").write_text("once")
    rest(there)
    once = read_all(trees.read_workspace(session_in(there)))
    assert len(read_all(trees.read_workspace(session_in(there)))) < len(once)
    trees.forget(SESSION)
    assert read_all(trees.read_workspace(session_in(there))) == once


def test_names_that_are_too_long_together_are_not_kept(
    trees: SharedTrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_trees, "MOST_PATHS", 1000)
    there = tmp_path / "there"
    there.mkdir()
    for number in range(10):
        (there / f"{number}{'x' * 150}").touch()
    rest(there)
    with pytest.raises(TooMuch, match="names"):
        read_all(trees.read_workspace(session_in(there)))


async def test_the_newest_copy_of_a_home_becomes_the_home_elsewhere(tmp_path: Path) -> None:
    here, there = make_trees(tmp_path / "a"), make_trees(tmp_path / "b")
    home = tmp_path / "a" / "homes" / SESSION
    home.mkdir(parents=True)
    await here._homes.copy_home(SESSION, 1, "agents-1", None)
    (home / "memory.jsonl").write_bytes(os.urandom(3 * MIB))
    (home / "link").symlink_to("memory.jsonl")
    await here._homes.copy_home(SESSION, 2, "agents-2", None)
    with (home / "memory.jsonl").open("ab") as grown:
        grown.write(b"the end")
    await here._homes.copy_home(SESSION, 3, "agents-3", None)
    (home / "later.txt").write_text("of a turn that is not over")
    reading = here.read_home(SESSION)
    assert reading is not None
    assert (reading.turn_index, reading.agent_session_id) == (3, "agents-3")
    pieces = read_all(reading)
    stale = tmp_path / "b" / "homes" / SESSION
    stale.mkdir(parents=True)
    (stale / "stale.txt").write_text("of last week")
    writing = there.write_home(SESSION, b"".join(pieces[digest] for digest in reading.manifest))
    while wanted := writing.find_wanted():
        writing.give({digest: pieces[digest] for digest in wanted})
    await there.place_home(SESSION, writing, 3, "agents-3")
    writing.close()
    assert (stale / "memory.jsonl").read_bytes() == (home / "memory.jsonl").read_bytes()
    assert (stale / "link").readlink() == Path("memory.jsonl")
    assert not (stale / "stale.txt").exists()
    assert not (stale / "later.txt").exists()
    (stale / "memory.jsonl").unlink()
    assert await there._homes.restore(SESSION, 3) == "agents-3", "it is the copy of that turn as well"
    assert (stale / "memory.jsonl").stat().st_size == 3 * MIB + 7
    await here._homes.close()
    await there._homes.close()


def test_without_a_copy_there_is_nothing_to_publish(trees: SharedTrees) -> None:
    assert trees.read_home(SESSION) is None


BAD = {
    "no list": b"nonsense",
    "half": zlib.compress(b'[{"path": "a", "kind": "f"}]')[:-3],
    "no items": zlib.compress(b'[{"path": "a"}]'),
    "outside": zlib.compress(b'[{"path": "../a", "kind": "f"}]'),
    "absolute": zlib.compress(b'[{"path": "/etc/passwd", "kind": "f"}]'),
    "no text": zlib.compress(b'[{"path": "a", "kind": "f", "pieces": [1]}]'),
    "no number": zlib.compress(b'[{"path": "a", "kind": "f", "mode": "x"}]'),
    "unknown": zlib.compress(b'[{"path": "a", "kind": "f", "owner": 0}]'),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_list_of_files_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_manifest(data)


def test_a_file_of_another_length_is_refused_and_nothing_is_left(trees: SharedTrees, data: Path) -> None:
    described = zlib.compress(b'[{"path": "a", "kind": "f", "size": 3, "pieces": ["x"]}]')
    writing = trees.write_workspace(SESSION, described)
    with pytest.raises(ValueError, match="not as long"):
        writing.give({"x": b"four"})
    writing.close()
    assert not list((data / "homes").glob(".new-*"))


async def test_a_file_below_a_link_is_refused(trees: SharedTrees, tmp_path: Path) -> None:
    link = {"path": "in", "kind": "l", "target": str(tmp_path)}
    below = {"path": "in/a", "kind": "f", "size": 1, "pieces": ["x"]}
    writing = trees.write_workspace(SESSION, zlib.compress(json.dumps([link, below]).encode()))
    writing.give({"x": b"1"})
    with pytest.raises(OSError, match="exists"):
        await trees.place_workspace(SESSION, writing)
    writing.close()
    assert not (tmp_path / "a").exists()
