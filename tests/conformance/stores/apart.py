"""Apps do not see each other: every method is tried with another app's ids, and with unknown ones.

The tables name a call for each method of the ports, so that a method that is added must be added here.
"""

from collections.abc import Callable
from typing import Any

import pytest

from clawdforge.core.models.blobs import BlobState
from clawdforge.core.models.budgets import PurseRow
from clawdforge.core.models.rows import RunRow, SessionQuery
from clawdforge.core.models.usage import DayUsage, UsageQuery
from clawdforge.core.ports import Store, Tx, View
from clawdforge.wire.disk import DiskForm
from clawdforge.wire.errors import NotFound
from clawdforge.wire.session import Activity
from clawdforge.wire.turn import Outcome, TurnState
from clawdforge.wire.usage import UsageBy
from clawdforge.wire.webhooks import DeliveryState
from tests.conformance.stores.apart_samples import (
    a_blob,
    a_budget,
    a_delivery,
    a_link,
    a_persona,
    a_publication,
    a_reservation,
    a_schedule,
    a_wish,
    an_endpoint,
    an_occurrence,
)
from tests.conformance.stores.samples import (
    APP,
    NO_LIMIT,
    OTHER,
    a_file,
    a_message,
    a_permission,
    a_session,
    a_turn,
    make,
    said,
)

USED = DayUsage(day="2026-11-16", agent="demo", input_tokens=3)
USAGE = UsageQuery(by=frozenset(UsageBy), first="2026-11-01", last="2026-11-30", limit=9)
PAGE: dict[str, int] = {"after": 0, "limit": 9, "max_bytes": NO_LIMIT}

READS: dict[str, Callable[[View, str], Any]] = {
    "app_row": lambda v, _: v.app_row(),
    "budgets": lambda v, _: v.budgets(),
    "budgets_for": lambda v, s: v.budgets_for("token", [s]),
    "budget": lambda v, s: v.budget(f"b-{s}"),
    "purse": lambda v, s: v.purse(f"b-{s}", 0),
    "reservations": lambda v, s: v.reservations(s, 1),
    "change_bounds": lambda v, _: v.change_bounds(),
    "changes": lambda v, _: v.changes(after=0, limit=9),
    "session": lambda v, s: v.session(s),
    "sessions": lambda v, s: v.sessions(SessionQuery(prefix=s[:6])),
    "count_app_sessions": lambda v, _: v.count_app_sessions(),
    "count_ttl_sessions": lambda v, _: v.count_ttl_sessions(),
    "turn": lambda v, s: v.turn(s, 1),
    "turn_outline": lambda v, s: v.turn_outline(s, 1),
    "turns": lambda v, s: v.turns(s),
    "turn_page": lambda v, s: v.turn_page(s, **PAGE),
    "turns_from": lambda v, s: v.turns_from(s, 1),
    "active_turn": lambda v, s: v.active_turn(s),
    "queued_turns": lambda v, s: v.queued_turns(s),
    "count_queued": lambda v, s: v.count_queued(s),
    "next_queued": lambda v, s: v.next_queued(s, ["interrupt"]),
    "queue": lambda v, s: v.queue(s, ["interrupt"]),
    "turn_by_key": lambda v, s: v.turn_by_key(s, "key"),
    "turns_in_flight": lambda v, _: v.turns_in_flight(),
    "events": lambda v, s: v.events(s, **PAGE),
    "count_brought": lambda v, s: v.count_brought(s),
    "last_ended_seq": lambda v, s: v.last_ended_seq(s, 9),
    "turn_events": lambda v, s: v.turn_events(s, 1, **PAGE),
    "messages": lambda v, s: v.messages(s, show="all"),
    "message_page": lambda v, s: v.message_page(s, **PAGE, show="all"),
    "message_page_before": lambda v, s: v.message_page_before(
        s, before=None, limit=9, max_bytes=NO_LIMIT, show="all"
    ),
    "has_message_before": lambda v, s: v.has_message_before(s, 9, show="all"),
    "has_message_after": lambda v, s: v.has_message_after(s, 0, show="all"),
    "last_messages": lambda v, s: v.last_messages(s, 9),
    "last_message": lambda v, s: v.last_message(s, "user"),
    "pending_prompt": lambda v, s: v.pending_prompt(s),
    "last_spoken_turn": lambda v, s: v.last_spoken_turn(s),
    "messages_from": lambda v, s: v.messages_from(s, 1),
    "last_prompts": lambda v, s: v.last_prompts(s, 1),
    "numbers_from": lambda v, s: v.numbers_from(s, 1),
    "last_of_fork": lambda v, s: v.last_of_fork(s, 1),
    "fits_at_once": lambda v, s: v.fits_at_once(s, [1]),
    "has_finished_changes": lambda v, s: v.has_finished_changes(s),
    "permission": lambda v, s: v.permission(s, f"p-{s}"),
    "count_pending": lambda v, s: v.count_pending(s),
    "turn_nodes": lambda v, s: v.turn_nodes(s, after=0, limit=9, chars=9),
    "turn_before": lambda v, s: v.turn_before(s, 9),
    "failed_turns": lambda v, s: v.failed_turns(s, after=0),
    "models": lambda v, _: v.models(9),
    "seq_at": lambda v, s: v.seq_at(s, 0),
    "forks_after": lambda v, s: v.forks_after(s, after=0, last=9, limit=9),
    "pending_permissions": lambda v, _: v.pending_permissions(limit=9, max_bytes=NO_LIMIT),
    "permissions": lambda v, s: v.permissions(s),
    "is_granted": lambda v, s: v.is_granted(s, "bash", "execute"),
    "file": lambda v, s: v.file(f"ff-{s}"),
    "file_beginning": lambda v, s: v.file_beginning(f"ff-{s}"),
    "stored_bytes": lambda v, _: v.stored_bytes(),
    "persona": lambda v, s: v.persona(f"n-{s}"),
    "personas": lambda v, _: v.personas(),
    "secrets": lambda v, _: v.secrets(),
    "links": lambda v, s: v.links(s),
    "endpoints": lambda v, _: v.endpoints(),
    "endpoint": lambda v, s: v.endpoint(f"e-{s}"),
    "delivery": lambda v, s: v.delivery(f"d-{s}"),
    "deliveries": lambda v, s: [
        v.deliveries(f"e-{s}", state=state, limit=9, cursor=None) for state in (None, DeliveryState.WAITING)
    ],
    "due_deliveries": lambda v, s: v.due_deliveries(f"e-{s}", 9, 99, 9),
    "count_waiting": lambda v, _: v.count_waiting(),
    "schedule": lambda v, s: v.schedule(f"c-{s}"),
    "schedules": lambda v, _: v.schedules(limit=9, cursor=None),
    "count_schedules": lambda v, _: v.count_schedules(),
    "occurrence": lambda v, s: v.occurrence(f"c-{s}", "o"),
    "occurrences": lambda v, s: v.occurrences(f"c-{s}", limit=9, cursor=None),
    "usage_sums": lambda v, _: v.usage_sums(USAGE),
    "publication": lambda v, s: v.publication(s),
    "find_blobs": lambda v, s: v.find_blobs([f"digest-{s}"]),
    "blob_data": lambda v, s: v.blob_data(f"place-{s}"),
    "search": lambda v, s: (v.search("needle", limit=9), v.search("needle", limit=9, session_id=s)),
}
OF_ALL_APPS = {"count_open_sessions", "is_alive", "is_taken", "node_with", "folder_of", "pauses"}

