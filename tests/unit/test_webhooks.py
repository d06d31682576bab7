"""What webhooks are told and when, over a real store: with the event, again, given up, signed."""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from clawdforge.core.model import SECOND, SystemClock
from clawdforge.core.ports import Tx, View
from clawdforge.core.ports.webhooks import Undelivered
from clawdforge.core.rules import webhooks as rules
from clawdforge.core.rules.retention import Ages
from clawdforge.core.rules.sessions import close_session
from clawdforge.core.services import sweeper as sweeping
from clawdforge.core.services.courier import PLACES, PLACES_OF_APP, PLACES_OF_ENDPOINT, Courier
from clawdforge.core.services.files import FileService
from clawdforge.core.services.webhooks import MOST_ENDPOINTS, WebhookService
from clawdforge.core.webhook_model import DeliveryRow, EndpointRow
from clawdforge.wire.errors import Conflict, DeliveryNotFound, Forbidden, LimitExceeded, WebhookNotFound
from clawdforge.wire.webhooks import ChangeEndpoint, CreateEndpoint, DeliveryState, WebhookEvent
from tests.conformance.stores.samples import APP, OTHER
from tests.unit.budget_desk import Desk

URL = "https://receiver.test/hook"
SECRET = "whsec_" + "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"


class Moved(SystemClock):
    """A clock that the test moves."""

    at = 1_000_000 * SECOND

    def now(self) -> int:
        return self.at


class Receivers:
    """The network in one place: what was sent, and what is answered."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: Callable[[], int] = lambda: 204
        self.gate: asyncio.Event | None = None
        self.open = 0
        self.most_open = 0

    def check(self, url: str) -> None:
        if "inside" in url:
            raise Undelivered("not there")

    async def post(self, url: str, headers: Any, body: bytes) -> int:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            self.sent.append((url, dict(headers), body))
            if self.gate is not None:
                await self.gate.wait()
            return self.answer()
        finally:
            self.open -= 1


class Hanging(Receivers):
    """Whatever goes to a host that hangs does not end before the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[asyncio.Event] = []
        self.now_of: Counter[str] = Counter()
        self.most_of: Counter[str] = Counter()

    def end_one(self) -> None:
        self.held.pop(0).set()

    async def post(self, url: str, headers: Any, body: bytes) -> int:
        self.now_of[url] += 1
        self.most_of[url] = max(self.most_of[url], self.now_of[url])
        try:
            if "hangs" not in url:
                return await super().post(url, headers, body)
            self.open += 1
            self.sent.append((url, dict(headers), body))
            self.held.append(asyncio.Event())
            await self.held[-1].wait()
            self.open -= 1
            raise Undelivered("it did not answer")
        finally:
            self.now_of[url] -= 1


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path / "data")
    await made.open()
    await made.store.write(APP, lambda tx: tx.add_session(made.session))
    yield made
    await made.store.close()


async def add(desk: Desk, number: int = 1, app: str = APP, **fields: Any) -> EndpointRow:
    given: dict[str, Any] = {"events": tuple(kind.value for kind in WebhookEvent), "secret": SECRET}
    row = EndpointRow(
        **{"app_name": app, "endpoint_id": f"e{number}", "url": URL, "created_at": number, **given, **fields}
    )
    await desk.store.write(app, lambda tx: tx.add_endpoint(row))
    return row


async def told(desk: Desk, endpoint: str = "e1", app: str = APP) -> list[DeliveryRow]:
    """Oldest first."""

    def work(view: View) -> list[DeliveryRow]:
        rows, _ = view.deliveries(endpoint, state=None, limit=10_000, cursor=None)
        return rows[::-1]

    return await desk.store.read(app, work)


async def until(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not found():  # noqa: ASYNC110 - a condition of the test's own
            await asyncio.sleep(0.005)


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


async def test_what_was_given_up_can_be_sent_again_with_its_id(desk: Desk) -> None:
    clock, receivers = Moved(), Receivers()
    desk.at = clock.at
    receivers.answer = lambda: 500
    courier = Courier(desk.store, clock, receivers)
    service = WebhookService(desk.store, clock, receivers, courier.wake)
    await add(desk)
    await desk.submit()
    await desk.end(tokens=1)
    task = asyncio.create_task(courier.run())
    try:
        await until(lambda: courier.tries["failed"] == 1)
        (row,) = await told(desk)
        with pytest.raises(DeliveryNotFound):
            await service.resend(APP, "e1", "unknown")
        await service.change(APP, "e1", ChangeEndpoint(enabled=False))
        with pytest.raises(Conflict):
            await service.resend(APP, "e1", row.delivery_id)
        clock.at += 60 * SECOND
        courier.wake()
        async with asyncio.timeout(30):
            while (await told(desk))[0].state is not DeliveryState.DEAD:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.005)
        assert len(receivers.sent) == 1, "who is off is told nothing"
        receivers.answer = lambda: 200
        await service.change(APP, "e1", ChangeEndpoint(enabled=True))
        await service.resend(APP, "e1", row.delivery_id)
        await until(lambda: courier.tries["delivered"] == 1)
    finally:
        task.cancel()
    assert len({headers["webhook-id"] for _, headers, _ in receivers.sent}) == 1
    assert len({body for _, _, body in receivers.sent}) == 1


