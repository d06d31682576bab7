"""The switchboard hands a request to the route that asking all of them in order would have found."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from clawdforge.core.services.all import Services
from clawdforge.http.app import ForgeAPI, build_asgi
from clawdforge.http.routing import OpenRoute
from clawdforge.http.settings import HttpSettings
from clawdforge.http.switchboard import REMEMBERED, Switchboard

ID = "3fae92bc"
METHODS = ("GET", "POST", "DELETE", "PUT", "BREW")


@pytest.fixture(scope="module")
def asgi() -> ForgeAPI:
    """All routes of the server, hermes' with a prefix of their own."""
    settings = HttpSettings(stopping=asyncio.Event(), hermes_prefix="/page")
    found: Any = build_asgi(cast(Services, None), settings)
    while not isinstance(found, ForgeAPI):
        found = found._asgi
    return found


def list_paths(asgi: ForgeAPI) -> set[str]:
    """Every route's path with ids in it, with other routes' words in their place, and a little beside it."""
    paths = {cast(OpenRoute, route).path for route in asgi.router.routes}
    words = {part for path in paths for part in path.split("/") if part and "{" not in part}
    found = {"", "/", "//", "/{}", "/:path}", "/sessions/{}/:path}", "/ui/sessions/a/b/c/d/e/f/g/h/i/j"}
    for path in paths:
        for value in (ID, "a/b", *sorted(words)[::60]):
            filled = fill(path, value)
            found |= {filled, filled + "/", filled + "/x", filled.rpartition("/")[0]}
    return found


def fill(path: str, value: str) -> str:
    return "/".join(value if "{" in part else part for part in path.split("/"))


def ask_all(asgi: ForgeAPI, path: str, method: str) -> tuple[BaseRoute | None, Match]:
    partly: BaseRoute | None = None
    for route in asgi.router.routes:
        match, _ = route.matches(make_scope(asgi, path, method))
        if match is Match.FULL:
            return route, match
        if match is Match.PARTIAL and partly is None:
            partly = route
    return partly, Match.PARTIAL if partly else Match.NONE


def make_scope(asgi: ForgeAPI, path: str, method: str) -> Scope:
    return {"type": "http", "app": asgi, "path": path, "method": method, "headers": [], "query_string": b""}


class Exchange:
    """A switchboard whose routes only note that a request came to them."""

    def __init__(self, asgi: ForgeAPI, patch: pytest.MonkeyPatch) -> None:
        self.asgi = asgi
        self._taken: list[BaseRoute | None] = []
        for route in asgi.router.routes:
            patch.setattr(route, "handle", self._notice(route))
        patch.setattr(asgi.router, "default", self._notice(None))

    async def ask(self, path: str, method: str) -> BaseRoute | None:
        """The route that it hands the request to; None where it says that nothing is there."""
        self._taken.clear()
        board = cast(Switchboard, self.asgi.router.middleware_stack)
        await board(make_scope(self.asgi, path, method), cast(Any, None), cast(Any, None))
        (route,) = self._taken
        return route

    def _notice(self, route: BaseRoute | None) -> Any:
        async def handle(*_args: Any) -> None:
            self._taken.append(route)

        return handle


@pytest.fixture
def exchange(asgi: ForgeAPI, monkeypatch: pytest.MonkeyPatch) -> Exchange:
    return Exchange(asgi, monkeypatch)


def chosen(paths: set[str]) -> Iterator[tuple[str, str]]:
    for number, path in enumerate(sorted(paths)):
        yield path, METHODS[number % len(METHODS)]


async def test_it_finds_what_asking_all_in_order_finds(exchange: Exchange) -> None:
    found = set()
    for path, method in chosen(list_paths(exchange.asgi)):
        expected, match = ask_all(exchange.asgi, path, method)
        assert await exchange.ask(path, method) is expected, (method, path)
        found.add(match)
    assert found == {Match.FULL, Match.PARTIAL, Match.NONE}


async def test_every_route_is_found_by_its_own_path(exchange: Exchange) -> None:
    for route in exchange.asgi.state.table:
        for method in route.methods:
            assert await exchange.ask(fill(route.path, ID), method) is route


async def test_strange_paths_do_not_fill_its_memory(asgi: ForgeAPI) -> None:
    board = Switchboard(asgi.router, cast(Any, asgi.router.routes))
    words = ("sessions", "turn", "admin", "files", "ui", "events", "apps", "tokens", "undo", "redo")
    for number in range(REMEMBERED * 3):
        path = "/ui/" + "/".join(words[int(digit)] for digit in str(number))
        assert board._list_candidates(path)
    assert len(board._found) == REMEMBERED
    assert board._list_candidates("/sessions/x/turn/y/z/nowhere") == []
