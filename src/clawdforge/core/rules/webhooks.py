"""What webhooks tell of, when a delivery is tried again, and how it is signed, as plain functions.

A delivery is written in the transaction of its event: a crash leaves both or none. It is made at least once:
whoever is told twice finds the same id in both. The signature is that of Standard Webhooks
(https://www.standardwebhooks.com).
"""

import base64
import hashlib
import hmac
from typing import Final, Literal

import orjson

from clawdforge.core.clock import SECOND
from clawdforge.core.ids import new_id
from clawdforge.core.models.budgets import ReservationRow
from clawdforge.core.models.rows import PermissionRow, TurnRow
from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.core.ports import Tx, View
from clawdforge.wire.base import Json, Micros, to_iso
from clawdforge.wire.errors import LimitExceeded
from clawdforge.wire.webhooks import DeliveryState, WebhookEvent

MOST_WAITING: Final = 10_000
"""Deliveries of one app that have not been made or given up."""
DAY: Final = 86_400 * SECOND
TRIED_FOR: Final = 3 * DAY
PAUSES: Final = tuple(secs * SECOND for secs in (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800))
"""After the first try, the second …; after all later ones it is the last of these."""
FAR: Final = 2 * PAUSES[-1]
"""No delivery waits for longer, unless somebody has set the clock back."""
LONGEST_ASKED: Final = PAUSES[-1]
"""A receiver that asks for a longer pause (`Retry-After`) gets this one."""
SPREAD: Final = 10
"""A pause is up to a tenth longer, so that what failed together is not tried together again and again."""
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - not a secret, but what one begins with
MAX_WORD: Final = 200
MAX_ERROR: Final = 300
GONE: Final = 410
BEING_REMOVED: Final = "it is being removed"
"""Why such an endpoint is off. For its app it is gone."""
LATE: Final = "it was not sent in time"
NEVER: Final = 2**62
Mark = Literal["warning", "limit"]
"""What of a budget was crossed: the part at which it warns, or all of it."""


def tell(tx: Tx, kind: WebhookEvent, at: Micros, data: Json, session_id: str | None = None) -> None:
    """Write a delivery for every endpoint of the app that wants to know. `data` has ids, numbers and words of
    ours; what was said stays here, for whoever asks with a token."""
    wanted = [row for row in tx.endpoints() if row.disabled is None and kind in row.events]
    if not wanted:
        return
    body = {"type": kind.value, "timestamp": to_iso(at), "data": {"app": tx.app, **data}}
    text = orjson.dumps(body).decode()
    room = MOST_WAITING - tx.count_waiting()
    for number, row in enumerate(wanted):
        if number >= room:
            tx.change_endpoint(row.endpoint_id, dropped=row.dropped + 1)
            continue
        tx.add_delivery(
            DeliveryRow(
                app_name=tx.app,
                delivery_id=f"msg_{new_id()}",
                endpoint_id=row.endpoint_id,
                event=kind,
                session_id=session_id,
                body=text,
                created_at=at,
                next_at=at,
                gives_up_at=at + TRIED_FOR,
            )
        )


def tell_ended(tx: Tx, turn: TurnRow, seq: int, ended: Json, at: Micros) -> None:
    """`ended` are the fields of the event."""
    reason = ended["stop_reason"]  # a word that the agent has chosen
    data: Json = {"session_id": turn.session_id, "turn": turn.turn_index, "seq": seq}
    data |= {"outcome": ended["outcome"], "code": ended["code"], "stop_reason": reason and reason[:MAX_WORD]}
    tell(tx, WebhookEvent.TURN_ENDED, at, data, turn.session_id)


def tell_asked(tx: Tx, row: PermissionRow, seq: int) -> None:
    data: Json = {"session_id": row.session_id, "turn": row.turn_index, "seq": seq}
    data["permission_id"] = row.permission_id
    tell(tx, WebhookEvent.PERMISSION_REQUESTED, row.requested_at, data, row.session_id)


def tell_closed(tx: Tx, session_id: str, seq: int, why: str, at: Micros) -> None:
    data: Json = {"session_id": session_id, "seq": seq, "why": why}
    tell(tx, WebhookEvent.SESSION_CLOSED, at, data, session_id)


def tell_crossed(tx: Tx, mark: Mark, held: ReservationRow, spent: Json, at: Micros) -> None:
    """`held` is what the turn that crossed it, or the one-shot run, has held. A run has no session."""
    session_id = held.holder_id if held.turn_index else None
    data: Json = {"mark": mark, **spent, "session_id": session_id, "turn": held.turn_index or None}
    tell(tx, WebhookEvent.BUDGET_CROSSED, at, data, session_id)


