"""The checkers themselves: each wrong history and each lost write is noticed."""

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from proofs.kit.client import Ack
from proofs.kit.disk import STRACE, Call, Disk, Step, read_log
from proofs.kit.history import History, check
from proofs.kit.source import Change, DoesNotFit, check_fits
from proofs.kit.stolen import read_machine_time
from proofs.kit.table import README, put_table, with_tables
from proofs.noise import page
from proofs.syscalls import inject
from tests.needs import needs

PROMPT = "echo hi"


def chance(seed: int = 1) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a simulation, not a secret


def event(seq: int, kind: str, turn: int | None = 1, **fields: object) -> dict[str, object]:
    return {"seq": seq, "type": kind, "turn": turn, **fields}


def good() -> History:
    """One turn that was asked, said and ended."""
    events = [
        event(1, "session.created", None),
        event(2, "turn.queued"),
        event(3, "turn.started"),
        event(4, "text", content="hi", jsonrpc="2.0"),
        event(5, "turn.ended"),
    ]
    turn = {
        "turn_index": 1,
        "prompt": PROMPT,
        "state": "ended",
        "outcome": "completed",
        "retry_of": None,
        "cut": False,
    }
    messages = [
        {"seq": 1, "role": "user", "turn": 1, "content": PROMPT},
        {"seq": 2, "role": "assistant", "turn": 1, "content": "hi"},
    ]
    acks = [Ack("s", "k", PROMPT, 1)]
    return History("s", events, [turn], messages, acks, heard=Counter({PROMPT: 1}), whole={PROMPT: "hi"})


def lose(history: History, at: int) -> None:
    del history.events[at]


def retried(history: History, policy: str, times: int) -> None:
    """The turn was cut off, and the session has tried it again so often."""
    history.policy = policy
    history.turns[0]["outcome"] = "interrupted"
    for index in range(2, 2 + times):
        history.turns.append({**history.turns[0], "turn_index": index, "retry_of": 1})


def test_a_good_history_passes() -> None:
    assert check(good()) == []


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda h: lose(h, 1), "not 1..4"),
        (lambda h: h.events.append(event(6, "turn.ended")), "lived"),
        (lambda h: h.turns.clear(), "is lost"),
        (lambda h: h.acks.append(Ack("s", "k", PROMPT, 2)), "is turn 1 and turn 2"),
        (lambda h: h.turns.append({**h.turns[0], "turn_index": 2}), "turns twice"),
        (lambda h: h.messages.pop(), "not what was streamed"),
        (lambda h: h.messages.pop(0), "0 user messages"),
        (lambda h: h.heard.update([PROMPT]), "2 times for 1 turns"),
        (lambda h: h.heard.clear(), "0 times for 1 turns"),
        (lambda h: h.whole.update({PROMPT: "hi there"}), "completed, but said"),
        (lambda h: setattr(h, "copy", [b"{}"]), "the reader has 1 events"),
        (lambda h: retried(h, "hold", 1), "tried again 1 times"),
        (lambda h: retried(h, "retry", 0), "tried again 0 times"),
        (lambda h: retried(h, "retry", 2), "tried again 2 times"),
        (lambda h: h.events.insert(2, event(3, "text", content="", jsonrpc="2.0")), "while None runs"),
    ],
)
def test_a_wrong_history_is_noticed(damage: object, words: str) -> None:
    history = good()
    damage(history)  # type: ignore[operator]
    assert any(words in fault for fault in check(history)), check(history)


def steps(name: str, target: str, data: bytes = b"", number: int = 0, flags: str = "") -> list[Step]:
    call = Call(name, target, data, number, flags)
    return [Step(call, begin=True), Step(call, begin=False)]


def test_only_what_was_synced_survives_a_power_cut(tmp_path: Path) -> None:
    file = str(tmp_path / "db")
    disk = Disk(tmp_path, ("db",))
    for step in steps("openat", file, flags="O_RDWR|O_CREAT") + steps("pwrite64", file, b"old", 0):
        disk.step(step)
    assert disk.state(chance(), "durable") == {}
    for step in steps("fsync", file) + steps("fsync", str(tmp_path)) + steps("pwrite64", file, b"new", 0):
        disk.step(step)
    assert disk.state(chance(), "durable") == {"db": b"old"}
    assert disk.state(chance(), "all") == {"db": b"new"}
    begun, done = steps("fdatasync", file)
    disk.step(begun)
    assert disk.state(chance(), "durable") == {"db": b"old"}
    disk.step(done)
    assert disk.state(chance(), "durable") == {"db": b"new"}


def test_what_a_failed_sync_covered_is_written_by_no_later_one(tmp_path: Path) -> None:
    file = str(tmp_path / "db")
    disk = Disk(tmp_path, ("db",))
    for step in steps("openat", file, flags="O_CREAT") + steps("fsync", str(tmp_path)):
        disk.step(step)
    for step in steps("pwrite64", file, b"lost", 0):
        disk.step(step)
    begun, done = steps("fsync", file)
    disk.step(begun)
    disk.step(Step(done.call, begin=False, ok=False))
    for step in steps("fsync", file):
        disk.step(step)
    assert disk.state(chance(), "all") == {"db": b""}


