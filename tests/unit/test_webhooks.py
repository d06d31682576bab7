"""What webhooks are told, over a real store: with the event, again, given up, signed."""

import itertools
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.webhooks import EndpointRow
from clawdforge.core.ports import Tx
from clawdforge.core.rules import webhooks as rules
from clawdforge.core.rules.sessions import close_session
from clawdforge.core.services.webhooks import MOST_ENDPOINTS, WebhookService
from clawdforge.parts import open_parts
from clawdforge.wire.errors import Forbidden, LimitExceeded, WebhookNotFound
from clawdforge.wire.webhooks import ChangeEndpoint, CreateEndpoint, DeliveryState, WebhookEvent
from tests.conformance.stores.samples import APP, OTHER
from tests.unit.budget_desk import Desk
from tests.unit.supervised import make_settings
from tests.unit.webhook_desk import SECRET, URL, Moved, Receivers, add, open_desk, told


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path / "data") as made:
        yield made


async def test_what_ends_a_turn_tells_of_it_and_only_those_who_asked(desk: Desk) -> None:
    await add(desk)
    await add(desk, 2, events=("session.closed",))
    await add(desk, 3, disabled="off")
    await add(desk, 4, app=OTHER)
    await desk.submit()
    await desk.end(tokens=3)
    (row,) = await told(desk)
    body = json.loads(row.body)
    assert (body["type"], row.event, row.session_id) == ("turn.ended", "turn.ended", desk.session.session_id)
    assert body["data"]["outcome"] == "completed"
    assert "four letters" not in row.body, "what was said is not told"
    sid, seq = desk.session.session_id, body["data"]["seq"]
    events = await desk.store.read(APP, lambda v: v.events(sid, after=seq - 1, limit=1, max_bytes=9999))
    assert [event.type for event in events] == ["turn.ended"]
    desk.at += SECOND
    await desk.store.write(APP, lambda tx: close_session(tx, desk.session.session_id, "close", desk.at))
    assert [one.event for one in await told(desk)] == ["turn.ended", "session.closed"]
    assert [one.event for one in await told(desk, "e2")] == ["session.closed"]
    assert await told(desk, "e3") == await told(desk, "e4", OTHER) == []


async def test_nothing_is_told_that_did_not_happen(desk: Desk) -> None:
    await add(desk)

    def work(tx: Tx) -> None:
        close_session(tx, desk.session.session_id, "close", desk.at)
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        await desk.store.write(APP, work)
    assert await told(desk) == []
    await desk.reopen()
    assert await told(desk) == []


async def test_a_budget_tells_once_of_its_warning_and_once_of_its_limit(desk: Desk) -> None:
    await add(desk, events=("budget.crossed",))
    await desk.bound(max_tokens=100, share_tokens=1)
    for _ in range(4):
        await desk.submit()
    for tokens in (50, 35, 15, 20):  # the last was in the queue already when nothing was left
        desk.at += SECOND
        await desk.end(tokens=tokens)
    bodies = [json.loads(row.body)["data"] for row in await told(desk)]
    assert [(one["mark"], one["tokens"]) for one in bodies] == [("warning", 85), ("limit", 100)]


