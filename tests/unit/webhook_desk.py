"""What tests of webhooks share: a store, a clock that they move, and receivers that answer as they say."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.core.ports import View
from clawdforge.core.ports.webhooks import Answer, Undelivered
from clawdforge.wire.webhooks import WebhookEvent
from tests.conformance.stores.samples import APP
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
        self.retry_after: int | None = None
        self.gate: asyncio.Event | None = None
        self.open = 0
        self.most_open = 0

    def check(self, url: str) -> None:
        if "inside" in url:
            raise Undelivered("not there")

    async def post(self, url: str, headers: Any, body: bytes) -> Answer:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            self.sent.append((url, dict(headers), body))
            if self.gate is not None:
                await self.gate.wait()
            return Answer(self.answer(), self.retry_after)
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

    async def post(self, url: str, headers: Any, body: bytes) -> Answer:
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


@asynccontextmanager
async def open_desk(folder: Path) -> AsyncIterator[Desk]:
    made = Desk(folder)
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
