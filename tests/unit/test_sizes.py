"""What folders take of the disk is measured as it is: holes, reserved space, several names, links."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from clawdforge.drivers.folders.sizes import SessionSizes, own_tree_bytes, tree_bytes
from clawdforge.drivers.folders.tree_walk import Limits
from clawdforge.wire.disk import FILE_FORMS, DiskForm

MIB = 1 << 20
Measure = Callable[[Path], int]
both = pytest.mark.parametrize("measure", [tree_bytes, own_tree_bytes])


def taken(*paths: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in paths)


@both
def test_a_tree_counts_with_all_that_is_in_it(tmp_path: Path, measure: Measure) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "one").write_bytes(os.urandom(MIB))
    (tmp_path / "a" / "b" / "two").write_bytes(os.urandom(3 * MIB))
    assert measure(tmp_path) == taken(tmp_path, *tmp_path.rglob("*"))
    assert measure(tmp_path) >= 4 * MIB


@both
def test_there_may_be_no_tree(tmp_path: Path, measure: Measure) -> None:
    (tmp_path / "file").write_text("x")
    assert measure(tmp_path / "none") == 0
    assert measure(tmp_path / "file") == 0


@both
def test_a_hole_is_no_space_and_reserved_space_is(tmp_path: Path, measure: Measure) -> None:
    before = measure(tmp_path)
    os.truncate(os.open(tmp_path / "hole", os.O_CREAT | os.O_WRONLY), 1 << 40)
    assert measure(tmp_path) - before < MIB
    fd = os.open(tmp_path / "reserved", os.O_CREAT | os.O_WRONLY)
    try:
        os.posix_fallocate(fd, 0, 4 * MIB)
        os.truncate(fd, 4 * MIB)
    finally:
        os.close(fd)
    assert measure(tmp_path) - before >= 4 * MIB


@both
def test_a_file_with_several_names_counts_once(tmp_path: Path, measure: Measure) -> None:
    (tmp_path / "one").write_bytes(os.urandom(MIB))
    before = measure(tmp_path)
    for name in ("two", "three"):
        os.link(tmp_path / "one", tmp_path / name)
    assert measure(tmp_path) - before < MIB


@both
def test_no_link_is_followed(tmp_path: Path, measure: Measure) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (elsewhere / "large").write_bytes(os.urandom(4 * MIB))
    before = measure(home)
    (home / "link").symlink_to(elsewhere)
    (home / "file").symlink_to(elsewhere / "large")
    os.mkfifo(home / "pipe")
    assert measure(home) - before < MIB
    (tmp_path / "itself").symlink_to(elsewhere)
    assert measure(tmp_path / "itself") == 0


@pytest.mark.parametrize("measure", [tree_bytes, own_tree_bytes])
def test_a_tree_that_is_too_large_counts_for_what_was_seen(
    tmp_path: Path, measure: Callable[[Path, Limits], int]
) -> None:
    for n in range(4):
        (tmp_path / f"f{n}").mkdir()
        (tmp_path / f"f{n}" / "file").write_bytes(os.urandom(MIB))
    seen = measure(tmp_path, Limits(entries=6, depth=10, seconds=60))
    assert 2 * MIB <= seen < tree_bytes(tmp_path)


async def test_a_session_is_measured_in_all_its_folders(tmp_path: Path) -> None:
    sizes = SessionSizes(tmp_path)
    assert await sizes.measure("s1", None) == dict.fromkeys(FILE_FORMS, 0)
    for n, folder in enumerate(("homes", "copies", "shadows", "workspaces"), 1):
        (tmp_path / folder / "s1").mkdir(parents=True)
        (tmp_path / folder / "s1" / "file").write_bytes(os.urandom(n * MIB))
        (tmp_path / folder / "s2").mkdir()
        (tmp_path / folder / "s2" / "file").write_bytes(os.urandom(50 * MIB))
    found = await sizes.measure("s1", "s1")
    assert [found[form] // MIB for form in FILE_FORMS] == [1, 2, 3, 4]
    assert (await sizes.measure("s1", None))[DiskForm.WORKSPACES] == 0
    with pytest.raises(ValueError, match="session id"):
        await sizes.measure("../s1", None)