def test_a_write_that_begins_during_a_sync_is_not_covered_by_it(tmp_path: Path) -> None:
    file = str(tmp_path / "db")
    disk = Disk(tmp_path, ("db",))
    for step in steps("openat", file, flags="O_CREAT") + steps("fsync", str(tmp_path)):
        disk.step(step)
    begun, done = steps("fsync", file)
    disk.step(begun)
    for step in steps("pwrite64", file, b"late", 0):
        disk.step(step)
    disk.step(done)
    assert disk.state(chance(), "durable") == {"db": b""}


def test_a_torn_write_is_torn_at_sectors(tmp_path: Path) -> None:
    file = str(tmp_path / "db")
    disk = Disk(tmp_path, ("db",))
    for step in steps("openat", file, flags="O_CREAT") + steps("fsync", str(tmp_path)):
        disk.step(step)
    for step in steps("pwrite64", file, b"x" * 4096, 0):
        disk.step(step)
    seen = {disk.state(chance(n), "torn")["db"] for n in range(60)}
    assert len(seen) > 10
    assert all(
        set(image[at : at + 512]) in ({0}, {120}) for image in seen for at in range(0, len(image), 512)
    )


def test_a_log_of_two_threads_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    path = "".join(f"\\x{byte:02x}" for byte in b"/d/db")
    log.write_text(
        f'11    pwrite64(3<{path}>, "\\x61\\x62", 2, 4096 <unfinished ...>\n'
        f"12    fdatasync(3<{path}>) = 0\n"
        "11    <... pwrite64 resumed>) = 2\n"
        f"12    fdatasync(3<{path}>) = -1 EIO (Input/output error) (INJECTED)\n"
    )
    found = [(s.call.name, s.begin, s.call.data, s.call.number) for s in read_log(log) if s.ok]
    assert found == [
        ("pwrite64", True, b"ab", 4096),
        ("fdatasync", True, b"", 0),
        ("fdatasync", False, b"", 0),
        ("pwrite64", False, b"ab", 4096),
        ("fdatasync", True, b"", 0),
    ]


@needs("strace")
def test_a_file_that_a_real_program_deleted_is_gone(tmp_path: Path) -> None:
    """As SQLite deletes its journal: a model that misses it rolls the whole database back."""
    log, folder = tmp_path / "log", tmp_path / "data"
    folder.mkdir()
    code = (
        "import os, sys; os.chdir('/'); path, folder = sys.argv[1:]; file = os.open(path, os.O_CREAT); "
        "where = os.open(folder, os.O_RDONLY); os.fsync(where); os.unlink(path); os.fsync(where)"
    )
    program = [sys.executable, "-c", code, str(folder / "db-journal"), str(folder)]
    subprocess.run(["strace", "-f", *STRACE, "-o", str(log), *program], check=True, timeout=60)
    disk = Disk(folder, ("db-journal",))
    seen: set[str] = set()
    for step in read_log(log):
        disk.step(step)
        seen.update(disk.state(chance(), "durable"))
    assert seen == {"db-journal"}
    assert disk.state(chance(), "durable") == {}


@needs("strace")
@pytest.mark.parametrize("deed", ["mkdir('x')", "rename('old', 'new')", "unlink('old')"])
def test_a_kill_hits_a_call_under_the_name_that_it_has_on_this_machine(tmp_path: Path, deed: str) -> None:
    (tmp_path / "old").touch()
    trace = ["strace", "-f", *inject(deed.partition("(")[0], 1)]
    program = [sys.executable, "-c", f"import os; os.{deed}"]
    done = subprocess.run([*trace, *program], cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL


def test_a_change_that_no_longer_fits_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("one two two")
    check_fits(tmp_path, Change("a.sql", "one", "1"))
    for old in ("two", "three"):
        with pytest.raises(DoesNotFit):
            check_fits(tmp_path, Change("a.sql", old, ""))


def test_the_page_shows_the_recorded_figures() -> None:
    text = README.read_text()
    assert with_tables(text) == text


def test_the_page_of_neighbours_shows_the_recorded_figures() -> None:
    text = page.PAGE.read_text()
    assert put_table(text, page.table()) == text


def test_what_the_host_gave_to_others_is_part_of_the_time(tmp_path: Path) -> None:
    """`guest`, which comes last, is in `user` already."""
    found = []
    for ticks in ("100 0 100 800 0 0 0 0 50 0", "150 0 120 1005 0 0 0 25 90 0"):
        (tmp_path / "stat").write_text(f"cpu  {ticks}\ncpu0 {ticks}\n")
        found.append(read_machine_time(tmp_path / "stat"))
    assert found[1].stolen_since(found[0]) == 25 / 300
    assert found[1].stolen_since(found[1]) == 0.0
