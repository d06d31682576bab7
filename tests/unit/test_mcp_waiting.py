"""What `wait` of the MCP server keeps of a turn's events."""

import orjson

from clawdforge.core.models.events import StoredEvent
from clawdforge.http.dialects.mcp.waiting import MAX_CHARS, _Heard
from clawdforge.wire.event import EventType


def text(seq: int, content: str) -> StoredEvent:
    return StoredEvent(seq, EventType.TEXT, 1, orjson.dumps({"content": content}))


def test_only_what_is_said_is_decoded() -> None:
    """What tools return may be megabytes, and is not shown."""
    heard = _Heard(1, 0)
    heard.take(StoredEvent(1, EventType.TOOL_UPDATE, 1, b"not even JSON"))
    heard.take(StoredEvent(2, EventType.TEXT, 2, b"of another turn"))
    assert (heard.cursor, heard.texts, heard.is_enough) == (2, [], False)


def test_it_is_enough_when_so_many_letters_came() -> None:
    heard = _Heard(1, 0)
    for seq in range(1, MAX_CHARS):
        heard.take(text(seq, "a"))
    assert not heard.is_enough
    heard.take(text(MAX_CHARS, "a"))
    assert heard.is_enough
    assert not heard.is_cut


def test_of_one_long_piece_the_rest_is_left_out() -> None:
    heard = _Heard(1, 0)
    heard.take(text(1, "a" * (MAX_CHARS + 1)))
    assert heard.is_cut
    assert heard.texts == ["a" * MAX_CHARS]
