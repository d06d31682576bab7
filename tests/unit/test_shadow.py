"""Trees of a workspace beside it: what is kept, what is put back, and what is left alone."""

import shutil
from pathlib import Path

import pytest

from clawdforge.drivers.folders import git_shadow as module
from clawdforge.drivers.folders.git_shadow import EMPTY_TREE, NoSnapshot, Shadow

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="needs git")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def shadow(tmp_path: Path, work: Path) -> Shadow:
    return Shadow(tmp_path / "shadow", work, GIT or "git")


def test_an_empty_workspace_costs_no_git(tmp_path: Path, work: Path) -> None:
    shadow = Shadow(tmp_path / "shadow", work, "/nonexistent/git")
    assert not shadow.has_turns()
    assert shadow.record_turn(0) == EMPTY_TREE
    assert shadow.has_turns()
    assert shadow.find_turn(0) == EMPTY_TREE
    shadow.restore(EMPTY_TREE)
    (work / "a").write_text("x")
    with pytest.raises(NoSnapshot, match="git could not be run"):
        shadow.record_turn(1)


def test_everything_git_can_keep_comes_back(shadow: Shadow, work: Path) -> None:
    shadow.record_turn(0)
    (work / "sub").mkdir()
    (work / "sub" / "a b\n\xff.txt").write_bytes(b"\0\r\n\xff")
    (work / "run").write_text("#!/bin/sh\n")
    (work / "run").chmod(0o755)
    (work / "link").symlink_to("/nowhere")
    tree = shadow.record_turn(1)
    assert shadow.record_turn(2) == tree
    shutil.rmtree(work / "sub")
    (work / "sub").write_text("now a file")
    (work / "link").unlink()
    (work / "link").mkdir()
    (work / "link" / "x").write_text("now a folder")
    kept = shadow.record_present()
    shadow.restore(tree)
    assert (work / "sub" / "a b\n\xff.txt").read_bytes() == b"\0\r\n\xff"
    assert (work / "run").stat().st_mode & 0o777 == 0o755
    assert str((work / "link").readlink()) == "/nowhere"
    shadow.restore(kept)
    assert (work / "sub").read_text() == "now a file"
    shadow.restore(EMPTY_TREE)
    assert list(work.iterdir()) == []
    assert shadow.write_tree() == EMPTY_TREE


def test_a_restore_that_was_killed_is_finished_by_the_next(
    shadow: Shadow, work: Path, tmp_path: Path
) -> None:
    for name in "abc":
        (work / name).write_text("old")
    tree = shadow.record_turn(1)
    for name in "abc":
        (work / name).write_text("newer")
    shadow.record_present()
    (work / "a").write_text("old")
    (work / "b").unlink()
    (tmp_path / "shadow" / "index.lock").write_text("left behind")
    shadow.restore(tree)
    assert [(work / name).read_text() for name in "abc"] == ["old"] * 3


def test_hooks_filters_and_settings_of_the_workspace_do_nothing(
    shadow: Shadow, work: Path, tmp_path: Path
) -> None:
    witness = tmp_path / "witness"
    (work / ".gitattributes").write_text("* filter=evil ident text\n")
    (work / ".git").mkdir()
    evil = f'[filter "evil"]\n\tclean = touch {witness}; cat\n\tsmudge = touch {witness}; cat\n'
    (work / ".git" / "config").write_text(f"{evil}[core]\n\tfsmonitor = touch {witness}\n")
    (work / "a").write_bytes(b"$Id$\r\n")
    tree = shadow.record_turn(1)
    (work / "a").unlink()
    shadow.record_present()
    shadow.restore(tree)
    assert (work / "a").read_bytes() == b"$Id$\r\n"
    assert not witness.exists()


def test_it_is_bounded(shadow: Shadow, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (work / str(number)).write_text("x" * 10)
    monkeypatch.setattr(module, "MAX_PATHS", 4)
    with pytest.raises(NoSnapshot, match="files have changed"):
        shadow.record_turn(1)
    monkeypatch.setattr(module, "MAX_PATHS", 10)
    monkeypatch.setattr(module, "MAX_BYTES", 40)
    with pytest.raises(NoSnapshot, match="bytes have changed"):
        shadow.record_turn(1)
    monkeypatch.setattr(module, "MAX_BYTES", 400)
    monkeypatch.setattr(module, "MAX_TURNS", 3)
    for turn in range(1, 9):
        (work / "0").write_text(f"turn {turn}")
        shadow.record_turn(turn)
    assert [turn for turn in range(9) if shadow.find_turn(turn)] == [5, 6, 7, 8]
    first = shadow.find_turn(5)
    assert first is not None
    shadow.restore(first)
    assert (work / "0").read_text() == "turn 5"


def test_a_torn_name_is_no_tree(shadow: Shadow, work: Path, tmp_path: Path) -> None:
    (work / "a").write_text("x")
    shadow.record_turn(1)
    (tmp_path / "shadow" / "refs" / "turns" / "1").write_text("4b82")
    assert shadow.find_turn(1) is None
    with pytest.raises(NoSnapshot, match="not the name"):
        shadow.restore("--help")
