"""A schedule is removed with its history in one transaction: whoever looks finds all of it or nothing."""

import asyncio
from pathlib import Path

from clawdforge.core.models.schedules import OccurrenceRow
from clawdforge.core.ports import Tx, View
from clawdforge.wire.schedules import OccurrenceState
from tests.unit.schedule_desk import MINUTE, open_desk
from tests.unit.supervised import APP

TIMES = 450


async def test_nobody_ever_sees_half_of_a_removal(tmp_path: Path) -> None:
    """What a reader can see is what a crash can leave."""
    async with open_desk(tmp_path) as desk:
        row = await desk.add()

        def fill(tx: Tx) -> None:
            for number in range(TIMES):
                at = row.created_at + number * MINUTE
                one = OccurrenceRow(
                    app_name=APP,
                    schedule_id=row.schedule_id,
                    occurrence_id=f"o{number}",
                    planned_at=at,
                    noted_at=at,
                    state=OccurrenceState.MISSED,
                )
                tx.add_occurrence(one)

        def look(view: View) -> tuple[str | None, int]:
            found = view.schedule(row.schedule_id)
            history, _ = view.occurrences(row.schedule_id, limit=TIMES, cursor=None)
            return None if found is None else found.state.value, len(history)

        await desk.store.write(APP, fill)
        seen = {await desk.store.read(APP, look)}
        removing = asyncio.create_task(desk.service.remove(APP, row.schedule_id))
        while not removing.done():
            await asyncio.sleep(0)  # a read gives nobody else a turn
            seen.add(await desk.store.read(APP, look))
        await removing
        seen.add(await desk.store.read(APP, look))
        assert seen == {("on", TIMES), (None, 0)}