async def test_too_much_that_waits_is_counted_and_not_kept(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_WAITING", 3)
    await add(desk)
    await add(desk, 2)
    for _ in range(2):
        await desk.submit()
        await desk.end(tokens=1)
    assert [len(await told(desk, one)) for one in ("e1", "e2")] == [2, 1]
    await desk.reopen()
    rows = await desk.store.read(APP, lambda view: view.endpoints())
    assert [row.dropped for row in rows] == [0, 1]
    (first, _) = await told(desk)
    await desk.store.write(APP, lambda tx: rules.note_try(tx, first.delivery_id, 200, None, desk.at))
    await desk.submit()
    await desk.end(tokens=1)
    assert [len(await told(desk, one)) for one in ("e1", "e2")] == [3, 1]
    made = await desk.store.read(APP, lambda view: view.delivery(first.delivery_id))
    assert made is not None
    with pytest.raises(LimitExceeded):
        await desk.store.write(APP, lambda tx: rules.send_again(tx, made, desk.at))


async def test_a_delivery_is_tried_for_three_days_with_growing_pauses(desk: Desk) -> None:
    await add(desk)
    await desk.submit()
    await desk.end(tokens=1)
    (row,) = await told(desk)
    at, times = row.next_at, []
    while row.state is DeliveryState.WAITING:
        times.append(at)
        note = partial(rules.note_try, delivery_id=row.delivery_id, status=500, error="no", at=at)
        await desk.store.write(APP, note)
        (row,) = await told(desk)
        at = row.next_at
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 5 * SECOND <= pauses[0] < 6 * SECOND
    grown = pauses[: len(rules.PAUSES)]
    assert grown == sorted(grown)
    assert 2.5 * rules.DAY < times[-1] - times[0] <= 3 * rules.DAY
    assert (row.state, row.attempts, row.status, row.error) == ("dead", len(times), 500, "no")


@pytest.mark.parametrize(
    ("asked", "pause"), [(1, 5), (60, 60), (8 * 3600, 8 * 3600), (999_999_999, 8 * 3600)]
)
async def test_a_receiver_may_ask_for_a_longer_pause_within_bounds(
    desk: Desk, asked: int, pause: int
) -> None:
    await add(desk)
    await desk.submit()
    await desk.end(tokens=1)
    (row,) = await told(desk)
    note = partial(rules.note_try, delivery_id=row.delivery_id, status=503, error="no", at=desk.at)
    await desk.store.write(APP, partial(note, retry_after=asked))
    (row,) = await told(desk)
    assert pause * SECOND <= row.next_at - desk.at < (pause + 1) * SECOND


async def test_410_disables_and_a_late_answer_changes_nothing(desk: Desk) -> None:
    await add(desk)
    await desk.submit()
    await desk.end(tokens=1)
    (row,) = await told(desk)
    await desk.store.write(APP, lambda tx: rules.note_try(tx, row.delivery_id, 410, "gone", desk.at))
    await desk.store.write(APP, lambda tx: rules.note_try(tx, row.delivery_id, 200, None, desk.at))
    (row,) = await told(desk)
    assert (row.state, row.attempts) == ("dead", 1)
    endpoint = await desk.store.read(APP, lambda view: view.endpoint("e1"))
    assert endpoint is not None
    assert endpoint.disabled == "it answered 410 Gone"


async def test_410_does_not_bring_back_what_is_being_removed(desk: Desk) -> None:
    await add(desk)
    await desk.submit()
    await desk.end(tokens=1)
    (row,) = await told(desk)
    await desk.store.write(APP, lambda tx: tx.change_endpoint("e1", disabled=rules.BEING_REMOVED))
    await desk.store.write(APP, lambda tx: rules.note_try(tx, row.delivery_id, 410, "gone", desk.at))
    found = await desk.store.read_system(lambda view: view.endpoints_off(rules.BEING_REMOVED))
    assert found == [(APP, "e1")]
    assert [one.state for one in await told(desk)] == ["dead"]


def test_the_standards_own_library_verifies_with_each_secret_while_they_change() -> None:
    clock = SystemClock()
    now, old = clock.now(), "whsec_" + "b2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xk"
    row = EndpointRow(
        app_name=APP,
        endpoint_id="e",
        url=URL,
        events=(),
        secret=SECRET,
        old_secret=old,
        old_until=now + SECOND,
        created_at=1,
    )
    assert SECRET not in repr(row)
    body = '{"a": "ü"}'.encode()
    headers = rules.sign(row, "msg_1", body, now)
    for secret in (SECRET, old):
        assert Webhook(secret).verify(body, headers) == {"a": "ü"}
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body + b" ", headers)
    later = rules.sign(row, "msg_1", body, now + 2 * SECOND)
    Webhook(SECRET).verify(body, later)
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(body, later)


