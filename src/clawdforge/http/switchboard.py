"""Finds a request's route by the parts of its path, instead of asking one route after the other.

Starlette asks them all. For a path that comes late in the order, or that is not served, that was most of what
the request cost.
"""

from collections.abc import Awaitable, Iterable
from typing import Final

from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from clawdforge.http.routing import OpenRoute

ANY: Final = "{}"
"""Stands for a part of a path that differs from request to request."""
REST: Final = ":path}"
"""Ends a part that takes the rest of the path, however many parts that has."""
REMEMBERED: Final = 1000
"""Outlines. There are a few hundred; whoever asks for all sorts of paths is not to fill the memory."""


class Switchboard:
    """In front of a router whose routes are all there: it hands each request to the one that takes it."""

    def __init__(self, router: Router, routes: Iterable[OpenRoute | Route]) -> None:
        self._router = router
        self._routes = [(_outline(route.path), route) for route in routes]
        self._words = {part for outline, _ in self._routes for part in outline}
        self._longest = max(len(outline) for outline, _ in self._routes)
        self._found: dict[tuple[str, ...], list[OpenRoute | Route]] = {}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self._router.app(scope, receive, send)
        return self._find(scope)(scope, receive, send)

    def _find(self, scope: Scope) -> ASGIApp:
        """What takes this request, which is told what its path says."""
        scope["router"] = self._router
        other_method: tuple[OpenRoute | Route, Scope] | None = None
        for route in self._list_candidates(scope["path"]):
            match, more = route.matches(scope)
            if match is Match.FULL:
                scope.update(more)
                return route.handle
            if match is Match.PARTIAL and other_method is None:
                other_method = route, more
        if other_method is None:
            return self._router.default
        route, more = other_method
        scope.update(more)
        return route.handle  # which says that this method is not allowed

    def _list_candidates(self, path: str) -> list[OpenRoute | Route]:
        """The routes that may take this path, in their order. Paths of one outline share an answer."""
        parts = path.split("/", self._longest)
        words = self._words
        outline = tuple([part if part in words else ANY for part in parts])
        found = self._found.get(outline)
        if found is None:
            found = [route for takes, route in self._routes if _may_take(takes, outline)]
            if found and len(self._found) < REMEMBERED:
                self._found[outline] = found
        return found


def _outline(path: str) -> tuple[str, ...]:
    """`/sessions/{session_id}/turn` as `("", "sessions", "{}", "turn")`."""
    return tuple(_shorten(part) for part in path.split("/"))


def _shorten(part: str) -> str:
    if "{" not in part:
        return part
    return REST if part.endswith(REST) else ANY


def _may_take(takes: tuple[str, ...], asked: tuple[str, ...]) -> bool:
    for number, part in enumerate(takes):
        if part == REST:
            return number <= len(asked)
        if number == len(asked) or part not in (ANY, asked[number]):
            return False
    return len(takes) == len(asked)
