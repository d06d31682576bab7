"""Whose the files of sessions are: trees that change hands, and credentials that two users share."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from clawdforge.drivers.folders import app_credentials, ownership
from clawdforge.drivers.folders.ownership import disown, give_tree, keeping_owner
from clawdforge.drivers.folders.tree_walk import Limits
from clawdforge.drivers.processes.users import User
from clawdforge.wire.errors import AgentStartFailed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
USER, OTHER = User(1_900_000_001, 1_900_000_001), User(1_900_000_002, 1_900_000_002)


def owners(folder: Path) -> set[tuple[int, int]]:
    return {(info.st_uid, info.st_gid) for info in (path.lstat() for path in (folder, *folder.rglob("*")))}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("x")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "hanging").symlink_to("nowhere")
    (tmp_path / "outside").write_text("not yours")
    return folder


def test_a_tree_changes_hands_and_nothing_outside_does(tree: Path, tmp_path: Path) -> None:
    give_tree(tree, USER)
    assert owners(tree) == {(USER.uid, USER.gid)}
    give_tree(tree, OTHER)
    assert owners(tree) == {(OTHER.uid, OTHER.gid)}
    assert (tmp_path / "outside").stat().st_uid == 0


def test_files_with_several_names_are_given_only_if_all_are_inside(tree: Path, tmp_path: Path) -> None:
    (tree / "one").write_text("x")
    (tree / "a" / "two").hardlink_to(tree / "one")
    (tree / "trap").hardlink_to(tmp_path / "outside")
    give_tree(tree, USER)
    assert (tree / "one").stat().st_uid == USER.uid
    assert (tmp_path / "outside").stat().st_uid == 0


def test_a_walk_that_was_cut_off_is_done_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ownership, "LIMITS", Limits(entries=4, depth=9, seconds=60))
        with pytest.raises(AgentStartFailed, match=f"chown -hR {USER.uid}"):
            give_tree(tree, USER)
    give_tree(tree, USER)
    assert owners(tree) == {(USER.uid, USER.gid)}


def test_what_the_server_writes_as_root_is_given_at_the_next_start(tree: Path) -> None:
    give_tree(tree, USER)
    disown(tree)
    assert tree.stat().st_uid == USER.uid  # another session's agent may be at work here
    (tree / "new").write_text("by root")
    give_tree(tree, USER)
    assert owners(tree) == {(USER.uid, USER.gid)}


def test_what_is_put_back_belongs_to_the_owner(tree: Path) -> None:
    give_tree(tree, USER)
    with keeping_owner(tree, ours=True):
        (tree / "restored").write_text("x")
    assert owners(tree) == {(USER.uid, USER.gid)}


def test_in_a_folder_of_the_operators_only_what_is_put_back_is_given(tree: Path) -> None:
    os.chown(tree, 1234, 1235)
    with keeping_owner(tree, ours=False):
        (tree / "a" / "restored").write_text("x")
    restored, before = (tree / "a" / "restored").stat(), (tree / "a" / "b" / "file").stat()
    assert (restored.st_uid, restored.st_gid, before.st_uid) == (1234, 1235, 0)


def test_a_restore_that_is_cut_off_shows_at_the_next_start(tree: Path) -> None:
    give_tree(tree, USER)

    def restore() -> Generator[None, None, None]:
        with keeping_owner(tree, ours=True):
            (tree / "half").write_text("x")
            yield

    steps = restore()
    next(steps)
    top = tree.stat()
    assert (top.st_uid, top.st_gid) != (USER.uid, USER.gid)
    steps.close()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    path = tmp_path / "operator" / "token.json"
    path.parent.mkdir()
    path.write_text("first")
    path.chmod(0o600)
    return path


def exchange(tmp_path: Path, shared: Path, user: User = USER) -> Path:
    ((seen, kept),) = app_credentials.exchange(tmp_path / "data", user, [shared])
    assert seen == shared
    return kept


def write(path: Path, text: str, later: int) -> None:
    """In place, as an agent does to which the file is mounted."""
    path.write_text(text)
    time = path.stat().st_mtime_ns + later * 1_000_000_000
    os.utime(path, ns=(time, time))


def test_each_user_has_its_own_copy(tmp_path: Path, shared: Path) -> None:
    one, two = exchange(tmp_path, shared), exchange(tmp_path, shared, OTHER)
    for kept, user in ((one, USER), (two, OTHER)):
        info = kept.stat()
        assert (info.st_uid, info.st_gid, info.st_mode & 0o777) == (user.uid, user.gid, 0o600)
        assert kept.read_text() == "first"
        assert kept.parent.stat().st_uid == 0


def test_the_later_one_wins_in_both_directions(tmp_path: Path, shared: Path) -> None:
    one, two = exchange(tmp_path, shared), exchange(tmp_path, shared, OTHER)
    inode = one.stat().st_ino
    write(shared, "from the operator", 10)
    exchange(tmp_path, shared)
    assert (one.read_text(), one.stat().st_ino) == ("from the operator", inode)  # it may be mounted
    write(one, "from an agent", 20)
    exchange(tmp_path, shared)
    exchange(tmp_path, shared, OTHER)
    assert (shared.read_text(), two.read_text()) == ("from an agent", "from an agent")
    info = shared.stat()
    assert (info.st_uid, info.st_mode & 0o777) == (0, 0o600)


def test_an_empty_or_huge_copy_does_not_reach_the_operator(tmp_path: Path, shared: Path) -> None:
    for bad in ("", "x" * (2 << 20)):
        kept = exchange(tmp_path, shared)
        write(kept, bad, 50)
        exchange(tmp_path, shared)
        assert (shared.read_text(), kept.read_text()) == ("first", "first")


def test_what_a_crash_leaves_of_a_copy_does_not_reach_the_operator(tmp_path: Path, shared: Path) -> None:
    kept = exchange(tmp_path, shared)
    kept.with_name(kept.name + app_credentials.UNFINISHED).touch()
    write(kept, "fir", 50)
    exchange(tmp_path, shared)
    assert (shared.read_text(), kept.read_text()) == ("first", "first")
    write(kept, "second", 50)
    exchange(tmp_path, shared)
    assert shared.read_text() == "second"
