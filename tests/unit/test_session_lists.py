"""Lists of sessions: in the order in which they were updated, though no index moves while one is at work."""

import re
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from clawdforge.core.clock import SystemClock
from clawdforge.core.models.events import draft
from clawdforge.core.models.rows import SessionQuery
from clawdforge.core.ports import Tx
from clawdforge.stores import open_store
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.event import EventType
from clawdforge.wire.session import Activity
from tests.conformance.stores.samples import APP, a_session


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await open_store(tmp_path / "data", SystemClock())
    yield opened
    await opened.close()


async def test_list_pages_come_ready_sorted_from_an_index(store: SqliteStore) -> None:
    seen: list[str] = []

    def note(_cursor: object, sql: str, _bindings: object) -> bool:
        seen.append(sql)
        return True

    reader = store._reader.db
    assert reader is not None
    plans: dict[str, list[str]] = {}
    for query in (
        SessionQuery(),
        SessionQuery(include_closed=False),
        SessionQuery(cursor="WzEsICJhIl0"),
        SessionQuery(include_closed=False, cursor="WzEsICJhIl0"),
        SessionQuery(project="p"),
        SessionQuery(parent="p"),
        *(SessionQuery(activity=one) for one in (Activity.IDLE, Activity.INTERRUPTED, Activity.FAILED)),
        SessionQuery(activity=Activity.FAILED, cursor="WzEsICJhIl0"),
    ):
        reader.connection.exec_trace = note
        await store.read(APP, lambda v, query=query: v.sessions(query))  # type: ignore[misc]
        reader.connection.exec_trace = None
        sql = next(text for text in reversed(seen) if "FROM sessions" in text)
        names = re.findall(r":(\w+)", sql)
        rows = reader.connection.execute("EXPLAIN QUERY PLAN " + sql, dict.fromkeys(names))
        plans[sql] = [row[3] for row in rows]
    walked = set()
    for steps in plans.values():
        for step, after in pairwise([*(step for step in steps if "UNION ALL" not in step), ""]):
            if step.startswith("S"):
                assert step.startswith("SEARCH sessions USING INDEX sessions_"), steps
                index = step.split()[4]
                walked.add(index)
                assert ("B-TREE" in after) is (index == "sessions_at_work"), steps
    assert walked == {
        *("sessions_open", "sessions_ended", "sessions_at_work"),
        *("sessions_of_project", "sessions_of_parent"),
    }


async def test_a_turn_touches_an_index_of_sessions_at_rest_only_at_its_end(store: SqliteStore) -> None:
    """What moves with every event is in none of them, and lists are in the order of it all the same."""

    def listed(view: Any) -> list[tuple[str, int]]:
        rows, _ = view.sessions(SessionQuery(limit=9))
        found = [(row.session_id, row.updated_at) for row in rows]
        assert [
            view.sessions(SessionQuery(activity=row.activity, limit=9))[0].count(row) for row in rows
        ] == [1] * len(rows)
        return found

    def kept(_tx: Tx) -> list[Any]:
        db = store._writer._db
        assert db is not None
        sql = "SELECT session_id, listed_at, listed_as, idle_since FROM sessions ORDER BY 1"
        return db.connection.execute(sql).fetchall()

    for number in (1, 2):
        row = a_session(session_id=f"s-{number}", updated_at=number)
        await store.write(APP, lambda tx, row=row: tx.add_session(row))  # type: ignore[misc]
    assert [name for name, _ in await store.read(APP, listed)] == ["s-2", "s-1"]
    at_rest = await store.write(APP, kept)
    for activity in (Activity.QUEUED, Activity.RUNNING, Activity.WAITING):
        changes = {"activity": activity, "last_turn_at": 5}
        await store.write(APP, lambda tx, changes=changes: tx.change_session("s-1", **changes))  # type: ignore[misc]
        event = draft(EventType.TEXT, 1, 1, {"content": "x"})
        await store.write(APP, lambda tx, event=event: tx.append("s-1", [event]))  # type: ignore[misc]
        found = await store.read(APP, listed)
        assert found[0][0] == "s-1"
        assert found[0][1] > 2
        assert await store.write(APP, kept) == at_rest
    await store.write(APP, lambda tx: tx.change_session("s-1", activity=Activity.FAILED))
    updated = (await store.read(APP, listed))[0][1]
    assert (await store.write(APP, kept))[0] == ("s-1", updated, "failed", 5)
