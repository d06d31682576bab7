"""Webhooks of apps: their endpoints, the secrets that sign, and what became of each delivery."""

import base64
import secrets
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from clawdforge.core.clock import SECOND, Clock
from clawdforge.core.ids import new_id
from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.core.pacing.long_reads import read_rows
from clawdforge.core.ports import Store, Tx, View
from clawdforge.core.ports.webhooks import Receivers, Undelivered
from clawdforge.core.rules.webhooks import BEING_REMOVED, SECRET_PREFIX, send_again
from clawdforge.core.running.long_writes import LongWrite
from clawdforge.wire.errors import (
    Conflict,
    DeliveryNotFound,
    Forbidden,
    InvalidRequest,
    LimitExceeded,
    WebhookNotFound,
)
from clawdforge.wire.webhooks import ChangeEndpoint, CreateEndpoint, DeliveryState

MOST_ENDPOINTS: Final = 20
"""Of one app: everything that happens looks for those that want to know."""
SECRET_BYTES: Final = 32
REMOVED_AT_ONCE: Final = 200
OFF: Final = "the app switched it off"


class WebhookService:
    """`receivers` is None where the operator has not turned webhooks on."""

    def __init__(
        self, store: Store, clock: Clock, receivers: Receivers | None, wake: Callable[[], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._receivers = receivers
        self._wake = wake

    async def endpoints(self, app: str) -> list[EndpointRow]:
        found = await self._store.read(app, lambda view: view.endpoints())
        return [row for row in found if row.disabled != BEING_REMOVED]

    async def create(self, app: str, request: CreateEndpoint) -> EndpointRow:
        """Its secret is shown by whoever asked for it, and by nobody else."""
        self._check(request.url)
        now = self._clock.now()
        row = EndpointRow(
            app_name=app,
            endpoint_id=new_id(),
            url=request.url,
            events=tuple(kind.value for kind in request.events),
            secret=_new_secret(),
            created_at=now,
        )

        def work(tx: Tx) -> None:
            if len(tx.endpoints()) >= MOST_ENDPOINTS:
                raise LimitExceeded(f"an app may have {MOST_ENDPOINTS} webhooks; remove one first")
            tx.add_endpoint(row)
            tx.audit(None, "webhook added", now, _details(row))

        await self._store.write(app, work)
        return row

    async def change(self, app: str, endpoint_id: str, request: ChangeEndpoint) -> EndpointRow:
        await self._store.read(app, lambda view: _need(view, endpoint_id))
        if request.url is not None:
            self._check(request.url)
        now = self._clock.now()
        changes: dict[str, Any] = {"url": request.url} if request.url is not None else {}
        if request.events is not None:
            changes["events"] = tuple(kind.value for kind in request.events)
        if request.enabled is not None:
            changes["disabled"] = None if request.enabled else OFF

        def work(tx: Tx) -> EndpointRow:
            _need(tx, endpoint_id)
            if changes:
                tx.change_endpoint(endpoint_id, **changes)
                told = {**_details(_need(tx, endpoint_id)), "enabled": request.enabled}
                tx.audit(None, "webhook changed", now, told)
            return _need(tx, endpoint_id)

        return await self._store.write(app, work)

    async def rotate(self, app: str, endpoint_id: str, overlap_secs: int) -> EndpointRow:
        """Another secret signs from now on; for a while the present one signs too."""
        now, secret = self._clock.now(), _new_secret()

        def work(tx: Tx) -> EndpointRow:
            row = _need(tx, endpoint_id)
            old = {"old_secret": row.secret, "old_until": now + overlap_secs * SECOND}
            if not overlap_secs:
                old = {"old_secret": None, "old_until": None}
            tx.change_endpoint(endpoint_id, secret=secret, **old)
            tx.audit(None, "webhook secret rotated", now, {"endpoint_id": endpoint_id})
            return _need(tx, endpoint_id)

        return await self._store.write(app, work)

    async def remove(self, app: str, endpoint_id: str) -> None:
        """With all its deliveries. From the first moment on it is gone; what is cut off, the sweeper ends."""
        now = self._clock.now()

        def begin(tx: Tx) -> None:
            row = _need(tx, endpoint_id)
            tx.change_endpoint(endpoint_id, disabled=BEING_REMOVED)
            tx.audit(None, "webhook removed", now, _details(row))

        await self._store.write(app, begin)
        await remove_endpoint(self._store, app, endpoint_id)

    async def deliveries(
        self, app: str, endpoint_id: str, state: DeliveryState | None, limit: int, cursor: str | None
    ) -> tuple[list[DeliveryRow], str | None]:
        def work(view: View) -> tuple[list[DeliveryRow], str | None]:
            _need(view, endpoint_id)
            return view.deliveries(endpoint_id, state=state, limit=limit, cursor=cursor)

        return await read_rows(self._store, app, limit, work)

    async def resend(self, app: str, endpoint_id: str, delivery_id: str) -> DeliveryRow:
        """Try a delivery again from now on, whatever became of it; it keeps its id."""
        now = self._clock.now()

        def work(tx: Tx) -> DeliveryRow:
            endpoint = _need(tx, endpoint_id)
            row = _need_delivery(tx, endpoint_id, delivery_id)
            if endpoint.disabled is not None:
                raise Conflict(f"this webhook is off: {endpoint.disabled}; enable it first")
            send_again(tx, row, now)
            return _need_delivery(tx, endpoint_id, delivery_id)

        row = await self._store.write(app, work)
        self._wake()
        return row

    def _check(self, url: str) -> None:
        if self._receivers is None:
            raise Forbidden("webhooks are off here; the operator turns them on with CLAWDFORGE_WEBHOOKS=true")
        try:
            self._receivers.check(url)
        except Undelivered as error:
            raise InvalidRequest(str(error)) from error


async def remove_endpoint(store: Store, app: str, endpoint_id: str) -> None:
    """With its deliveries, some at a time."""
    await LongWrite(store, app).repeat(lambda tx: tx.remove_endpoint(endpoint_id, REMOVED_AT_ONCE))


def _need(view: View, endpoint_id: str) -> EndpointRow:
    row = view.endpoint(endpoint_id)
    if row is None or row.disabled == BEING_REMOVED:
        raise WebhookNotFound
    return row


def _need_delivery(view: View, endpoint_id: str, delivery_id: str) -> DeliveryRow:
    row = view.delivery(delivery_id)
    if row is None or row.endpoint_id != endpoint_id:
        raise DeliveryNotFound
    return row


def _details(row: EndpointRow) -> dict[str, Any]:
    """For the audit. A path may be a secret of the receiver's, so only the host is told."""
    return {
        "endpoint_id": row.endpoint_id,
        "host": urlsplit(row.url).hostname,
        "events": list(row.events),
    }


def _new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