WRITES: dict[str, Callable[[Tx, str], Any]] = {
    "change_session": lambda t, s: t.change_session(s, title="mine now"),
    "append": lambda t, s: t.append(s, [said("intruder")]),
    "head": lambda t, s: t.head(s),
    "claim": lambda t, s: t.claim(s, "intruder"),
    "add_turn": lambda t, s: t.add_turn(a_turn(s, 3)),
    "change_turn": lambda t, s: t.change_turn(s, 1, cut=True),
    "add_message": lambda t, s: t.add_message(a_message(s)),
    "change_messages": lambda t, s: t.change_messages(s, [1], cut=True),
    "archive_messages": lambda t, s: t.archive_messages(s),
    "hide_messages": lambda t, s: t.hide_messages(s, [1], [1]),
    "show_messages": lambda t, s: t.show_messages(s, [1], [1]),
    "restore_slice": lambda t, s: t.restore_slice(s, [1], [1], 0),
    "finish_change": lambda t, s: t.finish_change(s),
    "bring": lambda t, s: t.bring(s, after=0, last=9, turns=[1]),
    "reveal_session": lambda t, s: t.reveal_session(s),
    "refresh_index": lambda t, _: t.refresh_index(),
    "forget_changes": lambda t, _: t.forget_changes(2**62, 9),
    "forget_usage": lambda t, _: t.forget_usage("9999-12-31", 9),
    "add_permission": lambda t, s: t.add_permission(a_permission(s, f"new-{s}")),
    "change_permission": lambda t, s: t.change_permission(s, f"p-{s}", state="expired"),
    "remove_file": lambda t, s: t.remove_file(f"ff-{s}"),
    "remove_persona": lambda t, s: t.remove_persona(f"n-{s}"),
    "set_file_bytes": lambda t, s: t.set_file_bytes(s, {DiskForm.HOMES: 9}),
    "purge": lambda t, s: t.purge(s, 10_000),
    "add_link": lambda t, s: t.add_link(a_link(s, f"new-{s}")),
    "add_wish": lambda t, s: t.add_wish(a_wish(s)),
    "remove_link": lambda t, s: t.remove_link(s, f"l-{s}"),
    "change_endpoint": lambda t, s: t.change_endpoint(f"e-{s}", url="https://mine"),
    "remove_endpoint": lambda t, s: t.remove_endpoint(f"e-{s}", 9),
    "change_delivery": lambda t, s: t.change_delivery(f"d-{s}", attempts=9),
    "change_schedule": lambda t, s: t.change_schedule(f"c-{s}", title="mine"),
    "remove_schedule": lambda t, s: t.remove_schedule(f"c-{s}"),
    "trim_occurrences": lambda t, s: t.trim_occurrences(f"c-{s}", 0),
    "remove_budget": lambda t, s: t.remove_budget(f"b-{s}"),
    "remove_old_purses": lambda t, s: t.remove_old_purses(f"b-{s}", 99),
    "remove_reservations": lambda t, s: t.remove_reservations(s, 1),
    "drop_blob_data": lambda t, s: t.drop_blob_data([f"place-{s}"]),
    "mark_stored": lambda t, s: t.mark_stored([f"pending-{s}"]),
    "use_blobs": lambda t, s: t.use_blobs(s, [f"place-{s}"], 1),
    "publish": lambda t, s: t.publish(a_publication(s, 9)),
}
OWN_ROWS: dict[str, Callable[[Tx], Any]] = {
    "put_budget": lambda t: t.put_budget(a_budget("new")),
    "put_purse": lambda t: t.put_purse(PurseRow(app_name=APP, budget_id="b", starts_at=0)),
    "put_reservation": lambda t: t.put_reservation(a_reservation("new")),
    "add_endpoint": lambda t: t.add_endpoint(an_endpoint("new")),
    "add_delivery": lambda t: t.add_delivery(a_delivery("new")),
    "add_schedule": lambda t: t.add_schedule(a_schedule("new")),
    "add_occurrence": lambda t: t.add_occurrence(an_occurrence("new")),
    "add_session": lambda t: t.add_session(a_session()),
    "add_blobs": lambda t: t.add_blobs([a_blob("new", BlobState.PENDING)]),
    "add_file": lambda t: t.add_file(a_file("ff-new")),
    "put_persona": lambda t: t.put_persona(a_persona("new")),
    "add_run": lambda t: t.add_run(
        RunRow(
            run_id="r",
            app_name=APP,
            model=None,
            prompt="p",
            ok=True,
            stop_reason="s",
            duration_ms=1,
            created_at=1,
        )
    ),
}
CHECKED_BELOW = {"audit", "copy_history", "add_usage", "keep_blob_data"}


