"""Builds the ASGI object from services and settings: routes, error handlers and middleware."""

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.routing import Router as AnyRouter
from starlette.types import Receive, Scope, Send

from clawdforge.by_name import load
from clawdforge.core.services.all import Services
from clawdforge.http.access.guard import Guard
from clawdforge.http.access.login import login_router
from clawdforge.http.access_log import STATUS
from clawdforge.http.connections.lanes import Lanes
from clawdforge.http.dialects.deepagent import routers as deepagent
from clawdforge.http.dialects.forge import routers as forge
from clawdforge.http.dialects.hermes import routers as hermes
from clawdforge.http.dialects.openai.chat_locks import ChatLocks
from clawdforge.http.errors import EXPECTED, explain
from clawdforge.http.middleware import Envelope
from clawdforge.http.requests.bodies import BodyBudget
from clawdforge.http.requests.deadlines import Deadlines
from clawdforge.http.routers import Router
from clawdforge.http.routing import OpenRoute
from clawdforge.http.scopes import find_scope
from clawdforge.http.settings import HttpSettings
from clawdforge.http.switchboard import Switchboard
from clawdforge.http.web_page.routers import find_page, page_router
from clawdforge.wire.base import Json

FACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openai": "openai.routers:routers",
        "mcp": "mcp.routers:routers",
        "agui": "ui.routers:agui_routers",
        "vercel": "ui.routers:vercel_routers",
        "acp": "acp.routers:routers",
    }
)
"""Doors that are closed until the operator names them, and imported only then: a start is to be quick."""

DESCRIBE: Final = "clawdforge.http.description:describe_all"
TITLE: Final = "clawdforge"


class ForgeAPI:
    """All routes, and what their handlers find at `request.app`. It tells of them in the words of OpenAPI."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.state = SimpleNamespace()
        self.router = AnyRouter(redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Failures are answered here, and bugs by the envelope around it."""
        scope["app"] = self
        try:
            await self.router.middleware_stack(scope, receive, send)
        except EXPECTED as error:
            if scope["state"][STATUS] is not None:
                raise RuntimeError("a request failed after its answer had begun") from error
            await explain(Request(scope, receive, send), error)(scope, receive, send)

    def openapi(self) -> Json:
        """The description, which also says which routes need a token and how each can fail."""
        described: Json = load(DESCRIBE)(TITLE, self.version, self.state.table)
        return described


def build_asgi(services: Services, settings: HttpSettings, bodies: BodyBudget | None = None) -> Envelope:
    """Build everything that the server answers. Raises if two routes have the same method and path."""
    asgi = ForgeAPI(settings.version or "0")
    asgi.state.services = services
    asgi.state.settings = settings
    asgi.state.lanes = Lanes(services)
    asgi.state.bodies = bodies or BodyBudget(settings.max_bodies_bytes)
    asgi.state.deadlines = Deadlines(settings.request_secs)
    asgi.state.planning = threading.Lock()
    asgi.state.page = find_page()
    asgi.state.chat_locks = ChatLocks()
    dialects = [*hermes.routers(settings.hermes_prefix), *deepagent.routers()]
    for name, where in FACES.items():
        dialects += load(f"clawdforge.http.dialects.{where}")() if name in settings.faces else []
    asgi.state.table = list(join_routes([*forge.routers(), login_router(), page_router(), *dialects]))
    asgi.state.scopes = {
        (method, route.path_format): find_scope(route, method, settings.hermes_prefix)
        for route in asgi.state.table
        for method in route.methods
    }
    asgi.state.literal_paths = {route.path for route in asgi.state.table if not route.has_parameters}
    routes = [*asgi.state.table, Route("/openapi.json", Description(asgi).tell)]
    asgi.router.routes += routes
    asgi.router.middleware_stack = Switchboard(asgi.router, routes)  # type: ignore[assignment]  # it is awaited
    guard = Guard(settings.bind_host, settings.allowed_hosts)
    front = Envelope(asgi, guard, asgi.state.lanes, settings.stopping)
    asgi.state.front = front
    return front


class Description:
    """Every route in the words of OpenAPI: made when somebody asks, since it takes a second."""

    def __init__(self, asgi: ForgeAPI) -> None:
        self._asgi = asgi
        self._body = b""
        self._making = asyncio.Lock()

    async def tell(self, request: Request) -> Response:  # noqa: ARG002 - what Starlette calls with one
        async with self._making:
            self._body = self._body or await asyncio.to_thread(self._make)
        return Response(self._body, media_type="application/json")

    def _make(self) -> bytes:
        with self._asgi.state.planning:
            return orjson.dumps(self._asgi.openapi())


def join_routes(routers: Iterable[Router]) -> Iterator[OpenRoute]:
    """The routes of all routers, one after the other."""
    claimed: set[tuple[str, str]] = set()
    for router in routers:
        for route in router.routes:
            for method in route.methods:
                claim = (method, route.path_format)
                if claim in claimed:
                    raise ValueError(f"two routes claim {method} {route.path_format}")
                claimed.add(claim)
            yield route
