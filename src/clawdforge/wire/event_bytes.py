"""The bytes of an event in its other form: joined from the stored bytes where possible, else made anew.

An agent can send 30 MiB of tiny lists in one update. Decoding and encoding them would hold up everybody for
seconds, while joining bytes takes a few hundredths of one.
"""

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import orjson

from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import LIFTED, nest, unnest

LARGE: Final = 256 * 1024
USUAL_EVENT: Final = re.compile(
    rb'(\{"seq":\d+,"ts":"[^"\\]*","turn":(?:\d+|null),"type":"[a-z_]+"),'
    rb'"agent_session_id":("[^"\\]*"),"update":(?=\{")'
)
"""How the server writes an event whose last key is the agent's whole update, up to that update."""

OURS: Final = (b'"sessionId":', b'"update":')
"""Keys that stand beside the copied ones in the nested form, so an update that has them is copied by key."""


def nest_bytes(kind: str, data: bytes) -> bytes:
    """The nested form of a compact event of the agent."""
    return _join_nested(kind, data) or _convert(nest, data)


def unnest_bytes(data: bytes) -> bytes:
    """The compact form of an agent's event that was stored nested."""
    return _convert(unnest, data)


def _join_nested(kind: str, data: bytes) -> bytes | None:
    """None where the event is not written as usual, or where a key of the update could be one of ours."""
    usual = USUAL_EVENT.match(data)
    if usual is None or kind in LIFTED or kind == EventType.RESPONSE or not data.endswith(b"}}"):
        return None
    if any(data.find(key, usual.end()) >= 0 for key in OURS):
        return None
    head, session_id = usual.groups()
    update = data[usual.end() : -1]
    return b'%b,"jsonrpc":"2.0","method":"session/update","params":%b,"sessionId":%b,"update":%b}}' % (
        head,
        update[:-1],
        session_id,
        update,
    )


def _convert(change: Callable[[Json], Json], data: bytes) -> bytes:
    if len(data) < LARGE:
        return orjson.dumps(change(orjson.loads(data)))
    with _paused_collection():
        return orjson.dumps(change(orjson.loads(data)))


@contextmanager
def _paused_collection() -> Iterator[None]:
    """Millions of new objects would make the collector look at all of them again and again, and free none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
