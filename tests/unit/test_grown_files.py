"""Copies of files that only grow: each keeps what is new, and gives back what was there at its turn."""

import json
import random
import threading
import zlib
from pathlib import Path

import pytest

from clawdforge.drivers.folders.file_copy import copy_bytes
from clawdforge.drivers.folders.home_copies import Copies
from clawdforge.drivers.folders.home_manifest import Manifest, decode_manifest, decode_objects

MIB = 1 << 20
RUNNING = threading.Event()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    return Copies(tmp_path / "copies", max_copies=100, max_bytes=1 << 30, excluded=())


def kept_bytes(tmp_path: Path) -> int:
    return sum(path.stat().st_size for path in (tmp_path / "copies" / "files").iterdir())


def take(copies: Copies, home: Path, turn: int) -> Manifest:
    return copies.take(home, turn, "agent", RUNNING)


def give_back(copies: Copies, turn: int, target: Path) -> dict[str, bytes]:
    manifest = copies.load(turn)
    assert manifest is not None
    assert copies.build(manifest, target)
    return {path.name: path.read_bytes() for path in target.iterdir()}


def test_what_is_written_after_a_turn_does_not_grow_with_the_memory(
    copies: Copies, home: Path, tmp_path: Path
) -> None:
    line, whole = random.Random(1).randbytes(100_000), b""  # noqa: S311
    for turn in range(1, 41):
        whole += line
        (home / "memory").write_bytes(whole)
        before = kept_bytes(tmp_path) if turn > 1 else 0
        take(copies, home, turn)
        assert kept_bytes(tmp_path) - before <= 2 * MIB
    for turn in (1, 11, 22, 39, 40):
        found = give_back(copies, turn, tmp_path / f"built-{turn}")
        assert found == {"memory": whole[: turn * len(line)]}


@pytest.mark.parametrize("most", [200, 30_000])
def test_a_memory_is_written_about_ten_times_and_lies_in_few_objects(
    copies: Copies, home: Path, tmp_path: Path, most: int
) -> None:
    draw, whole, written = random.Random(2), b"", 0  # noqa: S311
    for turn in range(1, 401):
        whole += draw.randbytes(draw.randint(1, most))
        (home / "memory").write_bytes(whole)
        before = kept_bytes(tmp_path) if turn > 1 else 0
        parts = take(copies, home, turn).entries[0].parts
        written += kept_bytes(tmp_path) - before
        assert len(parts) <= 10 + len(whole) // MIB
    assert written <= 12 * len(whole) + 400 * 16_384
    assert give_back(copies, 400, tmp_path / "built") == {"memory": whole}


@pytest.mark.parametrize("seed", range(8))
def test_every_copy_gives_back_its_own_turn_whatever_became_of_the_file(
    copies: Copies, home: Path, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)  # noqa: S311
    memory, states = bytearray(draw.randbytes(2 * MIB)), {}
    for turn in range(1, 16):
        deed = draw.choice(("grow", "grow", "grow", "leave", "shorten", "change", "replace"))
        if deed == "grow":
            memory += draw.randbytes(draw.choice((10, 70_000, 2 * MIB)))
        elif deed == "shorten" and memory:
            del memory[draw.randrange(len(memory)) :]
        elif deed == "change" and memory:
            memory[draw.randrange(len(memory))] ^= 1
        elif deed == "replace":
            memory = bytearray(draw.randbytes(draw.choice((0, 5_000, 3 * MIB))))
        (home / "memory").write_bytes(memory)
        take(copies, home, turn)
        states[turn] = bytes(memory)
        if draw.random() < 0.3:
            copies.prune()
    for turn, state in states.items():
        assert give_back(copies, turn, tmp_path / f"built-{turn}") == {"memory": state}


def test_pruning_keeps_the_parts_of_copies_that_stay(home: Path, tmp_path: Path) -> None:
    copies = Copies(tmp_path / "copies", max_copies=2, max_bytes=1 << 30, excluded=())
    memory = b""
    for turn in range(1, 7):
        memory += bytes([turn]) * MIB
        (home / "memory").write_bytes(memory)
        take(copies, home, turn)
    copies.prune()
    assert copies.turns() == [5, 6]
    assert kept_bytes(tmp_path) == 6 * MIB  # no byte of them twice
    assert give_back(copies, 5, tmp_path / "built") == {"memory": memory[: 5 * MIB]}


@pytest.mark.parametrize("damage", ["gone", "shorter", "changed"])
def test_a_damaged_part_is_noticed(copies: Copies, home: Path, tmp_path: Path, damage: str) -> None:
    for turn in (1, 2):
        with (home / "memory").open("ab") as file:
            file.write(bytes([turn]) * MIB)
        last = take(copies, home, turn)
    (first, _), _ = last.entries[0].parts
    part = tmp_path / "copies" / "files" / first
    if damage == "gone":
        part.unlink()
    else:
        part.write_bytes(bytes(MIB - 1 if damage == "shorter" else MIB))
    assert not copies.build(last, tmp_path / "built")


def test_a_manifest_says_the_same_when_it_is_read_again(copies: Copies, home: Path) -> None:
    for turn in (1, 2):
        with (home / "memory").open("ab") as file:
            file.write(bytes(MIB))
        last = take(copies, home, turn)
    again = decode_manifest(last.encode())
    assert again is not None
    assert again.entries[0].parts == last.entries[0].parts
    assert decode_objects(last.encode()) == again.objects
    assert len(again.objects) == 2


@pytest.mark.parametrize("before", [[["../../evil", 1]], [["0123456789ab-1", "1"]], [["0123456789ab-1", -1]]])
def test_a_part_outside_of_the_folder_is_not_sound(copies: Copies, home: Path, before: list[object]) -> None:
    (home / "memory").write_bytes(bytes(MIB))
    entry = take(copies, home, 1).entries[0]
    fields = {"path": entry.path, "kind": "f", "size": 9, "object": entry.object, "before": before}
    body = json.dumps({"turn": 1, "agent_session_id": "agent", "taken_at": 0, "entries": [fields]})
    found = decode_manifest(f"{zlib.crc32(body.encode())}\n{body}\n".encode())
    assert found is not None
    assert not found.is_sound()


def test_the_rest_of_a_file_goes_behind_what_is_there(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"0123456789")
    with source.open("rb") as given, target.open("wb", buffering=0) as taken:
        assert copy_bytes(given.fileno(), taken.fileno(), 3) == 3
        assert copy_bytes(given.fileno(), taken.fileno(), 9, 5) == 5
    assert target.read_bytes() == b"01256789"
