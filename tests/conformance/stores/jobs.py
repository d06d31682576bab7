"""What a job reads of a session is what it, and whoever came before it, has written."""

from typing import Any

import pytest

from clawdforge.core.ports import Store, Tx
from clawdforge.wire.errors import SessionNotFound
from clawdforge.wire.message import Role
from clawdforge.wire.turn import TurnState
from tests.conformance.stores.samples import APP, a_message, a_turn, make, said


def around(tx: Tx, session_id: str) -> tuple[Any, ...]:
    """The turn that runs, how many wait, what was said last, the prompt that is pending, the last event."""
    session, active = tx.session(session_id), tx.active_turn(session_id)
    assert session is not None
    found = active and active.turn_index, tx.count_queued(session_id), tx.last_spoken_turn(session_id)
    assert tx.head(session_id) == session.head
    return *found, tx.pending_prompt(session_id), session.head


async def test_what_stands_around_a_session_follows_each_write_of_a_job(store: Store) -> None:
    session_id, other = await make(store), await make(store)

    def begin(tx: Tx) -> None:
        assert around(tx, session_id) == (None, 0, 0, None, 0)
        tx.add_turn(a_turn(session_id, 1))
        assert around(tx, session_id) == (None, 1, 0, None, 0)
        tx.change_turn(session_id, 1, state=TurnState.RUNNING)
        assert around(tx, session_id) == (1, 0, 0, None, 0)
        assert tx.add_message(a_message(session_id, role=Role.USER, turn=1, pending=True)) == 1
        assert around(tx, session_id) == (1, 0, 1, 1, 0)
        assert tx.append(session_id, [said("a", 1)]) == 1
        assert around(tx, session_id) == (1, 0, 1, 1, 1)
        assert around(tx, other) == (None, 0, 0, None, 0)

    def go_on(tx: Tx) -> None:
        assert around(tx, session_id) == (1, 0, 1, 1, 1)
        tx.add_turn(a_turn(session_id, 2))
        assert around(tx, session_id) == (1, 1, 1, 1, 1)
        assert tx.add_message(a_message(session_id, role=Role.USER)) == 2, "posted, and no prompt"
        assert around(tx, session_id) == (1, 1, 1, 1, 1)
        tx.change_messages(session_id, [1], pending=False)
        assert around(tx, session_id) == (1, 1, 1, None, 1)
        tx.change_turn(session_id, 1, state=TurnState.ENDED)
        assert around(tx, session_id) == (None, 1, 1, None, 1)

    def cut(tx: Tx) -> None:
        assert around(tx, session_id) == (None, 1, 1, None, 1)
        tx.change_messages(session_id, [1], cut=True)
        assert around(tx, session_id) == (None, 1, 0, None, 1)
        assert (session := tx.session(session_id))
        assert (session.last_message, session.message_count) == (2, 1)
        assert tx.add_message(a_message(session_id, cut=True)) == 3
        assert tx.add_message(a_message(session_id)) == 4
        assert (session := tx.session(session_id))
        assert (session.last_message, session.message_count) == (4, 2)

    for work in (begin, go_on, cut):
        await store.write(APP, work)


async def test_a_turn_that_was_added_before_its_session_is_looked_at_counts(store: Store) -> None:
    session_id = await make(store)

    def work(tx: Tx) -> None:
        tx.add_turn(a_turn(session_id, 1))
        assert around(tx, session_id) == (None, 1, 0, None, 0)

    await store.write(APP, work)


async def test_nobody_has_no_head(store: Store) -> None:
    with pytest.raises(SessionNotFound):
        await store.write(APP, lambda tx: tx.head("nobody"))


async def test_numbers_go_on_where_a_job_that_failed_began(store: Store) -> None:
    """What it has added is gone, and so is what was known of it."""
    session_id = await make(store)

    def fail(tx: Tx) -> None:
        tx.add_message(a_message(session_id, "not kept"))
        tx.audit(session_id, "not kept", 1, {})
        raise KeyError

    def add(tx: Tx) -> int:
        tx.audit(session_id, "kept", 1, {})
        return tx.add_message(a_message(session_id, "kept"))

    with pytest.raises(KeyError):
        await store.write(APP, fail)
    assert [await store.write(APP, add), await store.write(APP, add)] == [1, 2]
    found = await store.read(APP, lambda view: view.search("kept", limit=9))
    assert [hit.seq for hit in found[0]] == [2, 1]
