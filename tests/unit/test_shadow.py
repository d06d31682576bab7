"""Trees of a workspace beside it: what is kept, what is put back, and what is left alone."""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clawdforge.drivers.folders import git_shadow as module
from clawdforge.drivers.folders import recorded_turns
from clawdforge.drivers.folders.git_shadow import NoSnapshot, Shadow
from clawdforge.drivers.folders.recorded_turns import EMPTY_TREE, list_recorded
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.drivers.processes.walls import NO_WALLS, find_walls
from tests.needs import needs

GIT = shutil.which("git")
FILES = 300
pytestmark = pytest.mark.skipif(GIT is None, reason="needs git")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


FORMS = [
    "alone",
    pytest.param("contained", marks=needs("bwrap")),
    pytest.param("walled", marks=needs("landlock")),
]


def make_helpers(form: str) -> Helpers:
    bwrap = shutil.which("bwrap") if form == "contained" else None
    return Helpers(bwrap, find_walls() if form == "walled" else NO_WALLS)


@pytest.fixture(params=FORMS)
def helpers(request: pytest.FixtureRequest) -> Helpers:
    return make_helpers(request.param)


@pytest.fixture
def shadow(tmp_path: Path, work: Path, helpers: Helpers) -> Shadow:
    return Shadow(tmp_path / "shadow", work, GIT or "git", helpers)


def test_an_empty_workspace_costs_no_git(tmp_path: Path, work: Path, helpers: Helpers) -> None:
    shadow = Shadow(tmp_path / "shadow", work, "/nonexistent/git", helpers)
    assert not shadow.has_turns()
    assert shadow.record_turn(0) == EMPTY_TREE
    assert shadow.has_turns()
    assert shadow.find_turn(0) == EMPTY_TREE
    shadow.restore(EMPTY_TREE)
    (work / "a").write_text("x")
    with pytest.raises(NoSnapshot, match="git"):
        shadow.record_turn(1)


def test_turns_before_the_first_file_are_known_after_it_and_in_forks(
    shadow: Shadow, tmp_path: Path, work: Path, helpers: Helpers
) -> None:
    for turn in (0, 1, 2):
        assert shadow.record_turn(turn) == EMPTY_TREE
    early, late = tmp_path / "early", tmp_path / "late"
    shadow.copy_to(early, 1)
    (work / "a").write_text("x")
    tree = shadow.record_turn(3)
    (work / "a").unlink()
    assert shadow.record_turn(4) == EMPTY_TREE
    shadow.copy_to(late, 3)
    assert [shadow.find_turn(turn) for turn in range(6)] == [*[EMPTY_TREE] * 3, tree, EMPTY_TREE, None]
    assert (list_recorded(early), list_recorded(late)) == ([0, 1], [0, 1, 2, 3])
    assert Shadow(late, work, GIT or "git", helpers).find_turn(3) == tree
    shadow.restore(tree)
    shadow.restore(EMPTY_TREE)
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("left", [b"\n\0\0", b"\n3", b"\n", b"."])
def test_a_line_that_was_cut_off_is_no_other_turn_and_spoils_none(
    shadow: Shadow, tmp_path: Path, left: bytes
) -> None:
    """By a loss of power or a full disk: of the line of turn 31, say, only its first digit is there."""
    shadow.record_turn(1)
    with (tmp_path / "shadow" / "empty").open("ab") as file:
        file.write(left)
    shadow.record_turn(2)
    assert list_recorded(tmp_path / "shadow") == [1, 2]


def test_the_list_of_turns_that_left_nothing_is_bounded(
    shadow: Shadow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_turns, "MAX_TURNS", 3)
    monkeypatch.setattr(recorded_turns, "PRUNE_EVERY", 4)
    for turn in range(1, 9):
        shadow.record_turn(turn)
    assert list_recorded(tmp_path / "shadow") == [1, 6, 7, 8]


