"""Live events: one iterator that survives lost connections, and the stream of a single turn."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from clawdforge.client import _calls as calls
from clawdforge.client import _lazy as lazy
from clawdforge.client._permissions import read_answer
from clawdforge.client._stream import Cursor, Gap
from clawdforge.client._sync.transport import Transport
from clawdforge.client._waits import resolve, sleep
from clawdforge.client.errors import AlreadyDecided, ForgeAPIError, ForgeConnectionError, ForgeError
from clawdforge.client.results import TurnResult
from clawdforge.wire.sse import Decoder

if TYPE_CHECKING:
    from clawdforge.client._permissions import OnPermission
    from clawdforge.client._reconnects import Reconnect
    from clawdforge.client.models import AnyEvent, CancelReply, Change

PASSING_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


def follow(http: Transport, session_id: str, after: int) -> Generator[AnyEvent, None, None]:
    """Every event after `after`, each once and in order, for ever.

    A connection that is lost, refused or silent is made again from the last event seen, until the
    server has not been heard for `reconnect_secs`.
    """
    cursor = Cursor(after, patience_secs=http.options.reconnect_secs)
    while True:
        lost: ForgeError | Gap | None = None
        call = calls.EVENTS(session_id, params={"after": cursor.last_seq}, accept="text/event-stream")
        try:
            with http.open(call) as chunks:
                decoder = Decoder()
                for chunk in chunks:
                    tell(http, cursor.note_life())
                    for frame in decoder.feed(chunk):
                        event = cursor.accept(frame)
                        if event is not None:
                            yield event
        except ForgeAPIError as error:
            if error.status_code not in PASSING_STATUSES:
                raise
            lost = error
        except (ForgeConnectionError, Gap) as error:
            lost = error
        why = str(lost or "the server ended the stream")
        pause = cursor.pause(why)
        tell(http, cursor.note_loss(why))
        sleep(pause)


def follow_changes(http: Transport, after: int | None) -> Generator[Change, None, None]:
    """What changes in the app's list, for ever; connections that are lost are made again as in `follow`."""
    cursor = Cursor(after or 0, patience_secs=http.options.reconnect_secs)
    while True:
        lost: ForgeError | None = None
        call = calls.CHANGES(params={"after": after}, accept="text/event-stream")
        try:
            with http.open(call) as chunks:
                decoder = Decoder()
                for chunk in chunks:
                    tell(http, cursor.note_life())
                    for frame in decoder.feed(chunk):
                        change = lazy.changes.Change.model_validate_json(frame.data)
                        after = change.cursor
                        yield change
        except ForgeAPIError as error:
            if error.status_code not in PASSING_STATUSES:
                raise
            lost = error
        except ForgeConnectionError as error:
            lost = error
        why = str(lost or "the server ended the stream")
        pause = cursor.pause(why)
        tell(http, cursor.note_loss(why))
        sleep(pause)


def tell(http: Transport, news: Reconnect | None) -> None:
    """Call the caller's own function, if there are news and somebody wants them."""
    if news is not None and http.options.on_reconnect is not None:
        resolve(http.options.on_reconnect(news))


class TurnStream:
    """The events of one turn as they happen, up to and including `turn.ended`.

    Leaving the block early does not stop the turn: `cancel()` does.
    """

    def __init__(
        self,
        http: Transport,
        session_id: str,
        turn_index: int,
        after: int,
        on_permission: OnPermission | None = None,
    ) -> None:
        self.session_id = session_id
        self.turn_index = turn_index
        self._http = http
        self._on_permission = on_permission
        self._seen: list[AnyEvent] = []
        self._ended = False
        self._events = follow(http, session_id, after)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AnyEvent:
        while not self._ended:
            event = self._events.__next__()
            if event.turn != self.turn_index:
                continue
            self._seen.append(event)
            self._ended = event.type == "turn.ended"
            if event.type == "permission.requested":
                self._ask(str(event.model_dump().get("permission_id")))
            return event
        self.close()
        raise StopIteration

    def _ask(self, permission_id: str) -> None:
        """Have the caller's function decide, unless somebody has decided already."""
        if self._on_permission is None:
            return
        waiting = self._http.call(calls.PERMISSIONS(self.session_id, params={"state": "pending"}))
        for request in waiting:
            if request.permission_id != permission_id:
                continue
            decision = read_answer(resolve(self._on_permission(request)))
            if decision is not None:
                with suppress(AlreadyDecided):
                    body = {"decision": decision}
                    self._http.call(calls.DECIDE(self.session_id, permission_id, body=body))

    def text(self) -> Iterator[str]:
        """Only the words of the answer, piece by piece."""
        for event in self:
            if event.type == "text":
                yield event.text

    def result(self) -> TurnResult:
        """The whole turn; first reads on to its end. A failed turn raises nothing; see `outcome`."""
        for _ in self:
            pass
        return TurnResult.from_events(self.session_id, self.turn_index, self._seen)

    def cancel(self) -> CancelReply:
        """Stop this turn and no other, running or queued. The stream then ends with what was said so far."""
        return self._http.call(calls.CANCEL(self.session_id, body={"turn": self.turn_index}))

    def close(self) -> None:
        """Stop reading. The turn goes on."""
        self._events.close()