async def test_an_app_has_so_many_and_another_app_none_of_them(desk: Desk) -> None:
    service = WebhookService(desk.store, Moved(), Receivers(), lambda: None)
    made = [await service.create(APP, CreateEndpoint(url=URL)) for _ in range(MOST_ENDPOINTS)]
    with pytest.raises(LimitExceeded):
        await service.create(APP, CreateEndpoint(url=URL))
    await desk.reopen()
    service = WebhookService(desk.store, Moved(), Receivers(), lambda: None)
    with pytest.raises(LimitExceeded):
        await service.create(APP, CreateEndpoint(url=URL))
    one = made[0].endpoint_id
    for unknown in (
        service.change(OTHER, one, ChangeEndpoint(enabled=False)),
        service.rotate(OTHER, one, 9),
        service.remove(OTHER, one),
        service.deliveries(OTHER, one, None, 9, None),
        service.resend(OTHER, one, "msg"),
    ):
        with pytest.raises(WebhookNotFound):
            await unknown
    assert await service.endpoints(OTHER) == []
    await service.remove(APP, one)
    assert len(await service.endpoints(APP)) == MOST_ENDPOINTS - 1
    audit = await desk.store.read_system(lambda view: view.audit(app_name=APP))
    assert "/hook" not in repr(audit), "a path may be a secret"
    assert made[0].secret not in repr(audit)


async def test_while_they_are_off_there_are_no_new_ones(desk: Desk) -> None:
    service = WebhookService(desk.store, Moved(), None, lambda: None)
    with pytest.raises(Forbidden, match="CLAWDFORGE_WEBHOOKS"):
        await service.create(APP, CreateEndpoint(url=URL))


async def test_old_deliveries_go_and_those_that_wait_stay(desk: Desk) -> None:
    await add(desk)
    for number in range(3):
        await desk.store.write(
            APP,
            lambda tx, n=number: rules.tell(tx, WebhookEvent.SESSION_CLOSED, n + 1, {"n": n}),  # type: ignore[misc]
        )
    rows = await told(desk)
    for at, row in ((10, rows[0]), (11, rows[1])):
        await desk.store.write(APP, lambda tx, i=row.delivery_id, t=at: rules.note_try(tx, i, 200, None, t))  # type: ignore[misc]
    assert await desk.store.write_system(lambda tx: tx.remove_deliveries(11, 9)) == 1
    assert [row.delivery_id for row in await told(desk)] == [rows[1].delivery_id, rows[2].delivery_id]
    pages = [
        await desk.store.read(APP, lambda v, s=state: v.deliveries("e1", state=s, limit=1, cursor=None))  # type: ignore[misc]
        for state in (None, DeliveryState.DELIVERED)
    ]
    assert [(page[0].delivery_id, following is None) for page, following in pages] == [
        (rows[2].delivery_id, False),
        (rows[1].delivery_id, True),
    ]
    cursor = pages[0][1]
    rest, following = await desk.store.read(
        APP, lambda v: v.deliveries("e1", state=None, limit=5, cursor=cursor)
    )
    assert ([one.delivery_id for one in rest], following) == ([rows[1].delivery_id], None)


async def test_a_removal_that_was_cut_off_is_ended_by_the_sweeper(tmp_path: Path) -> None:
    async with open_parts(make_settings(tmp_path)) as parts:
        service, sweeper = parts.services.webhooks, parts.services.sweeper
        store = sweeper._store
        row = EndpointRow(app_name=APP, endpoint_id="e1", url=URL, events=(), secret=SECRET, created_at=1)
        await store.write(APP, lambda tx: tx.add_endpoint(row))
        await store.write(APP, lambda tx: tx.change_endpoint("e1", disabled=rules.BEING_REMOVED))
        assert await service.endpoints(APP) == []
        with pytest.raises(WebhookNotFound):
            await service.change(APP, "e1", ChangeEndpoint(enabled=True))
        assert len(await store.read(APP, lambda view: view.endpoints())) == 1
        await sweeper.sweep()
        assert await store.read(APP, lambda view: view.endpoints()) == []
        await parts.supervisor.stop(0)
