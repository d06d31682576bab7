"""The bytes of an event in its other form: parts of the stored bytes where possible, else made anew.

An agent can send 30 MiB of tiny lists, or of words, in one update. Decoding and encoding them would hold up
everybody for seconds, and to join three copies of them takes a tenth of one.
"""

import gc
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import orjson

from clawdforge.wire.base import Json
from clawdforge.wire.event import EventType
from clawdforge.wire.event_forms import LIFTED, SPOKEN, nest, unnest

LARGE: Final = 256 * 1024
USUAL_EVENT: Final = re.compile(
    rb'(\{"seq":\d+,"ts":"[^"\\]*","turn":(?:\d+|null),"type":"[a-z_]+"),'
    rb'"agent_session_id":("[^"\\]*"),"update":(?=\{")'
)
"""How the server writes an event whose last key is the agent's whole update, up to that update."""

USUAL_WORDS: Final = re.compile(
    rb'(\{"seq":\d+,"ts":"[^"\\]*","turn":(?:\d+|null),"type":"[a-z_]+"),'
    rb'"agent_session_id":("[^"\\]*"),"content":(?=")'
)
"""The same of an event that is nothing but words, which come last."""

NUMBER: Final = b'{"seq":'
WORDS: Final = b',"content":"'
OURS: Final = (b'"sessionId":', b'"update":')
"""Keys that stand beside the copied ones in the nested form, so an update that has them is copied by key."""


Part = bytes | memoryview


def nest_bytes(kind: str, data: bytes) -> bytes:
    """The nested form of a compact event of the agent."""
    parts = nested_parts(kind, data)
    return _convert(nest, data) if parts is None else b"".join(parts)


def nested_parts(kind: str, data: bytes) -> list[Part] | None:
    """The same in parts, most of which lie in what was given; None where it has to be made anew."""
    return _part_words(kind, data) if kind in SPOKEN else _part_update(kind, data)


def nest_all(events: Iterable[tuple[str, bytes]]) -> list[bytes]:
    """The nested form of many. What comes between number and words is mostly as in the one before."""
    known: dict[tuple[str, bytes], tuple[bytes, bytes] | None] = {}
    return [_nest_like(kind, data, known) for kind, data in events]


def _nest_like(kind: str, data: bytes, known: dict[tuple[str, bytes], tuple[bytes, bytes] | None]) -> bytes:
    begin, end = data.find(b","), data.find(WORDS)
    alike = (kind, data[begin:end])
    if alike not in known:
        parts = _part_words(kind, data) if kind in SPOKEN else None
        known[alike] = None if parts is None else (bytes(parts[0])[begin:], bytes(parts[2]))
    found = known[alike]
    if found is None or not data[len(NUMBER) : begin].isdigit() or not data.endswith(b'"}'):
        return nest_bytes(kind, data)
    text = data[end + len(WORDS) - 1 : -1]
    return b"".join((data[:begin], found[0], text, found[1], text, b'}}},"content":', text, b"}"))


def unnest_bytes(data: bytes) -> bytes:
    """The compact form of an agent's event that was stored nested."""
    return _convert(unnest, data)


def _part_words(kind: str, data: bytes) -> list[Part] | None:
    usual = USUAL_WORDS.match(data)
    if usual is None or not data.endswith(b'"}'):
        return None
    head, session_id = usual.groups()
    text = memoryview(data)[usual.end() : -1]
    said = b'"sessionUpdate":"%b","content":{"type":"text","text":' % SPOKEN[kind].encode()
    before = b'%b,"jsonrpc":"2.0","method":"session/update","params":{%b' % (head, said)
    between = b'},"sessionId":%b,"update":{%b' % (session_id, said)
    return [before, text, between, text, b'}}},"content":', text, b"}"]


def _part_update(kind: str, data: bytes) -> list[Part] | None:
    """None where the event is not written as usual, or where a key of the update could be one of ours."""
    usual = USUAL_EVENT.match(data)
    if usual is None or kind in LIFTED or kind == EventType.RESPONSE or not data.endswith(b"}}"):
        return None
    if any(data.find(key, usual.end()) >= 0 for key in OURS):
        return None
    head, session_id = usual.groups()
    update = memoryview(data)[usual.end() : -1]
    before = b'%b,"jsonrpc":"2.0","method":"session/update","params":' % head
    return [before, update[:-1], b',"sessionId":%b,"update":' % session_id, update, b"}}"]


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
