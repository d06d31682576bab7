"""The supervisor of a whole server without its port: who waits for what between two turns."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clawdforge.core.models.rows import Commit, SessionRow, TurnRow
from clawdforge.core.rules import memory
from clawdforge.core.rules.turns import Ending
from clawdforge.core.running import pool as pools
from clawdforge.core.running import supervisor as supervisors
from clawdforge.core.running.known_workspaces import KnownWorkspaces
from clawdforge.core.running.recorder import TurnRecorder
from clawdforge.core.services import sweeper
from clawdforge.core.services.files import FileService
from clawdforge.drivers.acp.driver import AcpAgent
from clawdforge.drivers.folders.homes import HomeFolders
from clawdforge.drivers.folders.snapshots import Snapshots
from clawdforge.parts import Parts, open_parts
from clawdforge.wire.errors import AgentFailed, SessionBusy, SessionNotFound, StoreUnavailable
from clawdforge.wire.event import EventType
from clawdforge.wire.session import CreateSession, ForkRequest, UndoRequest
from clawdforge.wire.turn import Outcome, TurnRequest, TurnState
from tests.unit.supervised import APP, make_settings, say, submit, wait_for_text

SOON = 0.05
LONG = 60.0


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with asyncio.timeout(LONG), open_parts(make_settings(tmp_path)) as opened:
        yield opened
        await opened.supervisor.stop(0)


@pytest.fixture
async def session_id(parts: Parts) -> str:
    state = await parts.services.sessions.create(APP, CreateSession())
    return state.row.session_id


async def hold(parts: Parts, session_id: str, held: asyncio.Event, let_go: asyncio.Event) -> None:
    async with parts.supervisor.hold(APP, session_id):
        held.set()
        await let_go.wait()


async def test_a_fork_waits_for_the_copy_of_the_turn_that_has_just_ended(
    parts: Parts, session_id: str
) -> None:
    for round_ in range(3):
        await say(parts, session_id, f"echo {round_}")
        fork = await parts.services.forks.fork(APP, session_id, ForkRequest())
        row = (await parts.services.sessions.get(APP, fork.row.session_id)).row
        assert row.context_plan == memory.LOAD, "it has the agent's memory and not only the transcript"


async def test_after_the_wait_for_a_copy_the_session_is_free(parts: Parts, session_id: str) -> None:
    turn_index = await say(parts, session_id, "echo hello")
    await parts.supervisor.wait_for_copy(session_id, turn_index)
    seat = parts.supervisor.reserve(APP, session_id)
    assert seat is not None
    parts.supervisor.release(seat)


async def test_the_copy_after_a_turn_is_not_waited_for_while_the_next_one_runs(
    parts: Parts, session_id: str
) -> None:
    first = await say(parts, session_id, "echo hello")
    second = await submit(parts, session_id, "hang")
    async with asyncio.timeout(10):
        while (await parts.services.turns.get(APP, session_id, second)).state is TurnState.QUEUED:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await parts.supervisor.wait_for_copy(session_id, first)
        await parts.supervisor.wait_for_copy(session_id)
    await parts.services.turns.cancel(APP, session_id)


async def test_a_hold_waits_for_a_turn_that_is_being_written(parts: Parts, session_id: str) -> None:
    seat = parts.supervisor.reserve(APP, session_id)
    assert seat is not None
    held, let_go = asyncio.Event(), asyncio.Event()
    holding = asyncio.create_task(hold(parts, session_id, held, let_go))
    await asyncio.sleep(0)
    assert not held.is_set()
    parts.supervisor.release(seat)
    async with asyncio.timeout(10):
        await held.wait()
        let_go.set()
        await holding


async def test_one_holds_a_session_at_a_time_and_a_prompt_waits_for_it(parts: Parts, session_id: str) -> None:
    held, let_go = asyncio.Event(), asyncio.Event()
    holding = asyncio.create_task(hold(parts, session_id, held, let_go))
    await held.wait()
    with pytest.raises(SessionBusy):
        async with parts.supervisor.hold(APP, session_id, SOON):
            raise AssertionError
    turn_index = await submit(parts, session_id, "echo hello")
    assert (await parts.services.turns.get(APP, session_id, turn_index)).state is TurnState.QUEUED
    let_go.set()
    await holding
    turn = await parts.services.turns.wait(APP, session_id, turn_index)
    assert turn.outcome is Outcome.COMPLETED


async def test_stopping_waits_for_a_turn_that_is_being_written_and_no_longer(
    parts: Parts, session_id: str
) -> None:
    seat = parts.supervisor.reserve(APP, session_id)
    assert seat is not None
    stopping = asyncio.create_task(parts.supervisor.stop(LONG))
    done, _ = await asyncio.wait({stopping}, timeout=SOON)
    assert not done
    parts.supervisor.release(seat)
    async with asyncio.timeout(10):
        await stopping


async def test_a_turn_that_goes_on_is_interrupted_when_the_server_stops(
    parts: Parts, session_id: str
) -> None:
    running = await submit(parts, session_id, "hang")
    queued = await submit(parts, session_id, "echo later")
    await parts.supervisor.stop(SOON)
    ended = await parts.services.turns.get(APP, session_id, running)
    assert (ended.outcome, ended.error) == (Outcome.INTERRUPTED, "the server was stopped")
    assert (await parts.services.turns.get(APP, session_id, queued)).state is TurnState.QUEUED


async def test_a_prompt_for_a_session_of_another_app_touches_nothing(parts: Parts, session_id: str) -> None:
    """It reserved the session for a moment, and whoever woke it meanwhile was forgotten."""
    asked = parts.services.turns.submit("other", session_id, TurnRequest(prompt="x"), None)
    stranger = asyncio.create_task(asked)
    while not stranger.done():
        await asyncio.sleep(0)
        assert session_id not in parts.supervisor._reserved
    with pytest.raises(SessionNotFound):
        await stranger


@pytest.mark.parametrize("queued", [False, True])
async def test_a_turn_can_be_cancelled_as_soon_as_a_reader_sees_it(
    parts: Parts, session_id: str, *, queued: bool
) -> None:
    """Readers hear of a commit before the one who made it does."""
    cancels: list[asyncio.Task[int]] = []
    store = parts.supervisor._store

    def cancel_at_once(commit: Commit) -> None:
        started = [event.turn for event in commit.events if event.type == EventType.TURN_STARTED]
        if started == [1 + queued]:
            cancels.append(asyncio.create_task(parts.services.turns.cancel(APP, session_id)))

    store.listen(cancel_at_once)
    if queued:
        await submit(parts, session_id, "sleep 0.2\necho one")
    turn_index = await submit(parts, session_id, "hang")
    async with asyncio.timeout(20):
        turn = await parts.services.turns.wait(APP, session_id, turn_index)
    assert turn.outcome is Outcome.CANCELLED
    assert [await cancel for cancel in cancels] == [1]


async def test_of_cancels_at_once_only_one_has_ended_the_turn(parts: Parts, session_id: str) -> None:
    turn_index = await submit(parts, session_id, "hang")
    cancels = [parts.services.turns.cancel(APP, session_id) for _ in range(3)]
    assert sorted(await asyncio.gather(*cancels)) == [0, 0, 1]
    assert (await parts.services.turns.get(APP, session_id, turn_index)).outcome is Outcome.CANCELLED


async def test_a_cancel_that_comes_when_the_agent_is_done_has_ended_nothing(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was counted although the turn completed."""
    real, ending, go_on = TurnRecorder.end, asyncio.Event(), asyncio.Event()

    async def end(recorder: TurnRecorder, how: Ending, **rest: bool) -> TurnRow:
        ending.set()
        await go_on.wait()
        return await real(recorder, how, **rest)

    monkeypatch.setattr(TurnRecorder, "end", end)
    turn_index = await submit(parts, session_id, "echo one")
    async with asyncio.timeout(30):
        await ending.wait()
        cancel = asyncio.create_task(parts.services.turns.cancel(APP, session_id))
        await asyncio.sleep(0)
        go_on.set()
        assert await cancel == 0
    assert (await parts.services.turns.get(APP, session_id, turn_index)).outcome is Outcome.COMPLETED


