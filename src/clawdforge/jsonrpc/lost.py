"""What the start of a line that was too long tells: which request it was, or the answer to which."""

import re
from dataclasses import dataclass
from typing import Final

import orjson

_MEMBER: Final = rb'"(jsonrpc|method|id)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d{1,18})\s*,\s*'
MEMBER: Final = re.compile(_MEMBER)
HEAD: Final = re.compile(rb"\s*\{\s*((?:" + _MEMBER + rb')*)"(\w+)"')
"""The members before the long one, in any order, and its name. What stands inside of it is not believed."""


@dataclass(frozen=True, slots=True)
class Lost:
    """`number` is its id, None if that does not stand in front of what is long."""

    number: int | str | None = None
    is_request: bool = False
    is_answer: bool = False


def read_head(head: bytes) -> Lost:
    """From the first bytes of the line, whatever they are."""
    found = HEAD.match(head)
    if found is None:
        return Lost()
    members = dict(MEMBER.findall(found[1]))
    name = found[4]
    is_request = b"method" in members or name in (b"method", b"params")
    return Lost(
        _read_id(members.get(b"id")), is_request, is_answer=not is_request and name in (b"result", b"error")
    )


def _read_id(written: bytes | None) -> int | str | None:
    try:
        number = orjson.loads(written) if written is not None else None
    except orjson.JSONDecodeError:
        return None
    return number if isinstance(number, int | str) else None
