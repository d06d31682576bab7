"""Schedules as every store keeps them: what is due in which order, pages, and a history with an end."""

from typing import Any

from clawdforge.core.models.rows import PauseRow
from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.core.ports import Store, Tx
from clawdforge.wire.schedules import Missed, OccurrenceState, Overlap
from tests.conformance.stores.samples import APP, OTHER


def a_schedule(number: int, app: str = APP, **fields: Any) -> ScheduleRow:
    given = {"timezone": "UTC", "overlap": Overlap.QUEUE, "missed": Missed.RUN_ONCE, "next_at": number}
    return ScheduleRow(
        app_name=app, schedule_id=f"c{number}", prompt="p", created_at=number, **{**given, **fields}
    )


def a_time(number: int, **fields: Any) -> OccurrenceRow:
    state = OccurrenceState.SUBMITTED
    return OccurrenceRow(
        app_name=APP,
        schedule_id="c1",
        occurrence_id=f"o{number}",
        planned_at=number,
        noted_at=number,
        **{"state": state, **fields},
    )


async def fill(store: Store) -> None:
    for number in (3, 1, 2):
        await store.write(APP, lambda tx, n=number: tx.add_schedule(a_schedule(n)))  # type: ignore[misc]
    await store.write(OTHER, lambda tx: tx.add_schedule(a_schedule(1, OTHER)))
    await store.write(OTHER, lambda tx: tx.add_schedule(a_schedule(9, OTHER, next_at=None)))


async def due(store: Store, now: int, limit: int = 9) -> list[tuple[str, str, int]]:
    found = await store.read_system(lambda v: v.due_schedules(now, limit))
    return [(one.app, one.schedule_id, one.next_at) for one in found]


async def test_schedules_are_due_by_their_times_and_not_in_a_paused_app(store: Store) -> None:
    await fill(store)
    first = sorted([(APP, "c1", 1), (OTHER, "c1", 1)])
    assert await due(store, 0) == []
    assert await due(store, 2) == [*first, (APP, "c2", 2)]
    assert await due(store, 2, limit=1) == first[:1]
    assert await store.read_system(lambda v: v.first_schedule()) == 1
    await store.write_system(lambda tx: tx.put_pause(PauseRow(app_name=APP, agent="demo", paused_at=1)))
    assert len(await due(store, 9)) == 4, "a pause of one agent is for the turn to find"
    await store.write_system(lambda tx: tx.put_pause(PauseRow(app_name=OTHER, paused_at=1)))
    assert await due(store, 9) == [(APP, f"c{n}", n) for n in (1, 2, 3)]
    await store.write_system(lambda tx: tx.put_pause(PauseRow(paused_at=1)))
    assert await due(store, 9) == []
    assert await store.read_system(lambda v: v.first_schedule()) is None


async def test_all_schedules_with_a_time_before_them_are_walked_in_pages(store: Store) -> None:
    await fill(store)
    last, seen = ("", ""), []
    while page := await store.read_system(lambda v, at=last: v.waiting_schedules(at, 2)):  # type: ignore[misc]
        seen += [(one.app, one.schedule_id) for one in page]
        last = seen[-1]
    assert seen == sorted([(APP, "c1"), (APP, "c2"), (APP, "c3"), (OTHER, "c1")])


async def test_a_schedule_is_kept_as_it_is_and_listed_in_pages(store: Store) -> None:
    await fill(store)
    whole = a_schedule(
        4,
        cron="0 9 * * *",
        at=5,
        new_session={"agent": "demo"},
        may_decide=True,
        last_session="s",
        last_turn=7,
    )
    await store.write(APP, lambda tx: tx.add_schedule(whole))
    assert await store.read(APP, lambda v: v.schedule("c4")) == whole
    page, cursor = await store.read(APP, lambda v: v.schedules(limit=3, cursor=None))
    rest, end = await store.read(APP, lambda v: v.schedules(limit=3, cursor=cursor))
    assert [row.schedule_id for row in [*page, *rest]] == ["c1", "c2", "c3", "c4"]
    assert end is None
    assert await store.read(APP, lambda v: v.count_schedules()) == 4


async def test_a_history_has_an_end_and_goes_with_its_schedule(store: Store) -> None:
    await fill(store)

    def note(tx: Tx) -> None:
        for number in range(10):
            tx.add_occurrence(a_time(number, error="e" if number else None, turn_index=number, missed=2))
        tx.trim_occurrences("c1", 7)
        tx.trim_occurrences("c1", 7)

    await store.write(APP, note)
    page, cursor = await store.read(APP, lambda v: v.occurrences("c1", limit=5, cursor=None))
    rest, end = await store.read(APP, lambda v: v.occurrences("c1", limit=5, cursor=cursor))
    assert [row.planned_at for row in [*page, *rest]] == [9, 8, 7, 6, 5, 4, 3]
    assert (page[0], end) == (a_time(9, error="e", turn_index=9, missed=2), None)
    assert await store.read(APP, lambda v: v.occurrence("c1", "o3")) is not None
    assert await store.read(APP, lambda v: v.occurrence("c1", "o2")) is None
    await store.write(APP, lambda tx: tx.remove_schedule("c1"))
    assert await store.read(APP, lambda v: (v.schedule("c1"), v.occurrence("c1", "o9"))) == (None, None)
    assert await store.read(OTHER, lambda v: v.schedule("c1")) is not None
