"""Copies of homes that power took a part of, that a stranger has written, or for which there was no room."""

import json
import os
import resource
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clawdforge.drivers.folders import home_copies
from clawdforge.drivers.folders.home_copies import Copies
from clawdforge.drivers.folders.home_manifest import RACY_NANOSECONDS, Manifest, decode_objects

MIB = 1 << 20
RUNNING = threading.Event()
NAME = "0123456789ab-0"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def copies_on(tmp_path: Path, max_copies: int = 2) -> Copies:
    return Copies(tmp_path / "copies", max_copies=max_copies, max_bytes=1 << 30, excluded=())


def take(copies: Copies, home: Path, turn: int) -> Manifest:
    return copies.take(home, turn, "agent", RUNNING)


def forge(tmp_path: Path, turn: int, *entries: dict[str, object]) -> bytes:
    """A manifest as a stranger may have put it into a backup: its checksum is right."""
    body = json.dumps({"turn": turn, "agent_session_id": "agent", "taken_at": 0, "entries": entries})
    data = f"{zlib.crc32(body.encode())}\n{body}\n".encode()
    (tmp_path / "copies" / "files").mkdir(parents=True, exist_ok=True)
    (tmp_path / "copies" / f"{turn}.json").write_bytes(data)
    return data


@pytest.mark.parametrize("way", ["object", "before"])
@pytest.mark.parametrize("is_absolute", [True, False])
def test_old_copies_never_take_a_file_outside_with_them(
    home: Path, tmp_path: Path, way: str, *, is_absolute: bool
) -> None:
    """A manifest of a backup named any file of the machine, which went with the copy."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    named = str(precious) if is_absolute else "../../precious"
    fields = {"object": named} if way == "object" else {"object": NAME, "before": [[named, 4]]}
    forge(tmp_path, 1, {"path": "memory", "kind": "f", "size": 4, **fields})
    copies = copies_on(tmp_path)
    for turn in (2, 3, 4):
        (home / "memory").write_text(f"turn {turn}")
        take(copies, home, turn)
    copies.remove_objects(copies.drop_old())
    assert precious.read_text() == "mine"
    assert copies.turns() == [3, 4]


@pytest.mark.parametrize(
    "entry",
    [
        {"path": "memory", "kind": "f", "size": "9", "object": NAME},
        {"path": "memory", "kind": "f", "size": 9, "object": NAME, "before": [[NAME, "1"]]},
        {"path": ["memory"], "kind": "f", "size": 9, "object": NAME},
    ],
)
def test_a_home_is_copied_whatever_the_copy_before_says(
    home: Path, tmp_path: Path, entry: dict[str, object]
) -> None:
    forge(tmp_path, 1, entry)
    (home / "memory").write_bytes(bytes(2 * MIB))
    copies = copies_on(tmp_path)
    take(copies, home, 2)
    copies.prune()
    assert build(copies, 2, tmp_path / "built")


def test_a_manifest_without_an_end_of_brackets_is_none() -> None:
    text = b'{"entries":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert decode_objects(b"%d\n%s\n" % (zlib.crc32(text), text)) is None


def test_files_with_other_names_are_no_copies(home: Path, tmp_path: Path) -> None:
    copies = copies_on(tmp_path)
    take(copies, home, 1)
    for name in ("²", "007", "٣", "1" * 30):
        (tmp_path / "copies" / f"{name}.json").write_text("")
    assert copies_on(tmp_path).turns() == [1]


def test_a_file_of_a_thousand_parts_needs_no_thousand_descriptors(home: Path, tmp_path: Path) -> None:
    (home / "memory").write_text("all")
    copies = copies_on(tmp_path)
    entry = take(copies, home, 1).entries[0]
    (tmp_path / "copies" / "files" / NAME).write_text("")
    fields = {"path": "memory", "kind": "f", "size": 3, "object": entry.object, "crc": entry.crc}
    forge(tmp_path, 2, {**fields, "before": [[NAME, 0]] * 1000})
    with limit(resource.RLIMIT_NOFILE, 200):
        assert build(copies, 2, tmp_path / "built")
    assert (tmp_path / "built" / "memory").read_text() == "all"


@pytest.mark.parametrize("size", [10, 3 * MIB])
def test_what_a_loss_of_power_took_is_copied_again(home: Path, tmp_path: Path, size: int) -> None:
    """The next copies shared it, since the file was as before: none of them could ever be restored."""
    (home / "memory").write_bytes(bytes(size))
    copies = copies_on(tmp_path)
    for turn in (1, 2):
        with (home / "memory").open("ab") as file:
            file.write(bytes(MIB) if size > MIB else b"")
        age(home / "memory")
        lost = take(copies, home, turn).entries[0]
    (tmp_path / "copies" / "files" / lost.parts[-1][0]).write_bytes(b"")
    again = copies_on(tmp_path)
    with (home / "memory").open("ab") as file:
        file.write(b"more" if size > MIB else b"")
    take(again, home, 3)
    assert build(again, 3, tmp_path / "built")
    assert (tmp_path / "built" / "memory").read_bytes() == (home / "memory").read_bytes()


def test_a_file_for_which_there_was_no_room_is_no_copy(home: Path, tmp_path: Path) -> None:
    """What fits is written without an error: the copy was there, and not whole."""
    (home / "memory").write_bytes(bytes(5000))
    copies = copies_on(tmp_path)
    with limit(resource.RLIMIT_FSIZE, 4096), pytest.raises(OSError):
        take(copies, home, 1)
    assert copies.turns() == []
    assert list((tmp_path / "copies" / "files").iterdir()) == []


def test_a_manifest_for_which_there_was_no_room_does_not_stay(home: Path, tmp_path: Path) -> None:
    for number in range(100):
        (home / f"memory-{number}").write_text("a")
    copies = copies_on(tmp_path)
    with limit(resource.RLIMIT_FSIZE, 4096), pytest.raises(OSError):
        take(copies, home, 1)
    assert sorted(path.name for path in (tmp_path / "copies").iterdir()) == ["files", "unsettled"]


def test_another_copy_of_a_turn_for_which_there_is_no_room_leaves_the_one_before(
    home: Path, tmp_path: Path
) -> None:
    copies = copies_on(tmp_path)
    take(copies, home, 1)
    before = (tmp_path / "copies" / "1.json").read_bytes()
    for number in range(100):
        (home / f"memory-{number}").write_text("a")
    with limit(resource.RLIMIT_FSIZE, 4096), pytest.raises(OSError):
        take(copies, home, 1)
    assert (tmp_path / "copies" / "1.json").read_bytes() == before
    take(copies, home, 1)
    assert build(copies, 1, tmp_path / "built")
    assert len(list((tmp_path / "built").iterdir())) == 100
    assert not list((tmp_path / "copies").glob("*.tmp"))


class Killed(BaseException):
    """Stands for a kill: nothing that comes after it is done."""


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_manifest_that_a_kill_cut_off_is_no_copy_and_is_removed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    (home / "memory").write_text("one")
    age(home / "memory")
    copies = copies_on(tmp_path)
    take(copies, home, 1)

    def write_a_part(fd: int, content: bytes) -> None:
        os.write(fd, content[: int(len(content) * share)])
        raise Killed

    monkeypatch.setattr(home_copies, "_write_all", write_a_part)
    with pytest.raises(Killed):
        take(copies, home, 2)
    monkeypatch.undo()
    assert (tmp_path / "copies" / "2.json").exists()
    again = copies_on(tmp_path)
    assert again.load(2) is None
    assert (tmp_path / "copies" / home_copies.MARK).exists(), "the start looks for that"
    again.prune()
    assert copies_on(tmp_path).turns() == [1]
    assert build(again, 1, tmp_path / "built")
    take(again, home, 2)
    assert build(again, 2, tmp_path / "again")


def test_a_copy_creates_a_manifest_and_what_has_changed_and_nothing_else(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To create a file or to rename one costs far more than to write to it, after every turn."""
    for name in ("memory", "log"):
        (home / name).write_text("one")
        age(home / name)
    copies = copies_on(tmp_path)
    take(copies, home, 1)
    created: list[str] = []
    opening = os.open

    def note_new(path: str, flags: int, *args: Any, **more: Any) -> int:
        if flags & os.O_CREAT:
            created.append(str(path))
        return opening(path, flags, *args, **more)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("nothing has to be renamed")

    monkeypatch.setattr(os, "open", note_new)
    monkeypatch.setattr(os, "rename", refuse)
    take(copies, home, 2)
    assert created == [str(tmp_path / "copies" / "2.json")]
    (home / "log").write_text("two")
    created.clear()
    take(copies, home, 3)
    files = [path for path in created if Path(path).is_relative_to(tmp_path / "copies")]
    assert len(files) == 2
    assert files[1] == str(tmp_path / "copies" / "3.json")


def build(copies: Copies, turn: int, target: Path) -> bool:
    manifest = copies.load(turn)
    return manifest is not None and copies.build(manifest, target)


def age(path: Path) -> None:
    """Wait until it shows whether the file has changed since."""
    while time.time_ns() < path.stat().st_ctime_ns + 2 * RACY_NANOSECONDS:
        time.sleep(0.01)


@contextmanager
def limit(what: int, most: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(what, (soft, hard))