def _methods(port: type) -> set[str]:
    return {name for name in dir(port) if not name.startswith("_") and callable(getattr(port, name))}


async def furnished(store: Store) -> str:
    """A session of APP with something in every table."""
    sid = await make(store)
    await store.write_system(lambda tx: tx.put_secret(APP, "KEY", "secret"))

    def fill(tx: Tx) -> None:
        tx.add_turn(a_turn(sid, 1, state=TurnState.RUNNING, key="key", first_seq=1))
        tx.add_turn(a_turn(sid, 2))
        tx.change_session(sid, activity=Activity.RUNNING)
        tx.add_turn(a_turn(sid, 4, state=TurnState.ENDED, ended_at=8, first_seq=1, last_seq=1))
        broken = {"state": TurnState.ENDED, "outcome": Outcome.FAILED, "started_at": 7, "ended_at": 8}
        tx.add_turn(a_turn(sid, 5, **broken, first_seq=1, last_seq=1))
        tx.add_message(a_message(sid, "broken off", turn=5))
        tx.append(sid, [said("secret", 1)])
        tx.add_message(a_message(sid, "needle secret", turn=1, pending=True))
        tx.bring(sid, after=0, last=9, turns=[])
        tx.add_permission(a_permission(sid, f"p-{sid}", state="decided", decision="allow_always"))
        tx.add_permission(a_permission(sid, f"q-{sid}"))
        tx.add_session(a_session(forked_from=sid, forked_after=1, model="m"))
        tx.add_file(a_file(f"ff-{sid}"))
        tx.put_persona(a_persona(f"n-{sid}"))
        tx.add_link(a_link(sid, f"l-{sid}", APP))
        tx.add_endpoint(an_endpoint(sid))
        tx.add_delivery(a_delivery(sid))
        tx.add_schedule(a_schedule(sid))
        tx.add_occurrence(an_occurrence(sid))
        tx.add_usage(USED)
        tx.put_budget(a_budget(sid))
        tx.put_purse(PurseRow(app_name=APP, budget_id=f"b-{sid}", starts_at=0))
        tx.put_reservation(a_reservation(sid))
        tx.add_blobs([a_blob(sid, BlobState.STORED), a_blob(sid, BlobState.PENDING)])
        tx.keep_blob_data(f"place-{sid}", b"x")
        tx.use_blobs(sid, [f"place-{sid}"], 1)
        tx.publish(a_publication(sid, 1))

    await store.write(APP, fill)
    return sid


