"""Snapshots beside each other: shares of apps, agents that stand still, and reasons that are kept."""

import asyncio
import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from clawdforge.core.models.rows import SessionRow
from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.core.ports import LiveAgent
from clawdforge.drivers.folders import git_shadow, recorded_turns
from clawdforge.drivers.folders.git_shadow import Shadow
from clawdforge.drivers.folders.snapshots import MOST_REST_SECS, SHARE, THREADS, Snapshots
from clawdforge.drivers.processes import helpers
from clawdforge.drivers.processes.helpers import Helpers
from clawdforge.wire.errors import Unsupported
from tests.unit.rpc_peer import until

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path / "data", Helpers(shutil.which("bwrap")))


def session_of(app: str, number: int, tmp_path: Path) -> SessionRow:
    work = tmp_path / f"{app}{number}"
    work.mkdir()
    (work / "file").write_text("x")
    row = SessionRow(app_name=app, session_id=work.name, agent="a", cwd=str(work), created_at=1, updated_at=1)
    return replace(row, own_cwd=True)


async def test_workspaces_that_make_git_wait_leave_threads_to_other_apps(
    snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, stuck = threading.Event(), []
    real = Shadow.record_turn

    def wait(shadow: Shadow, *given: object) -> str:
        if shadow._workspace.name.startswith("slow"):
            stuck.append(shadow)
            assert over.wait(60)
        return real(shadow, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Shadow, "record_turn", wait)
    rows = [session_of("slow", number, tmp_path) for number in range(THREADS + 4)]
    slow = [asyncio.create_task(snapshots.record_turn(row, 1, None)) for row in rows]
    try:
        await until(lambda: len(stuck) == SHARE)
        quick = session_of("quick", 1, tmp_path)
        async with asyncio.timeout(60):
            await snapshots.record_turn(quick, 1, None)
        assert await snapshots.tree_of(quick, 1)
        assert len(stuck) == SHARE
        slow[0].cancel()  # its work keeps the place, and its caller, until it has ended
        await asyncio.wait({slow[0]}, timeout=0.1)
        assert (slow[0].done(), len(stuck)) == (False, SHARE)
    finally:
        over.set()
    await asyncio.gather(*slow[1:])
    assert slow[0].cancelled()
    assert await snapshots.tree_of(rows[-1], 1)


async def test_forks_share_what_their_app_may_use(
    snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, stuck = threading.Event(), []

    def wait(shadow: Shadow, target: Path, through: int) -> None:
        stuck.append((shadow, target, through))
        assert over.wait(60)

    rows = [session_of("many", number, tmp_path) for number in range(SHARE + 2)]
    for row in rows:
        await snapshots.record_turn(row, 1, None)
    monkeypatch.setattr(Shadow, "copy_to", wait)
    forks = [asyncio.create_task(snapshots.branch(row, f"fork{row.session_id}", 1)) for row in rows]
    try:
        await until(lambda: len(stuck) >= SHARE)
        quick = session_of("quick", 1, tmp_path)
        async with asyncio.timeout(60):
            await snapshots.record_turn(quick, 1, None)
        assert len(stuck) == SHARE
    finally:
        over.set()
    await asyncio.gather(*forks)
    assert len(stuck) == len(rows)


class Standing:
    """A live agent, as far as snapshots need one."""

    def __init__(self) -> None:
        self.is_paused = False
        self.pauses = 0

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        self.is_paused = True
        self.pauses += 1
        yield
        self.is_paused = False


async def test_the_agent_stands_still_while_its_workspace_is_recorded(
    snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Standing()
    seen: list[bool] = []
    real = Shadow._git

    def look(shadow: Shadow, *words: str, **more: object) -> bytes:
        seen.append(agent.is_paused)
        return real(shadow, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Shadow, "_git", look)
    await snapshots.record_turn(session_of("a", 1, tmp_path), 1, cast("LiveAgent", agent))
    assert seen
    assert all(seen)
    assert (agent.is_paused, agent.pauses) == (False, 1)


async def test_an_undo_says_why_there_are_no_files_to_go_back_to(
    snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = session_of("a", 1, tmp_path)
    with (Path(row.cwd) / "sparse").open("wb") as file:
        file.truncate(3 << 30)
    await snapshots.record_turn(row, 1, None)
    with pytest.raises(Unsupported, match=r"more than \d+ bytes have changed.*undo without files"):
        await snapshots.tree_of(row, 1)
    with pytest.raises(Unsupported, match="not recorded at that point; undo"):
        await snapshots.tree_of(row, 7)
    await snapshots.branch(row, "a2", 9)  # nothing was recorded, so there is nothing to give away
    (Path(row.cwd) / "sparse").unlink()
    await snapshots.record_turn(row, 2, None)
    assert await snapshots.tree_of(row, 2)
    await snapshots.branch(row, "a2", 9)
    other = Shadow(tmp_path / "data" / "shadows" / "a2", Path(row.cwd), "git", Helpers(None))
    assert "bytes have changed" in (other.find_missing(1) or "")
    monkeypatch.setattr(recorded_turns, "MAX_TURNS", 3)
    monkeypatch.setattr(git_shadow, "PRUNE_EVERY", 1)
    for turn in range(8, 20):
        other.note_missing(turn, "x" * 1000)
    kept = [turn for turn in range(20) if other.find_missing(turn)]
    assert (len(kept) <= 6, kept[-1], len(other.find_missing(19) or "")) == (True, 19, 300)


async def test_a_large_file_is_recorded_in_little_memory(
    snapshots: Snapshots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git would read a whole file into memory; it has less here than the file is long."""
    row = session_of("a", 1, tmp_path)
    with (Path(row.cwd) / "large").open("wb") as file:
        file.truncate(200 << 20)
    limited = tuple(word.replace("ulimit -v 2097152", "ulimit -v 150000") for word in helpers.LIMITED)
    assert limited != helpers.LIMITED
    monkeypatch.setattr(helpers, "LIMITED", limited)
    await snapshots.record_turn(row, 1, None)
    assert await snapshots.tree_of(row, 1)


async def test_where_others_are_about_a_place_rests_after_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, rests = LoopTurns(), list[float]()
    snapshots = Snapshots(tmp_path / "data", Helpers(None), turns=turns)
    row = session_of("crowd", 1, tmp_path)
    loop = asyncio.get_running_loop()
    later = loop.call_later

    def note(secs: float, work: Any, *given: Any) -> asyncio.TimerHandle:
        if getattr(work, "__name__", "") == "release":
            rests.append(secs)
        return later(secs, work, *given)

    monkeypatch.setattr(loop, "call_later", note)
    await snapshots.record_turn(row, 1, None)
    assert rests == []
    for number in range(SHARE + 1):  # the last of these has to wait for one that rests
        await turns.enter("lone")
        await snapshots.record_turn(row, number, None)
    assert len(rests) == SHARE + 1
    assert all(0 < secs <= MOST_REST_SECS for secs in rests)


async def test_an_empty_workspace_is_recorded_beside_something_else(
    snapshots: Snapshots, tmp_path: Path
) -> None:
    row = session_of("a", 1, tmp_path)
    file = Path(row.cwd) / "file"
    assert not snapshots.has_files(row)
    assert not snapshots.record_empty(row, 1), "there is a file, which is not recorded yet"
    file.unlink()
    assert snapshots.record_empty(row, 2)
    file.write_text("x")
    await snapshots.record_turn(row, 3, None)
    file.unlink()
    assert snapshots.has_files(row)
    assert not snapshots.record_empty(row, 4), "there were files, and what is ignored may still be there"
    assert await snapshots.tree_of(row, 2) != await snapshots.tree_of(row, 3)
    for missing in (1, 4):
        with pytest.raises(Unsupported):
            await snapshots.tree_of(row, missing)
    gone = replace(row, session_id="gone", cwd=str(tmp_path / "gone"))
    assert not snapshots.record_empty(gone, 1), "`record_turn` says why it cannot be"


async def test_what_a_loss_of_power_took_is_not_recorded_again_as_it_is_later(
    snapshots: Snapshots, tmp_path: Path
) -> None:
    """An undo of the first turn would leave what that turn has made."""
    row = session_of("a", 1, tmp_path)
    file = Path(row.cwd) / "file"
    file.unlink()
    await snapshots.record_first(row)
    os.truncate(tmp_path / "data" / "shadows" / row.session_id / "empty", 0)
    file.write_text("of the first turn")
    await snapshots.record_first(row)
    with pytest.raises(Unsupported):
        await snapshots.tree_of(row, 0)
