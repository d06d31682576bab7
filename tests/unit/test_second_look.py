"""A home that stands still is copied while its agent may run; one that moves, while the agent is stopped."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from clawdforge.core import ports
from clawdforge.drivers.folders import home_copies, second_look, tree_walk
from clawdforge.drivers.folders.home_copies import FEW_ENTRIES, SMALL_BYTES, Copies
from clawdforge.drivers.folders.home_manifest import RACY_NANOSECONDS, Manifest
from clawdforge.drivers.folders.second_look import SecondLook
from clawdforge.drivers.folders.tree_walk import _list_names, open_file
from tests.unit.contained import SESSION
from tests.unit.homes_bench import AGENT, homes_on, kept, objects, tree


class Live:
    """Stands for a live agent, and counts how often it is stopped."""

    stops = 0

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        self.stops += 1
        yield


def as_agent(live: Live) -> ports.LiveAgent:
    return cast("ports.LiveAgent", live)


def write_again(home: Path) -> None:
    (home / "log").write_text("two")


def swap_for_link(home: Path) -> None:
    (home / "log").unlink()
    (home / "log").symlink_to("/etc/passwd")


def swap_folder_for_link(home: Path) -> None:
    (home / "deep" / "er").unlink()
    (home / "deep").rmdir()
    (home / "deep").symlink_to("/etc")


def point_elsewhere(home: Path) -> None:
    (home / "way").unlink()
    (home / "way").symlink_to("log2")


def write_in_the_middle(home: Path) -> None:
    with (home / "long").open("r+b") as file:
        file.seek(LONG // 2)
        file.write(b"x")


LONG = 20 * SMALL_BYTES
"""More than is copied at once, and as much as the log of an agent soon is."""
OLD = 2 * RACY_NANOSECONDS
CHANGES: dict[str, Callable[[Path], object]] = {
    "written": write_again,
    "added": lambda home: (home / "zz").write_text("x"),
    "added below": lambda home: (home / "deep" / "zz").write_text("x"),
    "removed": lambda home: (home / "zlast").unlink(),
    "swapped": swap_for_link,
    "folder swapped": swap_folder_for_link,
    "link": point_elsewhere,
    "mode": lambda home: (home / "log").chmod(0o640),
    "gone": lambda home: home.rename(home.with_name("elsewhere")),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    found = tmp_path / "home"
    (found / "deep").mkdir(parents=True)
    for name in ("log", "deep/er", "zlast"):
        (found / name).write_text("one")
    (found / "way").symlink_to("log1")
    return found


@pytest.fixture
def copies(tmp_path: Path, home: Path) -> Copies:
    found = Copies(tmp_path / "copies", max_copies=5, max_bytes=1 << 20, excluded=())
    found.take(home, 1, "a", threading.Event())
    return found


async def test_an_agent_that_stands_still_is_not_stopped(tmp_path: Path) -> None:
    live = Live()
    async with homes_on(tmp_path) as homes:
        home = await homes.prepare(SESSION, AGENT)
        (home / "log").write_text("one")
        await homes.copy_home(SESSION, 1, "agent-1", as_agent(live))
        assert live.stops == 0, "what is copied is looked at twice, whether or not there was a copy"
        (home / "log").write_text("two")
        before = tree(home)
        await homes.copy_home(SESSION, 2, "agent-2", as_agent(live))
        assert live.stops == 0
        token = home / ".agent" / "token.json"
        token.unlink()
        token.write_text("refreshed")
        await homes.copy_home(SESSION, 3, "agent-3", as_agent(live))
        assert live.stops == 1, "a credential was replaced"
        assert token.is_symlink()
        assert await homes.restore(SESSION, 2) == "agent-2"
        assert tree(home) == before


@pytest.mark.parametrize("change", CHANGES)
def test_what_moves_during_the_copy_is_seen(
    copies: Copies, home: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    look = SecondLook.is_same

    def move_and_look(self: SecondLook, home: Path, copied: Manifest, skipped: frozenset[str]) -> bool:
        CHANGES[change](home)
        return look(self, home, copied, skipped)

    assert copies.take_beside(home, 2, "a", threading.Event()) is not None
    before = sorted(path.name for path in home.parent.rglob("copies/files/*"))
    monkeypatch.setattr(SecondLook, "is_same", move_and_look)
    assert copies.take_beside(home, 3, "a", threading.Event()) is None
    assert copies.turns() == [1, 2]
    assert sorted(path.name for path in home.parent.rglob("copies/files/*")) == before, "nothing is left"


@pytest.mark.parametrize("is_first", [True, False])
def test_what_vanishes_while_it_is_copied_is_left_to_the_copy_of_a_stopped_agent(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    """Programs write a file beside the one that they replace, all the time."""
    copies = Copies(tmp_path / "some", max_copies=5, max_bytes=1 << 20, excluded=())
    if not is_first:
        copies.take(home, 1, "a", threading.Event())
    (home / "log").write_text("new")

    def rename_first(name: Path | str, parent: int | None = None) -> Any:
        os.unlink(name, dir_fd=parent)
        return open_file(name, parent)

    monkeypatch.setattr(home_copies, "open_file", rename_first)
    assert copies.take_beside(home, 2, "a", threading.Event()) is None
    assert copies.turns() == ([] if is_first else [1])
    monkeypatch.undo()
    assert copies.take(home, 2, "a", threading.Event()).turn == 2


@pytest.mark.parametrize("change", [write_again, point_elsewhere, write_in_the_middle])
def test_times_that_are_too_coarse_do_not_hide_a_change(
    copies: Copies, home: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    look = SecondLook.is_same

    def move_and_look(self: SecondLook, home: Path, copied: Manifest, skipped: frozenset[str]) -> bool:
        change(home)
        return look(self, home, copied, skipped)

    (home / "long").write_bytes(bytes(LONG))
    monkeypatch.setattr(second_look, "_marks", lambda _info: (0,))
    monkeypatch.setattr("clawdforge.drivers.folders.home_manifest.RACY_NANOSECONDS", 1 << 60)
    assert copies.take_beside(home, 2, "a", threading.Event()) is not None
    monkeypatch.setattr(SecondLook, "is_same", move_and_look)
    assert copies.take_beside(home, 3, "a", threading.Event()) is None


@pytest.mark.parametrize("before_ns", [0, RACY_NANOSECONDS, RACY_NANOSECONDS + 1])
def test_a_folder_is_listed_again_unless_its_time_is_clearly_older_than_the_copy(
    copies: Copies, home: Path, monkeypatch: pytest.MonkeyPatch, before_ns: int
) -> None:
    """A change in the tick in which the copy began leaves the time that was seen before."""
    look = SecondLook.is_same

    def add_and_look(self: SecondLook, home: Path, copied: Manifest, skipped: frozenset[str]) -> bool:
        (home / "deep" / "zz").write_text("x")
        begun = replace(copied, taken_at=(home / "deep").stat().st_ctime_ns + before_ns)
        return look(self, home, begun, skipped)

    monkeypatch.setattr(second_look, "_marks", lambda _info: (0,))
    monkeypatch.setattr(SecondLook, "is_same", add_and_look)
    is_listed = copies.take_beside(home, 2, "a", threading.Event()) is None
    assert is_listed is (before_ns <= RACY_NANOSECONDS)


def test_only_a_folder_that_has_just_changed_is_listed_twice(
    copies: Copies, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []

    def list_names(folder: int, most: int) -> list[str] | None:
        listed.append(str(Path(f"/proc/self/fd/{folder}").readlink().relative_to(home)))
        return _list_names(folder, most)

    monkeypatch.setattr(tree_walk, "_list_names", list_names)
    while time.time_ns() < max(path.stat().st_ctime_ns for path in (home, home / "deep")) + OLD:
        time.sleep(0.01)
    (home / "log").write_text("two")
    assert copies.take_beside(home, 2, "a", threading.Event()) is not None
    assert listed == [".", "deep"]
    (home / "deep" / "new").write_text("x")
    listed.clear()
    assert copies.take_beside(home, 3, "a", threading.Event()) is not None
    assert listed == [".", "deep", "deep"]


@pytest.mark.parametrize("more", [0, 1])
def test_a_home_with_many_files_is_copied_while_its_agent_stands_still(
    copies: Copies, home: Path, more: int
) -> None:
    there = sum(1 for _ in home.rglob("*"))
    for number in range(FEW_ENTRIES - there + more):
        (home / f"many{number}").write_text("x")
    copies.take(home, 2, "a", threading.Event())
    beside = copies.take_beside(home, 3, "a", threading.Event())
    assert (beside is None) is bool(more)


@pytest.mark.parametrize("more", [0, 1])
def test_more_than_can_be_compared_is_copied_while_its_agent_stands_still(
    copies: Copies, home: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    compared = sum(os.lstat(path).st_size for path in home.rglob("*") if path.is_symlink() or path.is_file())
    monkeypatch.setattr(second_look, "MOST_BYTES", compared - more)
    monkeypatch.setattr("clawdforge.drivers.folders.home_manifest.RACY_NANOSECONDS", 1 << 60)
    beside = copies.take_beside(home, 2, "a", threading.Event())
    assert (beside is None) is bool(more)


@pytest.mark.parametrize("more", [0, 1])
def test_a_first_copy_of_much_is_not_tried_beside_the_agent(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    size = sum(os.lstat(path).st_size for path in home.rglob("*") if path.is_symlink() or path.is_file())
    for name, most in (("many", sum(1 for _ in home.rglob("*"))), ("much", size)):
        monkeypatch.setattr(home_copies, "FEW_ENTRIES", most - more if name == "many" else FEW_ENTRIES)
        monkeypatch.setattr(second_look, "MOST_BYTES", most - more if name == "much" else 1 << 20)
        copies = Copies(tmp_path / name, max_copies=5, max_bytes=1 << 20, excluded=())
        assert (copies.take_beside(home, 1, "a", threading.Event()) is None) is bool(more)
        assert (list((tmp_path / name / "files").iterdir()) == []) is bool(more), "nothing is left of a try"


def test_a_copy_that_has_to_be_read_first_is_not_taken_beside_the_agent(
    tmp_path: Path, copies: Copies, home: Path
) -> None:
    """As after a restart: else all that it has would be copied again."""
    again = Copies(tmp_path / "copies", max_copies=5, max_bytes=1 << 20, excluded=())
    assert copies.turns() == again.turns() == [1]
    assert again.take_beside(home, 2, "a", threading.Event()) is None


def test_a_long_file_that_was_just_added_to_needs_no_stop(
    copies: Copies, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every agent's own log is after a turn: its contents are compared like those of short ones."""
    monkeypatch.setattr("clawdforge.drivers.folders.home_manifest.RACY_NANOSECONDS", 1 << 60)
    for turn in (2, 3):
        with (home / "log").open("ab") as log:
            log.write(os.urandom(4 * SMALL_BYTES))
        assert copies.take_beside(home, turn, "a", threading.Event()) is not None
    whole = copies.load(3)
    assert whole is not None
    assert copies.build(whole, home.parent / "again")
    assert (home.parent / "again" / "log").read_bytes() == (home / "log").read_bytes()


async def test_a_copy_is_there_for_whoever_comes_after_a_kill(tmp_path: Path) -> None:
    """It is not on stable storage yet, but whole."""
    async with homes_on(tmp_path) as homes:
        home = await homes.prepare(SESSION, AGENT)
        (home / "log").write_text("one")
        await kept(homes, 1)
        (home / "log").write_text("two")
        await homes.copy_home(SESSION, 2, "agent-2", None)
        there = objects(tmp_path / "data")
        other = type(homes)(tmp_path / "data", operator_home=tmp_path / "operator", max_copies=5)
        other.clean_up_unfinished()
        assert objects(tmp_path / "data") == there
        assert await other.restore(SESSION, 2) == "agent-2"
        assert (home / "log").read_text() == "two"
