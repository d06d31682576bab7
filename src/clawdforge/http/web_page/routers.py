"""Serves the web page at /ui/: only its own files, under a policy that lets nothing else run."""

import asyncio
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.routers import Router
from clawdforge.http.routing import OpenRoute
from clawdforge.http.web_page.files import APART, INDEX, PageFile, PageTree, read_tree
from clawdforge.wire.errors import RouteNotFound

POLICY: Final = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "connect-src 'self'; "
    "img-src 'self' blob: data:; "
    "worker-src 'self'; "
    "manifest-src 'self'; "
    "base-uri 'none'; "
    "form-action 'none'; "
    "frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; "
    "trusted-types clawdforge dompurify"
)
"""Only our own files run, nothing that stands in the page itself, and text becomes markup in one place."""

PAGES: Final[Mapping[str, str]] = MappingProxyType({"": INDEX, "shared": INDEX, "apart": APART})
SEALED: Final = re.compile(r"v/([0-9a-f]{16})/(.+)")
FOR_EVER: Final = "public, max-age=31536000, immutable"
ASK_AGAIN: Final = "no-cache"


class Page:
    """Reads the folder when it is first asked for, and again when a file in it has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tree: PageTree | None = None
        self._reading = asyncio.Lock()

    async def newest(self) -> PageTree:
        """Whoever opens the page looks whether there is another."""
        async with self._reading:
            self._tree = await asyncio.to_thread(read_tree, self._folder, self._tree)
        return self._tree

    async def tree(self) -> PageTree:
        return self._tree if self._tree is not None else await self.newest()


def page_router() -> Router:
    router = Router(OpenRoute, tags=["page"], include_in_schema=False)
    router.get("/")(open_page)
    router.get("/ui")(open_folder)
    router.get("/ui/{path:path}")(read_page)
    return router


def find_page() -> Page:
    """The page that came with this package."""
    return Page(Path(str(files("clawdforge") / "page")))


async def open_page(request: Request) -> Response:
    """Lead a browser to the page; programs find nothing here."""
    if "text/html" not in request.headers.get("accept", ""):
        raise RouteNotFound
    return _redirect("ui/")


async def open_folder() -> Response:
    """Lead to the page's folder, since its addresses are relative to it."""
    return _redirect("ui/")


async def read_page(request: Request, path: str) -> Response:
    """A file of the web page. Needs no token; whoever has none is asked for one there."""
    page: Page = request.app.state.page
    if path in PAGES:
        return _send(request, (await page.newest()).files[PAGES[path]], ASK_AGAIN)
    found = SEALED.fullmatch(path)
    tree = await page.tree()
    name = found[2] if found else path
    if name not in tree.files:
        raise RouteNotFound
    is_sealed = found is not None and found[1] == tree.seal
    return _send(request, tree.files[name], FOR_EVER if is_sealed else ASK_AGAIN)


def _redirect(place: str) -> Response:
    return Response(status_code=307, headers={"Location": place, "Cache-Control": ASK_AGAIN})


def _send(request: Request, file: PageFile, caching: str) -> Response:
    headers = {
        "Vary": "Accept-Encoding",
        "Content-Security-Policy": POLICY,
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }
    if file.etag in request.headers.get("if-none-match", ""):
        return _keep(Response(status_code=304, headers=headers), file, caching)
    packed = file.packed if "gzip" in request.headers.get("accept-encoding", "") else None
    if packed is not None:
        headers["Content-Encoding"] = "gzip"
    return _keep(Response(packed or file.content, headers=headers, media_type=file.kind), file, caching)


def _keep(reply: Response, file: PageFile, caching: str) -> Response:
    """Say last for how long it holds. Over plain HTTP a browser takes headers that were cut off for whole
    ones, and would keep a file without its length and kind for ever."""
    reply.headers["ETag"] = file.etag
    reply.headers["Cache-Control"] = caching
    return reply
