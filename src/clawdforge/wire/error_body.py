"""The one body that carries a failure, on every path."""

from typing import Literal

from clawdforge.wire.base import Json, Reply


class ErrorBody(Reply):
    """`error` and `detail` say the same: callers of three old programs look in different places."""

    ok: Literal[False] = False
    error: str
    detail: str
    code: str


def error_body(code: str, message: str, extra: Json | None = None) -> Json:
    """The body of a failure; `extra` holds the keys that one path adds, such as `active_stream_id`."""
    return {"ok": False, "error": message, "detail": message, "code": str(code), **(extra or {})}
