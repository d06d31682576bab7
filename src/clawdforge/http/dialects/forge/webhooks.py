"""Forge routes about webhooks: where an app is told of its events, and what became of each delivery."""

from typing import Annotated

from starlette.responses import Response

from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.http.errors import json_response
from clawdforge.http.requests.marks import Query
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, AppRoute, Core, Limit
from clawdforge.wire.admin import Done
from clawdforge.wire.base import to_seconds
from clawdforge.wire.webhooks import (
    ChangeEndpoint,
    CreateEndpoint,
    Delivery,
    DeliveryPage,
    DeliveryReply,
    DeliveryState,
    Endpoint,
    EndpointPage,
    EndpointReply,
    RotateSecret,
    SecretReply,
)

Cursor = Annotated[str | None, Query(max_length=1024)]


def routes() -> Router:
    router = Router(AppRoute, tags=["webhooks"])
    one = "/webhooks/{endpoint_id}"
    router.get("/webhooks", response_model=EndpointPage)(list_endpoints)
    router.post("/webhooks", response_model=SecretReply)(create)
    router.patch(one, response_model=EndpointReply)(change)
    router.delete(one, response_model=Done)(remove)
    router.post(f"{one}/rotate", response_model=SecretReply)(rotate)
    router.get(f"{one}/deliveries", response_model=DeliveryPage)(list_deliveries)
    router.post(f"{one}/deliveries/{{delivery_id}}/resend", response_model=DeliveryReply)(resend)
    return router


async def list_endpoints(core: Core, app: App) -> Response:
    """The app's webhooks, without their secrets."""
    rows = [_endpoint(row) for row in await core.webhooks.endpoints(app)]
    return json_response(EndpointPage(endpoints=rows, count=len(rows)))


async def create(core: Core, app: App, body: CreateEndpoint) -> Response:
    """Have a URL told of the app's events; the secret that signs them is shown only once."""
    row = await core.webhooks.create(app, body)
    return json_response(SecretReply(endpoint=_endpoint(row), secret=row.secret))


async def change(core: Core, app: App, endpoint_id: str, body: ChangeEndpoint) -> Response:
    """Change a webhook's URL or events, or switch it off and on; what waits goes to the new URL."""
    return json_response(
        EndpointReply(endpoint=_endpoint(await core.webhooks.change(app, endpoint_id, body)))
    )


async def remove(core: Core, app: App, endpoint_id: str) -> Response:
    """Remove a webhook, with what was not delivered yet."""
    await core.webhooks.remove(app, endpoint_id)
    return json_response(Done())


async def rotate(core: Core, app: App, endpoint_id: str, body: RotateSecret) -> Response:
    """Give a webhook another secret, which is shown only once; for a while the old one signs too."""
    row = await core.webhooks.rotate(app, endpoint_id, body.overlap_secs)
    return json_response(SecretReply(endpoint=_endpoint(row), secret=row.secret))


async def list_deliveries(
    core: Core,
    app: App,
    endpoint_id: str,
    state: DeliveryState | None = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """What a webhook was told or is to be told, newest first; `state=dead` lists what was given up."""
    rows, following = await core.webhooks.deliveries(app, endpoint_id, state, limit, cursor)
    page = [_delivery(row) for row in rows]
    return json_response(DeliveryPage(deliveries=page, count=len(page), next=following))


async def resend(core: Core, app: App, endpoint_id: str, delivery_id: str) -> Response:
    """Deliver something again, with the same id, and try for three days from now on."""
    row = await core.webhooks.resend(app, endpoint_id, delivery_id)
    return json_response(DeliveryReply(delivery=_delivery(row)))


def _endpoint(row: EndpointRow) -> Endpoint:
    return Endpoint(
        endpoint_id=row.endpoint_id,
        url=row.url,
        events=list(row.events),
        enabled=row.disabled is None,
        disabled_reason=row.disabled,
        created_at=to_seconds(row.created_at) or 0,
        old_secret_until=to_seconds(row.old_until),
        dropped=row.dropped,
    )


def _delivery(row: DeliveryRow) -> Delivery:
    return Delivery(
        delivery_id=row.delivery_id,
        endpoint_id=row.endpoint_id,
        type=row.event,
        session_id=row.session_id,
        state=row.state,
        attempts=row.attempts,
        created_at=to_seconds(row.created_at) or 0,
        next_at=to_seconds(row.next_at) if row.state is DeliveryState.WAITING else None,
        done_at=to_seconds(row.done_at),
        status=row.status,
        error=row.error,
    )
