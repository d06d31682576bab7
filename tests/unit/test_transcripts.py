"""A transcript with the endings of turns: every window of it is a slice of the whole, however it is read."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.rows import MessageRow, SessionRow, TurnRow
from clawdforge.core.ports import Tx, View
from clawdforge.core.rules.transcripts import Ending, Entry, interleave, read_before, read_newest, show
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.turn import Outcome, TurnState

APP, SID = "alpha", "s-1"
OUTCOMES = (Outcome.COMPLETED, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CANCELLED, Outcome.INTERRUPTED)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    row = SessionRow(app_name=APP, session_id=SID, agent="demo", cwd="/w", created_at=1, updated_at=1)
    await opened.write(APP, lambda tx: tx.add_session(row))
    yield opened
    await opened.close()


def say(tx: Tx, role: str, content: str, turn: int | None, *, pending: bool = False) -> None:
    tx.add_message(MessageRow(session_id=SID, role=role, content=content, ts=1, turn=turn, pending=pending))


def run(tx: Tx, index: int, outcome: Outcome, *, answers: bool = True, pending: bool = False) -> None:
    tx.add_turn(
        TurnRow(
            session_id=SID,
            turn_index=index,
            state=TurnState.ENDED,
            prompt=f"p{index}",
            queued_at=1,
            started_at=1,
            ended_at=2,
            outcome=outcome,
        )
    )
    say(tx, "user", f"p{index}", index, pending=pending)
    if answers:
        say(tx, "assistant", f"a{index}", index)


def fill(tx: Tx) -> None:
    say(tx, "user", "imported", 0)
    for index in range(1, 13):
        run(tx, index, OUTCOMES[index % 5], answers=bool(index % 3))
        if index % 4 == 0:
            say(tx, "user", f"posted {index}", None)


def name(entry: Entry) -> str:
    return f"!{entry.turn.turn_index}" if isinstance(entry, Ending) else entry.content


def read_all(view: View, *, with_cut_off: bool = False) -> list[str]:
    found = show(view, SID, with_cut_off=with_cut_off)
    shown = list(map(name, interleave(found, view.messages(SID))))
    assert len(shown) == found.count
    return shown


@pytest.mark.parametrize("with_cut_off", [False, True])
async def test_every_window_is_a_slice_of_the_whole(store: SqliteStore, with_cut_off: bool) -> None:
    def cut_off(tx: Tx) -> None:
        fill(tx)
        run(tx, 13, Outcome.INTERRUPTED, pending=True)
        say(tx, "user", "posted last", None)

    def compare(view: View) -> None:
        whole = read_all(view, with_cut_off=with_cut_off)
        assert whole[-1] == "posted last"
        assert ("p13" in whole, "!13" in whole) == (with_cut_off, with_cut_off)
        for limit in (1, 2, 3, 7, len(whole), 100):
            newest = read_newest(view, SID, limit, with_cut_off=with_cut_off)
            assert list(map(name, newest.entries)) == whole[-limit:]
            assert newest.first == max(0, len(whole) - limit)
            for before in range(len(whole) + 3):
                found = read_before(view, SID, before, limit, with_cut_off=with_cut_off)
                stop = min(before, len(whole))
                assert list(map(name, found.entries)) == whole[max(0, stop - limit) : stop], (before, limit)
                assert found.first == max(0, stop - limit)

    await store.write(APP, cut_off)
    await store.read(APP, compare)


async def test_endings_stand_after_their_turns_and_go_with_them(store: SqliteStore) -> None:
    await store.write(APP, fill)
    whole = await store.read(APP, read_all)
    failed = [index for index in range(1, 13) if index % 5 in (1, 2, 4)]
    for index in range(1, 13):
        last = whole.index(f"a{index}" if index % 3 else f"p{index}")
        assert (whole[last + 1 : last + 2] == [f"!{index}"]) is (index in failed), index
    found = await store.read(APP, lambda view: read_newest(view, SID, 100))
    assert found.count_messages(whole.index("!7")) == [row.content for row in found.messages].index("p7")
    assert found.count_messages(len(whole)) == len(found.messages)
    assert found.count_messages(10**9) == len(found.messages)
    seq = next(row.seq for row in found.messages if row.content == "p6")
    seqs, turns = await store.read(APP, lambda view: view.numbers_from(SID, seq))
    await store.write(APP, lambda tx: tx.hide_messages(SID, seqs, turns))
    assert await store.read(APP, read_all) == whole[: whole.index("p6")]
    await store.write(APP, lambda tx: tx.archive_messages(SID))
    assert await store.read(APP, read_all) == []