async def test_receivers_that_hang_leave_room_for_other_apps(desk: Desk) -> None:
    clock, receivers = Moved(), Receivers()
    receivers.gate = asyncio.Event()
    apps = [f"app{number}" for number in range(PLACES + 1)]

    def many(tx: Tx) -> None:
        for number in range(20):
            rules.tell(tx, WebhookEvent.SESSION_CLOSED, clock.at, {"number": number})

    for app in apps[:2]:
        await add(desk, 1, app)
        await desk.store.write(app, many)
    courier = Courier(desk.store, clock, receivers)
    task = asyncio.create_task(courier.run())
    try:
        await until(lambda: receivers.open == 2 * PLACES_OF_ENDPOINT)
        for app in apps[2:]:
            await add(desk, 1, app, url=f"https://{app}.test/")
            await desk.store.write(app, many)
        courier.wake()
        await until(lambda: receivers.open == PLACES)
        assert len({url for url, *_ in receivers.sent}) == 1 + PLACES - 2 * PLACES_OF_ENDPOINT, (
            "one each first"
        )
        receivers.gate.set()
        await until(lambda: courier.tries["delivered"] == 20 * len(apps))
    finally:
        task.cancel()
    assert receivers.most_open == PLACES
    ids = [headers["webhook-id"] for _, headers, _ in receivers.sent]
    assert len(ids) == len(set(ids)), "nothing is sent twice while nobody dies"


@pytest.mark.parametrize("hanging", [1, PLACES_OF_APP + 1])
async def test_endpoints_that_hang_leave_room_for_the_others_of_their_app(desk: Desk, hanging: int) -> None:
    """Are there more of them than the app has places, the others have their turn whenever a try is over."""
    clock, receivers, each = Moved(), Hanging(), 10
    for number in range(hanging):
        await add(desk, number, url=f"https://hangs{number}.test/", events=("turn.ended",))
    await add(desk, 99, events=("session.closed",))

    def many(tx: Tx) -> None:
        for number in range(each):
            rules.tell(tx, WebhookEvent.TURN_ENDED, clock.at - SECOND, {"number": number})
            rules.tell(tx, WebhookEvent.SESSION_CLOSED, clock.at, {"number": number})

    await desk.store.write(APP, many)
    courier = Courier(desk.store, clock, receivers)
    task = asyncio.create_task(courier.run())
    try:
        for ended in range(each if hanging > 1 else 0):
            await until(lambda: receivers.open == PLACES_OF_APP)
            receivers.end_one()
            await until(lambda count=ended + 1: courier.tries["failed"] == count)  # type: ignore[misc]
        await until(lambda: courier.tries["delivered"] >= (1 if hanging > 1 else each))
    finally:
        task.cancel()
    assert all(count <= PLACES_OF_ENDPOINT for count in receivers.most_of.values())


async def test_a_clock_that_is_set_back_keeps_nothing_waiting(desk: Desk) -> None:
    clock, receivers = Moved(), Receivers()
    await add(desk)
    future = clock.at + 400 * rules.DAY
    await desk.store.write(APP, lambda tx: rules.tell(tx, WebhookEvent.SESSION_CLOSED, future, {}))
    courier = Courier(desk.store, clock, receivers)
    task = asyncio.create_task(courier.run())
    try:
        await until(lambda: courier.tries["delivered"] == 1)
    finally:
        task.cancel()


@pytest.mark.parametrize("days", [0, rules.TRIED_FOR // rules.DAY, rules.TRIED_FOR // rules.DAY + 1])
async def test_what_is_too_late_is_not_sent_any_more(desk: Desk, days: int) -> None:
    """As when webhooks, or the whole server, were off for days."""
    clock, receivers = Moved(), Receivers()
    await add(desk)
    await desk.store.write(APP, lambda tx: rules.tell(tx, WebhookEvent.SESSION_CLOSED, clock.at, {}))
    clock.at += days * rules.DAY
    courier = Courier(desk.store, clock, receivers)
    task = asyncio.create_task(courier.run())
    try:
        async with asyncio.timeout(30):
            while (await told(desk))[0].state is DeliveryState.WAITING:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.005)
    finally:
        task.cancel()
    (row,) = await told(desk)
    if days * rules.DAY <= rules.TRIED_FOR:
        assert (row.state, len(receivers.sent)) == ("delivered", 1)
    else:
        assert (row.state, row.attempts, row.error, receivers.sent) == ("dead", 0, rules.LATE, [])


async def test_while_they_are_off_the_sweep_makes_room_for_what_is_not_late(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_WAITING", 5)
    monkeypatch.setattr(sweeping, "PAGE", 2)
    clock = Moved()
    await add(desk)

    def tell(tx: Tx) -> None:
        rules.tell(tx, WebhookEvent.SESSION_CLOSED, clock.at, {})

    files = SimpleNamespace(remove_old=lambda *_: asyncio.sleep(0, 0))
    rest, ages = cast(Any, None), Ages(idle=1e9, closed=1e9, upload=1e9)
    sweeper = sweeping.Sweeper(desk.store, clock, rest, rest, rest, rest, cast(FileService, files), ages)
    monkeypatch.setattr(sweeper, "_time", clock)
    for _ in range(4):
        await desk.store.write(APP, tell)
    clock.at += rules.TRIED_FOR - 1
    await desk.store.write(APP, tell)
    await desk.store.write(APP, tell)
    await sweeper.sweep()
    assert [row.state for row in await told(desk)] == ["waiting"] * 5, "nothing is late yet, one was dropped"
    clock.at += 1
    await sweeper.sweep()
    assert [row.state for row in await told(desk)] == ["dead"] * 4 + ["waiting"]
    await desk.store.write(APP, tell)
    assert len(await told(desk)) == 6


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
