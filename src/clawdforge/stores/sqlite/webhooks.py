"""An app's webhooks: their endpoints, and what is to be delivered there."""

from typing import Any, Final

from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.stores.sqlite.own_rows import OwnRows
from clawdforge.stores.sqlite.rows import Codec, Value
from clawdforge.stores.sqlite.search import from_cursor, to_cursor
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import DeliveryNotFound, NotFound, WebhookNotFound
from clawdforge.wire.webhooks import DeliveryState

LATEST: Final = (2**62, "")


class WebhookRows(OwnRows):
    """What can be read."""

    def endpoints(self) -> list[EndpointRow]:
        return self._list(self._q.endpoint, "endpoints")

    def endpoint(self, endpoint_id: str) -> EndpointRow | None:
        return self._get(self._q.endpoint, "endpoint", endpoint=endpoint_id)

    def delivery(self, delivery_id: str) -> DeliveryRow | None:
        return self._get(self._q.delivery, "delivery", delivery=delivery_id)

    def deliveries(
        self, endpoint_id: str, *, state: DeliveryState | None, limit: int, cursor: str | None
    ) -> tuple[list[DeliveryRow], str | None]:
        at, last = LATEST if cursor is None else from_cursor(cursor, int, str)
        values: dict[str, Value] = {"endpoint": endpoint_id, "at": at, "last": last, "limit": limit + 1}
        if state is None:
            rows = self._list(self._q.delivery, "deliveries", **values)
        else:
            rows = self._list(self._q.delivery, "deliveries_in_state", state=state.value, **values)
        page = rows[:limit]
        more = len(rows) > limit and bool(page)
        return page, to_cursor(page[-1].created_at, page[-1].delivery_id) if more else None

    def due_deliveries(self, endpoint_id: str, now: Micros, far: Micros, limit: int) -> list[DeliveryRow]:
        values: dict[str, Value] = {"endpoint": endpoint_id, "now": now, "far": far, "limit": limit}
        return self._list(self._q.delivery, "due_deliveries", **values)

    def count_waiting(self) -> int:
        return self._number("count_waiting")


class WebhookChanges(WebhookRows):
    """What can be changed."""

    def add_endpoint(self, row: EndpointRow) -> None:
        self._check_own(row.app_name)
        self._db.run(self._q.endpoint.insert, self._q.endpoint.values(row))

    def change_endpoint(self, endpoint_id: str, **changes: Any) -> None:
        self._change_one(self._q.endpoint, "endpoint_id", endpoint_id, changes, WebhookNotFound)

    def remove_endpoint(self, endpoint_id: str, limit: int) -> bool:
        if self._run("remove_deliveries_to", endpoint=endpoint_id, limit=limit) >= limit:
            return False
        self._run("remove_endpoint", endpoint=endpoint_id)
        return True

    def add_delivery(self, row: DeliveryRow) -> None:
        self._check_own(row.app_name)
        self._db.run(self._q.delivery.insert, self._q.delivery.values(row))

    def change_delivery(self, delivery_id: str, **changes: Any) -> None:
        self._change_one(self._q.delivery, "delivery_id", delivery_id, changes, DeliveryNotFound)

    def _change_one(
        self, codec: Codec[Any], key: str, one: str, changes: dict[str, Any], missing: type[NotFound]
    ) -> None:
        assignments, values = codec.changes(changes)
        sql = f"UPDATE {codec.table} SET {assignments} WHERE app_name = :app AND {key} = :one"  # noqa: S608 - names checked by the codec
        if self._db.run(sql, {"app": self.app, "one": one, **values}) == 0:
            raise missing