def picture(view: View, session_id: str) -> dict[str, Any]:
    return {name: call(view, session_id) for name, call in READS.items()}


async def test_every_method_is_tried(store: Store) -> None:
    assert store.health() is None
    assert _methods(View) == READS.keys() | OF_ALL_APPS
    assert _methods(Tx) - _methods(View) == WRITES.keys() | OWN_ROWS.keys() | CHECKED_BELOW


@pytest.mark.parametrize("name", sorted(READS))
async def test_reading_with_a_foreign_id_is_reading_with_an_unknown_one(store: Store, name: str) -> None:
    sid = await furnished(store)
    unknown = "0" * len(sid)
    mine, foreign, nothing = [
        await store.read(app, lambda v, s=session: READS[name](v, s))  # type: ignore[misc]
        for app, session in ((APP, sid), (OTHER, sid), (OTHER, unknown))
    ]
    assert foreign == nothing
    assert mine != foreign or name == "app_row"


@pytest.mark.parametrize("name", sorted(WRITES))
async def test_writing_with_a_foreign_id_is_writing_with_an_unknown_one(store: Store, name: str) -> None:
    sid = await furnished(store)
    before = await store.read(APP, lambda v: picture(v, sid))
    answers = []
    for session_id in (sid, "0" * len(sid)):
        try:
            answers.append(await store.write(OTHER, lambda tx, s=session_id: WRITES[name](tx, s)))  # type: ignore[misc]
        except NotFound as error:
            answers.append((type(error), error.message))
    assert answers[0] == answers[1]
    assert await store.read(APP, lambda v: picture(v, sid)) == before


@pytest.mark.parametrize("name", sorted(OWN_ROWS))
async def test_a_row_of_another_app_is_refused(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match=APP):
        await store.write(OTHER, OWN_ROWS[name])


async def test_what_an_app_uses_is_counted_for_it_alone(store: Store) -> None:
    for app in (APP, OTHER, APP):
        await store.write(app, lambda tx: tx.add_usage(USED))
    for app, turns in ((APP, 2), (OTHER, 1)):
        rows, _ = await store.read(app, lambda view: view.usage_sums(USAGE))
        assert [(row.app, row.turns, row.input_tokens) for row in rows] == [(app, turns, 3 * turns)]
    of_all, _ = await store.read_system(lambda view: view.usage_sums(USAGE))
    assert [(row.app, row.turns) for row in of_all] == sorted([(APP, 2), (OTHER, 1)])
    for app, left in ((APP, [OTHER]), (OTHER, [])):
        found = await store.read_system(lambda view: view.apps_with_old_usage("9999-12-31"))
        assert found == sorted([app, *left])
        assert await store.write(app, lambda tx: tx.forget_usage("9999-12-31", 9))


async def test_history_is_copied_neither_from_nor_to_another_app(store: Store) -> None:
    sid = await furnished(store)
    own = await make(store, a_session(app_name=OTHER))
    before = await store.read(APP, lambda v: picture(v, sid))
    for source, target in ((sid, own), (own, sid)):
        with pytest.raises(NotFound):
            await store.write(
                OTHER,
                lambda tx, s=source, t=target: tx.copy_history(s, t, after=0, through=9, at=1),  # type: ignore[misc]
            )
    assert await store.read(APP, lambda v: picture(v, sid)) == before
    assert await store.read(OTHER, lambda v: (v.messages(own), v.turns(own))) == ([], [])


async def test_the_ledger_names_the_app_of_the_transaction(store: Store) -> None:
    await store.write(OTHER, lambda tx: tx.audit("s", "create", 1, {}))
    entries = await store.read_system(lambda v: (v.audit(app_name=APP), v.audit(app_name=OTHER)))
    assert [len(found) for found in entries] == [0, 1]


async def test_an_event_goes_to_the_app_that_wrote_it(store: Store) -> None:
    sid = await furnished(store)
    with pytest.raises(NotFound):
        await store.write(OTHER, lambda tx: tx.append(sid, [said("x")], fence=0))
    assert len(await store.read(APP, lambda v: v.events(sid, **PAGE))) == 1
