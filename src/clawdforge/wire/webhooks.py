"""Webhooks: what an app is told over HTTP, the endpoints that it is told at, and how each delivery went."""

from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from clawdforge.wire.base import Reply, StrictRequest
from clawdforge.wire.hosts import NAME, read_address

MAX_URL: Final = 2048
DAY_SECS: Final = 86_400
PORTS: Final = {"http": 80, "https": 443}


class WebhookEvent(StrEnum):
    """What an endpoint can be told."""

    TURN_ENDED = "turn.ended"
    PERMISSION_REQUESTED = "permission.requested"
    SESSION_CLOSED = "session.closed"
    BUDGET_CROSSED = "budget.crossed"


class DeliveryState(StrEnum):
    """What became of a delivery."""

    WAITING = "waiting"  # for its first try, or for the next one
    DELIVERED = "delivered"
    DEAD = "dead"  # given up; it can be sent again


WebhookEventWord: TypeAlias = (
    WebhookEvent | Literal["turn.ended", "permission.requested", "session.closed", "budget.crossed"]
)
DeliveryStateWord: TypeAlias = DeliveryState | Literal["waiting", "delivered", "dead"]


def read_place(url: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and the rest of a URL. ValueError says what is wrong with it."""
    if not (url.isascii() and url.isprintable()) or set(url) & set(' \\"<>^`{|}'):
        raise ValueError("write the URL in ASCII, and escape what is special in it")
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in PORTS:
        raise ValueError("the URL must begin with https://, or http:// where the operator allows it")
    if "@" in parts.netloc:
        raise ValueError("the URL must not have a name or password in it")
    if "#" in url:
        raise ValueError("the URL must not have a fragment")
    if "%" in host or (read_address(host) is None and not NAME.fullmatch(host)):
        raise ValueError("the URL has no valid host")
    port = parts.port  # raises ValueError itself
    if port == 0:
        raise ValueError("the URL has no valid port")
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, host, port or PORTS[parts.scheme], rest


def _check_url(url: str) -> str:
    read_place(url)
    return url


def _sort_events(events: tuple[WebhookEvent, ...]) -> tuple[WebhookEvent, ...]:
    return tuple(kind for kind in WebhookEvent if kind in events)


Url = Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL), AfterValidator(_check_url)]
Events = Annotated[tuple[WebhookEvent, ...], Field(min_length=1, max_length=16), AfterValidator(_sort_events)]


class CreateEndpoint(StrictRequest):
    """Body of `POST /webhooks`. Without `events` it is told of all that there are today."""

    url: Url
    events: Events = tuple(WebhookEvent)


class ChangeEndpoint(StrictRequest):
    """Body of `PATCH /webhooks/{id}`: what is left out stays. `enabled` switches it off and on."""

    url: Url | None = None
    events: Events | None = None
    enabled: bool | None = None


class RotateSecret(StrictRequest):
    """Body of `POST /webhooks/{id}/rotate`. For so long the old secret signs too."""

    overlap_secs: int = Field(default=DAY_SECS, ge=0, le=7 * DAY_SECS)


class Endpoint(Reply):
    """Where an app is told, without the secret. Times are whole seconds.

    `dropped` counts what it was not told because too much waited already.
    """

    endpoint_id: str
    url: str
    events: list[str]
    enabled: bool
    disabled_reason: str | None = None
    created_at: int
    old_secret_until: int | None = None
    dropped: int = 0


class EndpointReply(Reply):
    ok: bool = True
    endpoint: Endpoint


class SecretReply(EndpointReply):
    """The only time that the secret is shown."""

    secret: str


class EndpointPage(Reply):
    ok: bool = True
    endpoints: list[Endpoint]
    count: int


class Delivery(Reply):
    """One message to one endpoint. It has the same id at each try, in the header `webhook-id`.

    `next_at` is when it is tried next; `status` and `error` tell of the last try.
    """

    delivery_id: str
    endpoint_id: str
    type: str
    session_id: str | None = None
    state: str
    attempts: int
    created_at: int
    next_at: int | None = None
    done_at: int | None = None
    status: int | None = None
    error: str | None = None


class DeliveryReply(Reply):
    ok: bool = True
    delivery: Delivery


class DeliveryPage(Reply):
    """The newest come first; `next` is the cursor of the following page."""

    ok: bool = True
    deliveries: list[Delivery]
    count: int
    next: str | None = None