def test_a_turn_takes_one_sandbox_and_one_more_where_files_have_changed(
    shadow: Shadow, work: Path, helpers: Helpers, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    real = helpers.run

    def run(command: Sequence[str], *given: Any, **more: Any) -> bytes:
        runs.append(next(word for word in command[1:] if not word.startswith(("-c", "core."))))
        return real(command, *given, **more)

    monkeypatch.setattr(helpers, "run", run)
    (work / "a b").write_text("x")
    first = shadow.record_turn(1)
    assert runs == ["ls-files", "update-index"]
    assert shadow.record_turn(2) == first
    assert runs == ["ls-files", "update-index", "ls-files"]
    (work / "a b").write_text("y, and longer")
    assert shadow.record_present() != first
    assert runs[3:] == ["ls-files", "update-index"]


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
    monkeypatch.setattr(recorded_turns, "MAX_TURNS", 3)
    monkeypatch.setattr(module, "PRUNE_EVERY", 1)
    monkeypatch.setattr(module, "TIDY_EVERY", 1)
    for turn in range(1, 9):
        (work / "0").write_text(f"turn {turn}")
        shadow.record_turn(turn)
    assert [turn for turn in range(9) if shadow.find_turn(turn)] == [1, 6, 7, 8]
    first = shadow.find_turn(6)
    assert first is not None
    shadow.restore(first)
    assert (work / "0").read_text() == "turn 6"


def test_a_torn_name_is_no_tree(shadow: Shadow, work: Path, tmp_path: Path) -> None:
    (work / "a").write_text("x")
    shadow.record_turn(1)
    (tmp_path / "shadow" / "refs" / "turns" / "1").write_text("4b82")
    assert shadow.find_turn(1) is None
    with pytest.raises(NoSnapshot, match="not the name"):
        shadow.restore("--help")


def test_a_fifo_for_a_list_of_exclusions_is_not_waited_for(
    shadow: Shadow, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / ".git" / "info").mkdir(parents=True)
    os.mkfifo(work / ".git" / "info" / "exclude")
    (work / "a").write_text("x")
    monkeypatch.setattr(module, "GIT_SECS", 10.0)
    assert shadow.record_turn(1) != EMPTY_TREE


def test_exclusions_of_the_workspaces_own_repository_count(shadow: Shadow, work: Path) -> None:
    (work / ".git" / "info").mkdir(parents=True)
    (work / ".git" / "info" / "exclude").write_text("*.log\n")
    (work / "a.log").write_text("x")
    (work / "b").write_text("x")
    tree = shadow.record_turn(1)
    (work / "a.log").write_text("y")
    (work / "b").write_text("y")
    shadow.restore(tree)
    assert ((work / "a.log").read_text(), (work / "b").read_text()) == ("y", "x")


SWAPPER = """
import ctypes, os, sys
folder, link = (os.fsencode(word) for word in sys.argv[1:])
while True:  # exchanged in one step: there is always something of that name
    ctypes.CDLL(None).renameat2(-100, folder, -100, link, 2)
"""


@pytest.mark.parametrize("form", FORMS)
def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(tmp_path: Path, work: Path, form: str) -> None:
    """An agent swaps a folder of its workspace for a link to the data folder while git is at work.

    Without the sandbox the same race reaches the canary in one round of six: so this test can fail.
    """
    data, inside = tmp_path / "data", work / "folder"
    for folder, words in ((data, "CANARY"), (inside, "mine")):
        folder.mkdir()
        for number in range(FILES):
            (folder / str(number)).write_text(words)
    link = tmp_path / "link"
    link.symlink_to(data)
    helpers, rounds = make_helpers(form), 150 if form == "alone" else 40
    with subprocess.Popen([sys.executable, "-c", SWAPPER, str(inside), str(link)]) as swapper:
        try:
            shadows = (tmp_path / f"shadow{number}" for number in range(rounds))
            reached = any(_reaches_canary(Shadow(folder, work, GIT or "git", helpers)) for folder in shadows)
        finally:
            swapper.kill()
    assert reached is (form == "alone")


def _reaches_canary(shadow: Shadow) -> bool:
    with contextlib.suppress(NoSnapshot, OSError):
        shadow.record_turn(1)
    name = hashlib.sha1(b"blob 6\0CANARY").hexdigest()  # noqa: S324 - how git names what it stores
    return (shadow._folder / "objects" / name[:2] / name[2:]).exists()
