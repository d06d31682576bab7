"""The head of a request, looked through once: what it says by the names of its headers."""

from typing import Final

from starlette.types import Scope

KEY: Final = "clawdforge.head"
"""Where a request's scope keeps it."""


class Head:
    """Names are in lower case, as ASGI has them. Whoever may hear only one word asks for all of them."""

    __slots__ = ("_headers", "_is_plain", "_last")

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._headers = headers
        self._last = dict(headers)
        self._is_plain = len(self._last) == len(headers)

    def __contains__(self, name: bytes) -> bool:
        return name in self._last

    def is_without(self, names: frozenset[bytes]) -> bool:
        """Whether none of these was sent."""
        return names.isdisjoint(self._last)

    def list(self, name: bytes) -> list[bytes]:
        """All that was said under a name, in order."""
        value = self._last.get(name)
        if value is None:
            return []
        return [value] if self._is_plain else [said for known, said in self._headers if known == name]

    def first(self, name: bytes) -> bytes | None:
        value = self._last.get(name)
        return value if value is None or self._is_plain else self.list(name)[0]


def head_of(scope: Scope) -> Head:
    """The head of this request."""
    found: Head | None = scope.get(KEY)
    if found is None:
        found = scope[KEY] = Head(scope["headers"])
    return found
