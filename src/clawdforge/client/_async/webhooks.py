"""Webhooks: the URLs that a server tells of your app's events, and what became of each delivery."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from clawdforge.client import _webhook_calls as calls
from clawdforge.client._async.transport import AsyncTransport

if TYPE_CHECKING:
    from clawdforge.client.models import (
        Delivery,
        DeliveryStateWord,
        Endpoint,
        SecretReply,
        WebhookEventWord,
    )


class AsyncWebhooks:
    """The part of a client that is about webhooks."""

    transport: AsyncTransport

    async def webhooks(self) -> list[Endpoint]:
        """Your app's webhooks, without their secrets."""
        return await self.transport.call(calls.WEBHOOKS())

    async def add_webhook(self, url: str, *, events: Sequence[WebhookEventWord] | None = None) -> SecretReply:
        """Send your app's events to a URL, all kinds if none are named.

        The `secret` of the reply is shown only here; libraries of Standard Webhooks verify with it.
        """
        body = {"url": url, "events": None if events is None else [str(one) for one in events]}
        return await self.transport.call(calls.ADD_WEBHOOK(body=body))

    async def change_webhook(
        self,
        endpoint_id: str,
        *,
        url: str | None = None,
        events: Sequence[WebhookEventWord] | None = None,
        enabled: bool | None = None,
    ) -> Endpoint:
        """Change its URL or its events, or switch it off and on; what you leave out stays."""
        told = None if events is None else [str(one) for one in events]
        body = {"url": url, "events": told, "enabled": enabled}
        return await self.transport.call(calls.CHANGE_WEBHOOK(endpoint_id, body=body))

    async def remove_webhook(self, endpoint_id: str) -> None:
        """With what was not delivered yet."""
        await self.transport.call(calls.REMOVE_WEBHOOK(endpoint_id))

    async def rotate_webhook(self, endpoint_id: str, *, overlap_secs: int | None = None) -> SecretReply:
        """Give it another secret, which is shown only here. For so long, a day by default, the old one signs
        too."""
        return await self.transport.call(
            calls.ROTATE_WEBHOOK(endpoint_id, body={"overlap_secs": overlap_secs})
        )

    def deliveries(
        self, endpoint_id: str, *, state: DeliveryStateWord | None = None, page_size: int | None = None
    ) -> AsyncIterator[Delivery]:
        """What was sent to it or is to be sent, newest first; `dead` ones were given up."""
        return self.transport.pages(
            lambda at: calls.DELIVERIES(
                endpoint_id, params={"state": state, "cursor": at, "limit": page_size}
            )
        )

    async def resend(self, endpoint_id: str, delivery_id: str) -> Delivery:
        """Deliver it again, with the same id, whatever became of it."""
        return await self.transport.call(calls.RESEND(endpoint_id, delivery_id))
