"""What core asks about webhooks: of a store, their endpoints and deliveries; of the network, to send one."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.wire.base import Micros
from clawdforge.wire.webhooks import DeliveryState


class WaitingDeliveries(NamedTuple):
    """An endpoint that has some, and when the first and the last of them is to be tried."""

    app: str
    endpoint_id: str
    first: Micros
    last: Micros


class WebhookView(Protocol):
    def endpoints(self) -> list[EndpointRow]:
        """All of the app's, oldest first."""
        ...

    def endpoint(self, endpoint_id: str) -> EndpointRow | None: ...
    def delivery(self, delivery_id: str) -> DeliveryRow | None: ...
    def deliveries(
        self, endpoint_id: str, *, state: DeliveryState | None, limit: int, cursor: str | None
    ) -> tuple[list[DeliveryRow], str | None]:
        """A page, newest first, and the cursor of the next one."""
        ...

    def due_deliveries(self, endpoint_id: str, now: Micros, far: Micros, limit: int) -> list[DeliveryRow]:
        """Those that are to be tried there by now, the first ones first; also those that are too far off."""
        ...

    def count_waiting(self) -> int:
        """How many deliveries of the app have not been made or given up."""
        ...


class WebhookTx(WebhookView, Protocol):
    def add_endpoint(self, row: EndpointRow) -> None: ...
    def change_endpoint(self, endpoint_id: str, **changes: Any) -> None: ...
    def remove_endpoint(self, endpoint_id: str, limit: int) -> bool:
        """Remove some of its deliveries; when none are left, itself, and then True."""
        ...

    def add_delivery(self, row: DeliveryRow) -> None: ...
    def change_delivery(self, delivery_id: str, **changes: Any) -> None: ...


class Undelivered(Exception):
    """A message did not arrive; the text says why, and may be shown to the app."""


class Answer(NamedTuple):
    """What is kept of a receiver's answer. `retry_after` are seconds that it asks to be left alone for."""

    status: int
    retry_after: int | None = None


class Receivers(Protocol):
    """The network, as far as webhooks may reach it. Implemented in `outbound`."""

    def check(self, url: str) -> None:
        """Raises Undelivered for a URL that can be seen never to be allowed."""
        ...

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send it once, within bounds. Raises Undelivered."""
        ...
