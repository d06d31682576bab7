"""When the courier sends what webhooks are told, and to whom first; what it leaves to the sweep."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from clawdforge.core.clock import SECOND
from clawdforge.core.ports import Tx
from clawdforge.core.rules import webhooks as rules
from clawdforge.core.rules.retention import Ages
from clawdforge.core.services import sweeper as sweeping
from clawdforge.core.services.courier import PLACES, PLACES_OF_APP, PLACES_OF_ENDPOINT, Courier
from clawdforge.core.services.files import FileService
from clawdforge.core.services.webhooks import WebhookService
from clawdforge.wire.errors import Conflict, DeliveryNotFound
from clawdforge.wire.webhooks import ChangeEndpoint, DeliveryState, WebhookEvent
from tests.conformance.stores.samples import APP
from tests.unit.budget_desk import Desk
from tests.unit.webhook_desk import Hanging, Moved, Receivers, add, open_desk, told, until


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(tmp_path / "data") as made:
        yield made


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


async def test_an_endpoint_whose_secret_is_damaged_stops_no_other(desk: Desk) -> None:
    clock, receivers = Moved(), Receivers()
    desk.at = clock.at
    courier = Courier(desk.store, clock, receivers)
    await add(desk, 1, secret="whsec_abc")
    await add(desk, 2)
    await desk.submit()
    await desk.end(tokens=1)
    task = asyncio.create_task(courier.run())
    try:
        await until(lambda: courier.tries == {"delivered": 1, "failed": 1})
        assert not task.done()
    finally:
        task.cancel()
    (damaged,), (whole,) = await told(desk, "e1"), await told(desk, "e2")
    assert (damaged.state, damaged.attempts) == (DeliveryState.WAITING, 1)
    assert whole.state is DeliveryState.DELIVERED


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
    sweeper = sweeping.Sweeper(
        desk.store, clock, rest, rest, rest, rest, rest, cast(FileService, files), ages
    )
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
