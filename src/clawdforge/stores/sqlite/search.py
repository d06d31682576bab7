"""Builds full-text queries from whatever a person typed, and opaque cursors."""

import base64
import binascii
import json
from typing import Any, Final

from clawdforge.wire.errors import InvalidRequest

MAX_WORDS: Final = 16
MAX_CHARS: Final = 1000
PREFIX_FROM: Final = 3  # shorter prefixes match far too much


def build_match(q: str) -> str | None:
    """All words must occur, and the last one may be a prefix. None when there is nothing to search for."""
    words, is_prefix = split_words(q)
    if not words:
        return None
    quoted = ['"' + word.replace('"', '""') + '"' for word in words]
    return " AND ".join(quoted) + ("*" if is_prefix else "")


def split_words(q: str) -> tuple[list[str], bool]:
    """The words of a search, and whether the last one may be a prefix."""
    text = q[:MAX_CHARS].replace("\0", " ").encode("utf-8", "replace").decode()
    words = [word for word in text.split() if any(char.isalnum() for char in word)][:MAX_WORDS]
    return words, bool(words) and len(words[-1]) >= PREFIX_FROM and words[-1][-1].isalnum()


def to_cursor(*values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def from_cursor(cursor: str, *kinds: type) -> list[Any]:
    """The values that `to_cursor` was given. Raises InvalidRequest if the cursor was not made by it."""
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error) as error:
        raise InvalidRequest("this cursor is not valid; start without one") from error
    fits = isinstance(values, list) and [type(value) for value in values] == list(kinds)
    if not fits:
        raise InvalidRequest("this cursor is not valid; start without one")
    return list(values)