def note_try(
    tx: Tx,
    delivery_id: str,
    status: int | None,
    error: str | None,
    at: Micros,
    retry_after: int | None = None,
) -> None:
    """Record how a try went. Whoever answers 410 is told nothing more, until the app enables it again.

    `retry_after` are the seconds that the receiver asks to be left alone for.
    """
    row = tx.delivery(delivery_id)
    if row is None or row.state is not DeliveryState.WAITING:
        return
    attempts = row.attempts + 1
    told = {"attempts": attempts, "status": status, "error": None if error is None else error[:MAX_ERROR]}
    if error is None:
        tx.change_delivery(delivery_id, state=DeliveryState.DELIVERED, done_at=at, **told)
        return
    endpoint = tx.endpoint(row.endpoint_id)
    if status == GONE and endpoint is not None and endpoint.disabled != BEING_REMOVED:
        tx.change_endpoint(row.endpoint_id, disabled="it answered 410 Gone")
        tx.audit(None, "webhook disabled", at, {"endpoint_id": row.endpoint_id, "why": "410"})
    next_at = at + find_pause(delivery_id, attempts)
    if retry_after is not None:
        next_at = max(next_at, min(at + min(retry_after * SECOND, LONGEST_ASKED), row.gives_up_at))
    if status == GONE or next_at > row.gives_up_at:
        tx.change_delivery(delivery_id, state=DeliveryState.DEAD, done_at=at, **told)
    else:
        tx.change_delivery(delivery_id, next_at=next_at, **told)


def give_up(tx: Tx, delivery_id: str, why: str | None, at: Micros) -> None:
    """Without a try: nobody is to be told."""
    row = tx.delivery(delivery_id)
    if row is not None and row.state is DeliveryState.WAITING:
        tx.change_delivery(delivery_id, state=DeliveryState.DEAD, done_at=at, error=why)


def give_up_late(tx: Tx, endpoint_id: str, at: Micros, limit: int) -> bool:
    """Give up some that nobody has tried before their time was over; whether these were all. What was to be
    tried so long ago is known to be one of them: none is to be tried later than it is given up."""
    rows = tx.due_deliveries(endpoint_id, at - TRIED_FOR, NEVER, limit)
    for row in rows:
        give_up(tx, row.delivery_id, LATE, at)
    return len(rows) < limit


def find_objection(row: DeliveryRow, endpoint: EndpointRow | None, at: Micros) -> str | None:
    """Why it is not to be tried, if so. What is late can be sent again by whoever still wants to know."""
    if endpoint is None:
        return "the webhook was removed"
    if endpoint.disabled is not None:
        return f"it is off: {endpoint.disabled}"
    return LATE if row.gives_up_at < at else None


def send_again(tx: Tx, row: DeliveryRow, at: Micros) -> None:
    """Begin anew, with the same id."""
    if row.state is not DeliveryState.WAITING:
        check_room(tx)
    tx.change_delivery(
        row.delivery_id,
        state=DeliveryState.WAITING,
        attempts=0,
        next_at=at,
        gives_up_at=at + TRIED_FOR,
        done_at=None,
    )


def check_room(view: View) -> None:
    if view.count_waiting() >= MOST_WAITING:
        raise LimitExceeded(f"{MOST_WAITING} deliveries of this app wait already; try again later")


def find_pause(delivery_id: str, attempts: int) -> Micros:
    """How long to wait after so many tries; a little more for some, always the same for one."""
    pause = PAUSES[min(attempts, len(PAUSES)) - 1]
    spread = int.from_bytes(hashlib.sha256(f"{delivery_id}{attempts}".encode()).digest()[:4])
    return pause + pause // SPREAD * spread // 2**32


def is_due(first: Micros, last: Micros, now: Micros) -> bool:
    return first <= now or last > now + FAR


def sign(row: EndpointRow, delivery_id: str, body: bytes, at: Micros) -> dict[str, str]:
    """The headers that let the receiver know who sends this. While secrets change, both sign."""
    seconds = at // SECOND
    secrets = [row.secret]
    if row.old_secret is not None and (row.old_until or 0) > at:
        secrets.append(row.old_secret)
    told = f"{delivery_id}.{seconds}.".encode() + body
    signed = [hmac.new(_key(secret), told, hashlib.sha256).digest() for secret in secrets]
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(one).decode()}" for one in signed),
    }


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX))
