"""The calls about webhooks, once, without I/O; as in `_calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clawdforge.client import _lazy as lazy
from clawdforge.client._calls import Page, Route, read_model, read_part

if TYPE_CHECKING:
    from clawdforge.wire.webhooks import Delivery, Endpoint

WEBHOOKS: Final[Route[list[Endpoint]]] = Route(
    "GET", "/webhooks", read_part(lambda: lazy.webhooks.EndpointPage, lambda page: page.endpoints)
)
ADD_WEBHOOK: Final = Route("POST", "/webhooks", read_model(lambda: lazy.webhooks.SecretReply))
CHANGE_WEBHOOK: Final[Route[Endpoint]] = Route(
    "PATCH",
    "/webhooks/{endpoint_id}",
    read_part(lambda: lazy.webhooks.EndpointReply, lambda reply: reply.endpoint),
)
REMOVE_WEBHOOK: Final = Route("DELETE", "/webhooks/{endpoint_id}", read_model(lambda: lazy.admin.Done))
ROTATE_WEBHOOK: Final = Route(
    "POST", "/webhooks/{endpoint_id}/rotate", read_model(lambda: lazy.webhooks.SecretReply)
)
DELIVERIES: Final[Route[Page[Delivery]]] = Route(
    "GET",
    "/webhooks/{endpoint_id}/deliveries",
    read_part(lambda: lazy.webhooks.DeliveryPage, lambda page: Page(page.deliveries, page.next)),
)
RESEND: Final[Route[Delivery]] = Route(
    "POST",
    "/webhooks/{endpoint_id}/deliveries/{delivery_id}/resend",
    read_part(lambda: lazy.webhooks.DeliveryReply, lambda reply: reply.delivery),
)
