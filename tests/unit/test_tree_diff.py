"""What changed between two trees: every kind of file, whatever its name, within bounds, and no more."""

import asyncio
import os
import shutil
import threading
from pathlib import Path

import pytest

from clawdforge.core.models.file_changes import FileChange
from clawdforge.core.ports.trees import TreesUnread
from clawdforge.drivers.folders import trees
from clawdforge.drivers.folders.git_shadow import Shadow
from clawdforge.drivers.folders.recorded_turns import EMPTY_TREE
from clawdforge.drivers.folders.tree_diff import MAX_DIFF, MAX_FILES, find_pair, read_changes, read_diff
from clawdforge.drivers.folders.trees import AT_ONCE, Trees
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.wire.turn_changes import ChangeStatus
from tests.unit.rpc_peer import until
from tests.unit.test_shadow import FORMS, make_helpers

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="needs git")
LINES = "".join(f"line {n}\n" for n in range(40))
RAW = b":100644 100644 1111111 2222222 M\0"
ODD = os.fsdecode(b'new\nline \xff \xed\xa0\x80 *?[a]\t"q" \\')
SHOWN = 'new\nline \\xff \\xed\\xa0\\x80 *?[a]\t"q" \\'


class Place:
    """A workspace with its recorded trees, and what compares them."""

    def __init__(self, folder: Path, helpers: Helpers) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.shadow = Shadow(folder / "data" / "shadows" / "s", self.work, GIT or "git", helpers)
        self.trees = Trees(folder / "data", helpers)

    def tree(self, turn: int) -> str:
        return self.shadow.find_turn(turn) or ""

    async def changes(self, old: int, new: int) -> dict[str, FileChange]:
        found = await self.trees.compare("a", "s", self.tree(old), self.tree(new))
        return {one.path: one for one in found.files}

    async def diff(self, old: int, new: int, path: str) -> str:
        found = await self.trees.diff("a", "s", self.tree(old), self.tree(new), path)
        assert found is not None
        return found.diff


@pytest.fixture(params=FORMS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, make_helpers(request.param))


@pytest.fixture
def plain(tmp_path: Path) -> Place:
    return Place(tmp_path, Helpers(None))


async def test_every_kind_of_change_is_told(place: Place) -> None:
    place.shadow.record_turn(0)
    for name in ("kept", "changed", "gone", "moved"):
        (place.work / name).write_text(f"{name}\n{LINES}")
    (place.work / "folder").mkdir()
    (place.work / "folder" / "in").write_text("in\n")
    (place.work / "link").symlink_to("kept")
    place.shadow.record_turn(1)
    assert {one.status for one in (await place.changes(0, 1)).values()} == {ChangeStatus.ADDED}
    (place.work / "changed").write_text(f"changed\n{LINES}one more\nand another\n")
    (place.work / "gone").unlink()
    (place.work / "moved").rename(place.work / "there")
    shutil.rmtree(place.work / "folder")
    (place.work / "folder").write_text("a file now\n")
    (place.work / "link").unlink()
    (place.work / "link").write_text("no link\n")
    (place.work / "binary").write_bytes(bytes(range(256)))
    (place.work / ODD).write_text("odd\n")
    place.shadow.record_turn(2)
    found = await place.changes(1, 2)
    told = {path: (one.status.value, one.added, one.removed) for path, one in found.items()}
    assert told == {
        "changed": ("modified", 2, 0),
        "gone": ("deleted", 0, 41),
        "there": ("renamed", 0, 0),
        "folder/in": ("deleted", 0, 1),
        "folder": ("added", 1, 0),
        "link": ("modified", 1, 1),
        "binary": ("added", 0, 0),
        SHOWN: ("added", 1, 0),
    }
    assert found["there"].old_path == "moved"
    assert [path for path, one in found.items() if one.binary] == ["binary"]
    assert "+and another\n" in await place.diff(1, 2, "changed")
    assert (await place.diff(1, 2, SHOWN)).endswith("@@ -0,0 +1 @@\n+odd\n")
    folder = await place.diff(1, 2, "folder")
    assert "+a file now" in folder
    assert "-in" not in folder
    assert await place.diff(1, 2, "there") == ""
    assert await place.diff(1, 2, "binary") == ""
    assert await place.trees.diff("a", "s", EMPTY_TREE, place.tree(1), "there") is None


async def test_a_name_that_looks_like_a_pattern_or_an_option_is_that_file_alone(plain: Place) -> None:
    for name in ("*", "a", "--output=x", ":(top)a", "\\xff"):
        (plain.work / name).write_text(f"{name}\n")
    plain.shadow.record_turn(1)
    (plain.work / "empty").write_text("")
    for name in ("*", "a", "--output=x", ":(top)a", "\\xff", os.fsdecode(b"\xff")):
        (plain.work / name).write_text(f"{os.fsencode(name)!r} changed\n")
    plain.shadow.record_turn(2)
    for name in ("*", "a", "--output=x", ":(top)a"):
        diff = await plain.diff(1, 2, name)
        assert (diff.count("diff --git"), f"\n-{name}\n" in diff) == (1, True)
    assert "\n-\\xff\n" in await plain.diff(1, 2, "\\xff"), "the file that is really called so"
    assert not (plain.work / "x").exists()