async def test_an_agent_is_started_when_the_store_is_back(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, a store that was away for a moment just then failed the turn, which nobody had heard."""
    confirm, away = KnownWorkspaces.confirm, [True, True]

    async def confirm_later(
        known: KnownWorkspaces, session: SessionRow, fence: int | None = None
    ) -> SessionRow:
        if away:
            away.pop()
            raise StoreUnavailable
        return await confirm(known, session, fence)

    monkeypatch.setattr(KnownWorkspaces, "confirm", confirm_later)
    await say(parts, session_id, "echo hello")
    assert not away


@pytest.mark.parametrize("has_files", [False, True])
async def test_a_copy_that_fails_does_not_keep_the_queue_waiting(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch, has_files: bool
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("a fault in the copy")

    monkeypatch.setattr(HomeFolders, "copy_home", fail)
    monkeypatch.setattr(Snapshots, "record_turn", fail)
    monkeypatch.setattr(Snapshots, "has_files", lambda *_: has_files)
    first = await submit(parts, session_id, "sleep 0.2\necho one")
    second = await submit(parts, session_id, "echo two")
    async with asyncio.timeout(30):
        for turn_index in (first, second):
            turn = await parts.services.turns.wait(APP, session_id, turn_index)
            assert turn.outcome is Outcome.COMPLETED


async def test_a_turn_whose_agent_cannot_be_ended_has_an_end(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = AcpAgent.close
    failures = iter([OSError(16, "busy"), RuntimeError("a fault of ours")])

    async def close(agent: AcpAgent) -> None:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        await real(agent)

    turn_index = await submit(parts, session_id, "hang-hard")
    await until_said(parts, session_id)
    monkeypatch.setattr(AcpAgent, "close", close)
    async with asyncio.timeout(30):
        await parts.services.turns.cancel(APP, session_id)
        turn = await parts.services.turns.wait(APP, session_id, turn_index)
    assert turn.state is TurnState.ENDED


async def test_a_turn_whose_end_cannot_be_written_has_an_end(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OverflowError("a number of the agent's")

    monkeypatch.setattr(TurnRecorder, "end", fail)
    first = await submit(parts, session_id, "echo one")
    second = await submit(parts, session_id, "echo two")
    async with asyncio.timeout(30):
        for turn_index in (first, second):
            turn = await parts.services.turns.wait(APP, session_id, turn_index)
            assert turn.outcome is Outcome.FAILED


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_an_undo_of_files_that_broke_off_is_finished_by_the_next_turn(
    parts: Parts, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(parts, session_id, "write a.txt first")
    await say(parts, session_id, "write a.txt second")
    file = Path((await parts.services.sessions.get(APP, session_id)).row.cwd) / "a.txt"

    async def break_off(*_: object) -> None:
        raise asyncio.CancelledError  # as when the server ends

    with monkeypatch.context() as patch:
        patch.setattr(Snapshots, "restore", break_off)
        undo = asyncio.create_task(parts.services.history.undo(APP, session_id, UndoRequest(files=True)))
        await asyncio.wait({undo})
        assert undo.cancelled()
    assert file.read_text() == "second"
    await say(parts, session_id, "echo on")
    assert file.read_text() == "first"
    assert (await parts.services.sessions.get(APP, session_id)).row.files_plan is None


async def until_said(parts: Parts, session_id: str) -> None:
    """Until the agent has said something."""
    async for batch in parts.services.log.follow(APP, session_id, 0):
        if any(event.type == EventType.TEXT for event in batch):
            return


async def test_while_an_agent_does_not_end_nobody_comes_into_its_folders(
    parts: Parts, session_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session is closed and deleted all the same; what it works in is removed when it has ended."""
    await say(parts, session_id, "echo hi")
    close, let_go = AcpAgent.close, asyncio.Event()

    async def close_late(agent: AcpAgent) -> None:
        await let_go.wait()
        await close(agent)

    monkeypatch.setattr(AcpAgent, "close", close_late)
    monkeypatch.setattr(pools, "CLOSE_SECS", SOON)
    with pytest.raises(SessionBusy, match="does not end"):
        async with parts.supervisor.hold(APP, session_id):
            raise AssertionError("its agent lives")
    await parts.services.sessions.delete(APP, session_id)
    folders = [tmp_path / "data" / name / session_id for name in ("homes", "workspaces")]
    await parts.services.sweeper.sweep()
    assert all(folder.is_dir() for folder in folders)
    let_go.set()
    monkeypatch.setattr(pools, "CLOSE_SECS", LONG)
    await parts.services.sweeper.sweep()
    assert not any(folder.exists() for folder in folders)


async def test_a_step_of_the_sweep_that_takes_very_long_is_not_begun_twice(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, let_go = 0, asyncio.Event()

    async def remove_late(*_: object) -> int:
        nonlocal begun
        begun += 1
        await let_go.wait()
        return 0

    monkeypatch.setattr(FileService, "remove_old", remove_late)
    monkeypatch.setattr(sweeper, "STEP_SECS", SOON)
    for _ in range(2):
        await parts.services.sweeper.sweep()
    assert begun == 1
    let_go.set()


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_stop_does_not_wait_as_long_as_a_cancel_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """Nor does it when somebody's cancel waits for the agent already."""
    monkeypatch.setattr(supervisors, "ASK_SECS", SOON)
    monkeypatch.setattr(supervisors, "LEAVE_SECS", 10 * LONG)
    async with asyncio.timeout(LONG), open_parts(make_settings(tmp_path, cancel_grace_secs=3600)) as parts:
        session_id = (await parts.services.sessions.create(APP, CreateSession())).row.session_id
        turn_index = await submit(parts, session_id, "hang-hard")
        await wait_for_text(parts, session_id)
        cancel = parts.services.turns.cancel(APP, session_id)
        asking = asyncio.create_task(cancel) if cancelled else None
        if asking is None:
            cancel.close()
        else:
            await asyncio.wait({asking}, timeout=SOON)
        await parts.supervisor.stop(0)
        turn = await parts.services.turns.get(APP, session_id, turn_index)
    assert turn.outcome is (Outcome.CANCELLED if cancelled else Outcome.INTERRUPTED)


@pytest.mark.parametrize("failure", [None, AgentFailed("it does not read")])
async def test_an_agent_that_cannot_be_asked_to_stop_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception | None
) -> None:
    async def refuse(_agent: AcpAgent) -> None:
        if failure is not None:
            raise failure
        await asyncio.Event().wait()

    monkeypatch.setattr(AcpAgent, "cancel", refuse)
    async with asyncio.timeout(LONG), open_parts(make_settings(tmp_path, cancel_grace_secs=SOON)) as parts:
        session_id = (await parts.services.sessions.create(APP, CreateSession())).row.session_id
        turn_index = await submit(parts, session_id, "echo hello\nhang")
        await wait_for_text(parts, session_id)
        assert await parts.services.turns.cancel(APP, session_id) == 1
        turn = await parts.services.turns.get(APP, session_id, turn_index)
        await parts.supervisor.stop(0)
    assert turn.outcome is Outcome.CANCELLED
