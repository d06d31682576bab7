"""The records of webhooks: where an app is told of its events, and what is to be delivered there."""

from dataclasses import dataclass

from clawdforge.wire.base import Micros
from clawdforge.wire.webhooks import DeliveryState, WebhookEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRow:
    """Its secrets sign what is sent; while they change, both do. No reply, event, log or audit has them."""

    app_name: str
    endpoint_id: str
    url: str
    events: tuple[str, ...]
    secret: str
    old_secret: str | None = None
    old_until: Micros | None = None
    disabled: str | None = None  # why it is told nothing
    created_at: Micros
    dropped: int = 0

    def __repr__(self) -> str:
        return f"EndpointRow({self.app_name!r}, {self.endpoint_id!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """One message, written in the transaction of its event. `body` is what is sent, byte for byte."""

    app_name: str
    delivery_id: str
    endpoint_id: str
    event: WebhookEvent
    session_id: str | None = None
    body: str
    state: DeliveryState = DeliveryState.WAITING
    attempts: int = 0
    created_at: Micros
    next_at: Micros
    gives_up_at: Micros
    done_at: Micros | None = None
    status: int | None = None
    error: str | None = None