async def test_a_long_diff_is_cut_after_a_whole_line(plain: Place) -> None:
    line = "x" * 99 + "\n"
    plain.shadow.record_turn(0)
    (plain.work / "long").write_text(line * (MAX_DIFF // 50))
    (plain.work / "short").write_text(line)
    plain.shadow.record_turn(1)
    found = await plain.trees.diff("a", "s", plain.tree(0), plain.tree(1), "long")
    assert found is not None
    assert found.truncated
    assert MAX_DIFF - 200 < len(found.diff) <= MAX_DIFF
    assert found.diff.endswith("x\n")
    short = await plain.trees.diff("a", "s", plain.tree(0), plain.tree(1), "short")
    assert short is not None
    assert not short.truncated


def test_a_diff_is_whole_up_to_its_bound() -> None:
    head = b"--- a\n+++ b\n@@ -1 +1 @@\n+"
    for size, is_cut in ((MAX_DIFF - 1, False), (MAX_DIFF, False), (MAX_DIFF + 1, True)):
        assert read_diff(head + b"x" * (size - len(head) - 1) + b"\n").truncated is is_cut


def test_a_list_has_so_many_files_and_says_when_there_are_more() -> None:
    def printed(count: int) -> bytes:
        names = [str(n).encode() for n in range(count)]
        return b"".join(RAW + n + b"\0" for n in names) + b"".join(b"1\t2\t" + n + b"\0" for n in names)

    for count, is_cut in ((MAX_FILES - 1, False), (MAX_FILES, False), (MAX_FILES + 1, True)):
        found = read_changes(printed(count))
        assert (len(found.files), found.truncated) == (min(count, MAX_FILES), is_cut)
        assert {(one.added, one.removed) for one in found.files} == {(1, 2)}
    for end in range(len(printed(3))):
        cut = read_changes(printed(3)[:end])
        assert len(cut.files) <= 3
        assert cut.truncated or not cut.files
    assert find_pair(printed(3), "2") is not None
    assert find_pair(printed(3), "3") is None


async def test_a_tree_that_is_gone_is_said_to_be(plain: Place) -> None:
    (plain.work / "a").write_text("x")
    tree = plain.shadow.record_turn(1)
    with pytest.raises(TreesUnread, match="bad object"):
        await plain.trees.compare("a", "s", "1" * 40, tree)
    assert await plain.trees.find("s", 9) is None
    assert await plain.trees.find_oldest("unknown") is None
    with pytest.raises(TreesUnread, match="gone"):
        await plain.trees.compare("a", "unknown", EMPTY_TREE, tree)


async def test_few_are_compared_at_a_time_and_apps_take_turns(
    plain: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    begun: list[str] = []

    def wait(_self: Trees, session_id: str, *_words: object) -> bytes:
        begun.append(session_id)
        assert over.wait(60)
        return b""

    monkeypatch.setattr(trees.Trees, "_run", wait)
    many = [asyncio.create_task(plain.trees.compare("many", f"m{n}", "a", "b")) for n in range(6)]
    await until(lambda: len(begun) == AT_ONCE)
    one = asyncio.create_task(plain.trees.compare("one", "one", "a", "b"))
    await asyncio.sleep(0)
    assert len(begun) == AT_ONCE
    over.set()
    await asyncio.gather(*many, one)
    assert begun.index("one") <= AT_ONCE + 1, "it did not wait for the whole crowd"


async def test_the_first_tree_is_kept_and_a_fork_gets_none_of_later_turns(
    plain: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawdforge.drivers.folders.recorded_turns.MAX_TURNS", 2)
    for turn in range(8):
        (plain.work / "a").write_text(f"{turn}\n")
        plain.shadow.record_turn(turn)
    oldest = await plain.trees.find_oldest("s")
    assert oldest is not None
    assert oldest[0] == 0
    assert "-0\n+7\n" in await plain.diff(0, 7, "a")
    plain.shadow.note_missing(7, "too large")
    plain.shadow.copy_to(tmp_path / "data" / "shadows" / "fork", 6)
    assert await plain.trees.find("fork", 6) == plain.shadow.find_turn(6)
    assert await plain.trees.find("fork", 7) is None
    assert await plain.trees.explain_missing("fork", 7) is None
    assert await plain.trees.find_begun("fork") == plain.shadow.find_turn(7)
    assert await plain.trees.find_begun("s") is None
