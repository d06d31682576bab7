"""The database of the simulation: what it remembers is what one that remembers nothing would answer."""

from collections.abc import Iterator
from unittest import mock

import pytest

from clawdforge.stores.sqlite.connection import Db
from clawdforge.stores.sqlite.rows import Value
from proofs.simulation.database import SimDb
from proofs.simulation.plans import draw_plan
from proofs.simulation.run import simulate

NAMES = "SELECT name FROM personas WHERE app_name = :app ORDER BY name"
ADD = "INSERT INTO personas (app_name, name, agent, created_at) VALUES (:app, :name, 'sim', 0)"


@pytest.fixture
def db() -> Iterator[SimDb]:
    db = SimDb()
    db.begin()
    yield db
    db.connection.close(True)


def names(db: SimDb) -> list[object]:
    return [row[0] for row in db.rows(NAMES, {"app": "red"})]


def add(db: SimDb, name: str) -> None:
    db.run(ADD, {"app": "red", "name": name})


def test_an_answer_holds_until_something_changes(db: SimDb) -> None:
    with mock.patch.object(Db, "rows", autospec=True, side_effect=Db.rows) as asked:
        assert names(db) == names(db) == []
        assert asked.call_count == 1
        add(db, "one")
        assert names(db) == names(db) == ["one"]
        assert asked.call_count == 2


def test_a_caller_may_change_the_list_that_it_got(db: SimDb) -> None:
    add(db, "one")
    db.rows(NAMES, {"app": "red"}).clear()
    assert names(db) == ["one"]


def test_what_was_attempted_in_vain_is_forgotten(db: SimDb) -> None:
    def fail() -> None:
        add(db, "one")
        assert names(db) == ["one"]
        raise KeyError

    with pytest.raises(KeyError):
        db.attempt(fail)
    assert names(db) == []


def test_the_next_schedule_finds_a_new_database(db: SimDb) -> None:
    add(db, "one")
    assert names(db) == ["one"]
    db.begin()
    assert names(db) == []


def test_a_change_that_answers_is_made_each_time(db: SimDb) -> None:
    add(db, "")
    longer = "UPDATE personas SET name = name || 'x' WHERE app_name = :app RETURNING name"
    assert [db.row(longer, {"app": "red"}) for _ in range(3)] == [("x",), ("xx",), ("xxx",)]


def test_schedules_are_the_same_with_a_database_that_remembers_nothing(db: SimDb) -> None:
    def ask(db: Db, sql: str, params: dict[str, Value]) -> object:
        return Db.row(db, sql, params)

    plans = [draw_plan(seed) for seed in range(900, 915)]
    first = [simulate(plan, db, traced=True).trace for plan in plans]
    with mock.patch.object(SimDb, "row", ask), mock.patch.object(SimDb, "rows", Db.rows):
        assert [simulate(plan, db, traced=True).trace for plan in plans] == first
