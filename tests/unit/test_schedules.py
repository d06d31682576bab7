"""What schedules do at their times: each is one turn, however late, doubled or refused it is."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clawdforge.core.clock import SECOND
from clawdforge.core.models.rows import TokenRow
from clawdforge.core.models.schedules import ScheduleRow
from clawdforge.core.rules import schedules as rules
from clawdforge.wire.base import from_iso, to_iso_seconds
from clawdforge.wire.errors import (
    Conflict,
    InvalidRequest,
    LimitExceeded,
    ScheduleNotFound,
    SessionBusy,
    SessionNotFound,
    UnknownAgent,
)
from clawdforge.wire.pauses import PauseRequest, ResumeRequest
from clawdforge.wire.schedules import ChangeSchedule, ScheduleState
from clawdforge.wire.session import CreateSession
from clawdforge.wire.turn import Outcome
from tests.unit.schedule_desk import BY, DAY, HOUR, MINUTE, Desk, open_desk
from tests.unit.supervised import APP


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path) as made:
        yield made


async def test_a_time_is_one_turn_in_a_session_of_its_own(desk: Desk) -> None:
    row = await desk.add()
    assert await desk.look() == 15.0, "it is not due yet, and the next look is bounded"
    desk.clock.wait(20 * SECOND)
    assert await desk.look() == 10.0, "it sleeps until the time itself"
    for _ in range(2):
        desk.clock.wait(DAY)
        await desk.look()
        await desk.look()
        await desk.ended(row)
    first, second = await desk.ended(row)
    assert first.session_id != second.session_id
    assert (first.outcome, first.prompt) == (Outcome.COMPLETED, "echo hi")
    assert first.key == f"schedule/{row.schedule_id}/2026-06-01T09:00:00Z"
    after = await desk.get(row)
    assert to_iso_seconds(after.next_at) == "2026-06-03T09:00:00Z"
    assert desk.keeper.done["submitted"] == 2
    assert desk.keeper.has_some


async def test_a_session_is_prompted_in_turn(desk: Desk) -> None:
    session_id = await desk.session()
    row = await desk.add(session_id=session_id, cron="* * * * *")
    for _ in range(3):
        desk.clock.wait(MINUTE)
        await desk.look()
        await desk.ended(row)
    assert [turn.turn_index for turn in await desk.ended(row)] == [1, 2, 3]


async def test_once_is_once(desk: Desk) -> None:
    row = await desk.add(at="2026-06-01T11:00", timezone="Europe/Berlin")
    assert to_iso_seconds(row.next_at) == "2026-06-01T09:00:00Z"
    desk.clock.wait(MINUTE)
    await desk.look()
    desk.clock.wait(DAY)
    await desk.look()
    after = await desk.get(row)
    assert (after.state, after.reason, after.next_at) == (ScheduleState.ENDED, rules.RUN, None)
    assert len(await desk.ended(row)) == 1
    with pytest.raises(Conflict, match="has ended: it has run"):
        await desk.change(row, paused=False)
    again = await desk.change(row, at="2026-06-02T12:00Z")
    assert again.state is ScheduleState.ON


@pytest.mark.parametrize(("missed", "runs"), [("run_once", 1), ("skip", 0)])
async def test_what_was_missed_is_run_once_or_not_at_all(desk: Desk, missed: str, runs: int) -> None:
    row = await desk.add(missed=missed)
    desk.clock.wait(3 * DAY + 2 * HOUR)
    await desk.look()
    ((one, _),) = await desk.history(row)
    assert (to_iso_seconds(one.planned_at), one.missed) == ("2026-06-04T09:00:00Z", 3)
    assert one.state.value == ("submitted" if runs else "missed")
    assert len(await desk.ended(row)) == runs
    assert to_iso_seconds((await desk.get(row)).next_at) == "2026-06-05T09:00:00Z"


async def test_a_time_that_is_hardly_late_is_not_missed(desk: Desk) -> None:
    row = await desk.add(missed="skip", cron="* * * * *")
    desk.clock.wait(3 * MINUTE + 20 * SECOND)
    await desk.look()
    ((one, _),) = await desk.history(row)
    assert (one.state.value, one.missed) == ("submitted", 2)


async def test_a_turn_that_has_not_ended_is_not_overlapped_unless_it_is_to_queue(desk: Desk) -> None:
    session_id = await desk.session()
    skips = await desk.add("sleep 30", session_id=session_id, cron="* * * * *")
    queues = await desk.add("sleep 30", session_id=session_id, cron="* * * * *", overlap="queue")
    for _ in range(3):
        desk.clock.wait(MINUTE)
        await desk.look()
    assert await desk.states(skips) == ["skipped", "skipped", "submitted"]
    assert await desk.states(queues) == ["submitted"] * 3
    (newest, _), *_ = await desk.history(skips)
    assert (newest.code, newest.turn_index) == ("session_busy", None)
    assert session_id in (newest.error or "")
    with pytest.raises(SessionBusy):
        await desk.service.run(BY, skips.schedule_id, None)
    await desk.parts.services.turns.cancel(APP, session_id, queued=True)
    desk.clock.wait(MINUTE)
    await desk.look()
    assert (await desk.states(skips))[0] == "submitted"


async def test_a_clock_that_is_set_back_runs_nothing_twice(desk: Desk) -> None:
    row = await desk.add(cron="*/10 * * * *")
    for _ in range(4):
        desk.clock.wait(10 * MINUTE)
        await desk.look()
    before = len(await desk.ended(row))
    desk.clock.set_by(-30 * MINUTE)
    for _ in range(3):
        await desk.look()
        desk.clock.wait(10 * MINUTE)
    await desk.look()
    assert len(await desk.ended(row)) == before, "these times are history already"
    desk.clock.wait(10 * MINUTE)
    await desk.look()
    assert len(await desk.ended(row)) == before + 1


@pytest.mark.parametrize("with_restart", [False, True])
async def test_a_clock_that_was_years_ahead_does_not_leave_a_schedule_waiting_for_years(
    desk: Desk, with_restart: bool
) -> None:
    row = await desk.add()
    await desk.look()
    desk.clock.set_by(3650 * DAY)
    await desk.look()
    assert len(await desk.ended(row)) == 1, "one for all that were missed"
    desk.clock.set_by(-3650 * DAY)
    if with_restart:
        desk.keeper, desk.service = desk.make()
    await desk.look()
    assert to_iso_seconds((await desk.get(row)).next_at) == "2026-06-01T09:00:00Z"
    desk.clock.wait(MINUTE)
    await desk.look()
    assert await desk.states(row) == ["submitted"] * 2


async def test_what_was_missed_for_long_is_not_counted_in_the_event_loop(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def make(row: ScheduleRow, now: int) -> rules.Plan | None:
        threads.append(threading.current_thread())
        return rules.make_plan(row, now)

    monkeypatch.setattr("clawdforge.core.services.timekeeper.make_plan", make)
    row = await desk.add(cron="* * * * *")
    desk.clock.wait(DAY)
    await desk.look()
    assert len(await desk.ended(row)) == 1
    assert threads[0] is not threading.current_thread()


async def test_two_servers_that_look_at_once_make_one_turn(desk: Desk) -> None:
    rows = [await desk.add(), await desk.add(session_id=await desk.session())]
    others = [desk.make()[0] for _ in range(3)]
    desk.clock.wait(MINUTE)
    await asyncio.gather(*(keeper.look() for keeper in (desk.keeper, *others)))
    for row in rows:
        assert await desk.states(row) == ["submitted"]
    page = await desk.store.read(APP, lambda view: view.count_app_sessions())
    assert page == 2, "a session that was not needed is not left behind"


async def test_what_is_refused_is_history_and_not_tried_again(desk: Desk) -> None:
    session_id = await desk.session()
    row = await desk.add(session_id=session_id)
    await desk.parts.services.sessions.close(APP, session_id)
    desk.clock.wait(MINUTE)
    await desk.look()
    ((one, turn),) = await desk.history(row)
    assert (one.state.value, one.code, turn) == ("refused", "session_closed", None)
    await desk.parts.services.sessions.reopen(APP, session_id)
    desk.clock.wait(DAY)
    await desk.look()
    assert await desk.states(row) == ["submitted", "refused"]


async def test_with_its_session_a_schedule_ends_in_words(desk: Desk) -> None:
    session_id = await desk.session()
    row = await desk.add(session_id=session_id)
    await desk.parts.services.sessions.delete(APP, session_id)
    desk.clock.wait(MINUTE)
    await desk.look()
    after = await desk.get(row)
    assert (after.state, after.reason, after.next_at) == (ScheduleState.ENDED, rules.DELETED, None)
    assert await desk.states(row) == ["refused"]
    with pytest.raises(Conflict):
        await desk.change(row, paused=False)
    with pytest.raises(SessionNotFound):
        await desk.change(row, cron="0 10 * * *")


async def test_a_paused_app_has_its_times_after_the_pause(desk: Desk) -> None:
    runs, skips = await desk.add(), await desk.add(missed="skip")
    pauses = desk.parts.services.pauses
    await pauses.pause(PauseRequest(app_name=APP))
    desk.clock.wait(DAY)
    assert await desk.look() == 15.0
    assert await desk.states(runs) == []
    await pauses.resume(ResumeRequest(app_name=APP))
    await desk.look()
    assert (await desk.states(runs), await desk.states(skips)) == (["submitted"], ["missed"])


async def test_a_paused_schedule_does_nothing_and_goes_on_with_the_next_time(desk: Desk) -> None:
    row = await desk.add()
    assert (await desk.change(row, paused=True)).next_at is None
    assert (await desk.change(row, title="still")).state is ScheduleState.PAUSED
    desk.clock.wait(DAY)
    await desk.look()
    assert await desk.states(row) == []
    assert to_iso_seconds((await desk.change(row, paused=False)).next_at) == "2026-06-02T09:00:00Z"


async def test_a_token_that_is_revoked_leaves_nothing_that_acts_for_it(desk: Desk) -> None:
    token = TokenRow(token_id="t1", app_name=APP, hash=b"1", created_at=1, scopes=("prompt",))
    await desk.store.write_system(lambda tx: tx.add_token(token))
    by = replace(BY, token_id="t1")
    made = await desk.add()
    row = await desk.service.change(by, made.schedule_id, ChangeSchedule())
    assert row.token_id == "t1"
    desk.clock.wait(MINUTE)
    await desk.look()
    await desk.ended(row)
    await desk.store.write_system(lambda tx: tx.change_token("t1", revoked_at=desk.clock.at))
    desk.clock.wait(DAY)
    await desk.look()
    (newest, _), _ = await desk.history(row)
    assert (newest.state.value, newest.code) == ("refused", "forbidden")
    await desk.change(row, paused=False)
    desk.clock.wait(DAY)
    await desk.look()
    assert (await desk.states(row))[0] == "submitted"


async def test_it_is_run_by_hand_once_for_each_key(desk: Desk) -> None:
    row = await desk.change(await desk.add(), paused=True)
    one, turn = await desk.service.run(BY, row.schedule_id, "k")
    assert one.by_hand
    assert turn is not None
    again, _ = await desk.service.run(BY, row.schedule_id, "k")
    assert again == one
    await desk.ended(row)
    await desk.service.run(BY, row.schedule_id, None)
    assert await desk.states(row) == ["submitted"] * 2


async def test_what_cannot_work_is_refused_when_it_is_made(desk: Desk) -> None:
    with pytest.raises(UnknownAgent):
        await desk.add(session=CreateSession(agent="nobody"))
    with pytest.raises(SessionNotFound):
        await desk.add(session_id="unknown")
    with pytest.raises(InvalidRequest, match="has passed"):
        await desk.add(at="2026-06-01T08:00")
    made = await desk.parts.services.sessions.create(APP, CreateSession())
    with pytest.raises(Conflict, match="retention"):
        await desk.add(session_id=made.row.session_id)


async def test_there_are_bounds_to_schedules_and_to_their_history(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await desk.add(cron="* * * * *", overlap="queue") for _ in range(rules.MOST_SCHEDULES)]
    with pytest.raises(LimitExceeded, match="clawdforge schedules remove"):
        await desk.add()
    for row in rows[1:]:
        await desk.service.remove(APP, row.schedule_id)
    with pytest.raises(ScheduleNotFound):
        await desk.get(rows[1])
    monkeypatch.setattr(rules, "KEPT", 3)
    session_id = await desk.session()
    await desk.service.remove(APP, rows[0].schedule_id)
    row = await desk.add(cron="* * * * *", overlap="queue", session_id=session_id)
    for _ in range(5):
        desk.clock.wait(MINUTE)
        await desk.look()
    kept = [to_iso_seconds(one.planned_at) for one, _ in await desk.history(row)]
    assert kept == [to_iso_seconds(from_iso("2026-06-01T09:00Z") + n * MINUTE) for n in (4, 3, 2)]


async def test_one_whose_zone_is_gone_ends_in_words_and_harms_no_other(desk: Desk) -> None:
    broken, whole = await desk.add(), await desk.add()
    await desk.store.write(APP, lambda tx: tx.change_schedule(broken.schedule_id, timezone="Mars/Olympus"))
    desk.clock.wait(MINUTE)
    await desk.look()
    after = await desk.get(broken)
    assert (after.state, after.next_at) == (ScheduleState.ENDED, None)
    assert "Mars/Olympus" in (after.reason or "")
    assert await desk.states(whole) == ["submitted"]


async def test_one_that_cannot_be_run_harms_no_other(desk: Desk) -> None:
    broken, whole = await desk.add(), await desk.add()
    damage = {"new_session": {"agent": ["no", "name"]}}
    await desk.store.write(APP, lambda tx: tx.change_schedule(broken.schedule_id, **damage))
    desk.clock.wait(MINUTE)
    await desk.look()
    assert (await desk.states(broken), await desk.states(whole)) == (["refused"], ["submitted"])
