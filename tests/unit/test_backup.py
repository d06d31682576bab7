"""Backups of what hostile agents left."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawdforge.upkeep.archive import TreeLimits, create_archive, ignore_progress
from clawdforge.upkeep.backup import restore
from tests.unit.backups import back_up, make_data, one_workspace
from tests.unit.trees import CANARY, count_descriptors, make_deep, swapped_folder

ODD = b"new\nline \xff".decode(errors="surrogateescape")


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    return await make_data(tmp_path)


@pytest.fixture
def workspace(data: Path) -> Iterator[Path]:
    with one_workspace(data) as folder:
        yield folder


def test_what_an_agent_left_comes_back_and_its_tricks_do_not(
    data: Path, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("CANARY")
    (workspace / ODD).write_text("odd")
    (workspace / "link").symlink_to(outside)
    (workspace / "dangling").symlink_to(ODD)
    os.mkfifo(workspace / "fifo")
    (workspace / "run").write_text("x")
    (workspace / "run").chmod(0o4755)
    (workspace / "sub").mkdir(mode=0o500)
    made = back_up(data)
    assert (made.left_out, made.left_out_count) == ({}, 0)
    assert b"CANARY" not in (tmp_path / "copy.tar").read_bytes()
    restore(tmp_path / "copy.tar", tmp_path / "new")
    there = tmp_path / "new" / "workspaces" / "s1"
    names = sorted(["kept", ODD, "link", "dangling", "run", "sub"])
    assert sorted(path.name for path in there.iterdir()) == names
    assert ((there / ODD).read_text(), (there / "link").readlink()) == ("odd", outside)
    assert (there / "dangling").readlink() == Path(ODD)
    assert (there / "run").stat().st_mode & 0o7777 == 0o755


def test_a_deep_folder_costs_itself_and_nothing_else(data: Path, workspace: Path, tmp_path: Path) -> None:
    make_deep(workspace, 1500)
    (data / "workspaces" / "s2").mkdir()
    (data / "workspaces" / "s2" / "other").write_text("other")
    before = count_descriptors()
    made = back_up(data)
    assert count_descriptors() == before
    (left_out,) = made.left_out.items()
    assert left_out == ("workspaces/s1/" + "/".join("d" * 257), "it is more than 256 folders deep")
    restore(tmp_path / "copy.tar", tmp_path / "new")
    there = tmp_path / "new" / "workspaces"
    assert ((there / "s1/kept").read_text(), (there / "s2/other").read_text()) == ("kept", "other")


def test_the_command_names_what_it_left_out_and_its_exit_code_says_so(data: Path, workspace: Path) -> None:
    (workspace / ("two\nlines" + ODD)).write_text("too much")
    file = data.parent / "copy.tar.gz"
    line = [sys.executable, "-m", "clawdforge", "backup", str(file), "--data-dir", str(data)]
    done = subprocess.run([*line, "--max-workspace-bytes", "4"], capture_output=True, check=False)
    assert (done.returncode, file.exists()) == (8, True)
    assert b"left out: 'workspaces/s1/two\\nlines" in done.stderr
    assert b"but for 1 files" in done.stderr


def test_what_is_too_large_is_left_out_and_named(data: Path, workspace: Path) -> None:
    with (workspace / "sparse").open("wb") as file:
        file.truncate(3 << 40)
    (workspace / "a-large").write_bytes(os.urandom(5000))
    (workspace / "zz-small").write_text("x" * 50)
    made = back_up(data, max_workspace_bytes=1000)
    assert sorted(made.left_out) == ["workspaces/s1/a-large", "workspaces/s1/sparse"]
    assert "--max-workspace-bytes" in made.left_out["workspaces/s1/a-large"]
    assert "sparse" in made.left_out["workspaces/s1/sparse"]
    assert made.bytes < 1 << 20


def test_a_workspace_that_is_a_link_is_not_followed(data: Path, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("CANARY")
    (workspace.parent / "s2").symlink_to(tmp_path / "outside")
    made = back_up(data)
    assert list(made.left_out) == ["workspaces/s2"]
    assert b"CANARY" not in (tmp_path / "copy.tar").read_bytes()


def test_a_folder_that_is_swapped_during_a_backup_leads_nowhere(tmp_path: Path) -> None:
    """Run until the folder was met at least once, and once was not."""
    (top := tmp_path / "top").mkdir()
    counts: set[int] = set()
    with swapped_folder(top, tmp_path):
        for number in range(2000):
            file = tmp_path / f"{number}.tar"
            with create_archive(file, ignore_progress) as archive:
                archive.add_tree("workspaces/s1", top, TreeLimits(1 << 20))
            assert CANARY.encode() not in file.read_bytes()
            with tarfile.open(file) as tar:
                counts.add(len(tar.getmembers()))
            file.unlink()
            if len(counts) > 1 and number >= 50:
                break
    assert len(counts) > 1, "it was never swapped in time: this shows nothing"
