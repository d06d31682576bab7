"""Serves the files of the web page at /ui/: only those that lie there, packed once, cached by their sum."""

import asyncio
import gzip
import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.routing import OpenRoute
from clawdforge.wire.errors import RouteNotFound

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".html": "text/html; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".svg": "image/svg+xml",
        ".png": "image/png",
        ".webmanifest": "application/manifest+json",
        ".LICENSE": "text/plain; charset=utf-8",
    }
)
"""What is served. A file of any other kind that gets into the folder is not."""

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

INDEX: Final = "index.html"
UNSEALED: Final = "v/0/"
"""How index.html writes the folder of the other files; the sum of them all takes the place of the nought."""

SEALED: Final = re.compile(r"v/([0-9a-f]{16})/(.+)")
STATIC_IMPORT: Final = re.compile(r"""^\s*(?:import|export)\b[^"'()]*["'](\.[^"']+)["']""", re.MULTILINE)
NOTE: Final = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/)[ \t]*$", re.MULTILINE)
"""A comment that has its lines to itself: an eighth of what would be sent."""

PRELOADS: Final = "<!-- preloads -->"
FIRST: Final = ("app/main.js", "app/screens/chat/index.js")
"""Where the page begins, and the screen that most people come for: both are fetched at once."""

FOR_EVER: Final = "public, max-age=31536000, immutable"
ASK_AGAIN: Final = "no-cache"
MIN_SAVING: Final = 0.9


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file as it is sent. `packed` is None where packing would not make it smaller."""

    content: bytes
    packed: bytes | None
    kind: str
    etag: str


@dataclass(frozen=True, slots=True)
class PageTree:
    """All files as they were at one moment; `seal` is the sum over all of them."""

    stamp: tuple[tuple[str, int, int], ...]
    seal: str
    files: Mapping[str, PageFile]


class Page:
    """Reads the folder when it is first asked for, and again when a file in it has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tree: PageTree | None = None
        self._reading = asyncio.Lock()

    async def index(self) -> tuple[PageFile, PageTree]:
        """The page itself, of the newest tree: whoever opens it looks whether there is another."""
        async with self._reading:
            self._tree = await asyncio.to_thread(read_tree, self._folder, self._tree)
        return self._tree.files[INDEX], self._tree

    async def tree(self) -> PageTree:
        return self._tree if self._tree is not None else (await self.index())[1]


def read_tree(folder: Path, known: PageTree | None) -> PageTree:
    """All files of the folder; the tree that is known already, if nothing has changed since."""
    paths = {path.relative_to(folder).as_posix(): path for path in _walk(folder)}
    stats = ((name, path.stat()) for name, path in sorted(paths.items()))
    stamp = tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
    if known is not None and known.stamp == stamp:
        return known
    contents = {name: path.read_bytes() for name, path in paths.items()}
    sums = "".join(f"{name} {_sum(content)}\n" for name, content in sorted(contents.items()))
    seal = _sum(sums.encode())[:16]
    contents[INDEX] = _seal_index(contents, seal)
    sent = {name: leave_notes(name, content) for name, content in contents.items()}
    return PageTree(stamp, seal, {name: _pack(name, content) for name, content in sent.items()})


def leave_notes(name: str, content: bytes) -> bytes:
    """A module of ours as it is sent: comments stay here, and every line keeps its number."""
    if not (name.startswith("app/") and name.endswith(".js")):
        return content
    return NOTE.sub(lambda found: "\n" * found[0].count("\n"), content.decode()).encode()


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix in KINDS and path.is_file() and not path.is_symlink():
            yield path


def _seal_index(contents: Mapping[str, bytes], seal: str) -> bytes:
    """Name the sealed folder, and what the first modules need, so that a browser fetches it all at once."""
    folder = UNSEALED.replace("0", seal)
    needed = sorted(set().union(*(_find_imports(contents, first) for first in FIRST)))
    links = "\n".join(f'<link rel="modulepreload" href="{folder}{name}">' for name in needed)
    text = contents[INDEX].decode().replace(UNSEALED, folder)
    return text.replace(PRELOADS, links).encode()


def _find_imports(contents: Mapping[str, bytes], first: str) -> set[str]:
    found: set[str] = set()
    left = [first]
    while left:
        name = left.pop()
        if name in found or name not in contents:
            continue
        found.add(name)
        folder = posixpath.dirname(name)
        paths = STATIC_IMPORT.findall(contents[name].decode())
        left += [posixpath.normpath(posixpath.join(folder, path)) for path in paths]
    return found


def _pack(name: str, content: bytes) -> PageFile:
    packed = gzip.compress(content, 9, mtime=0)
    worth = len(packed) < len(content) * MIN_SAVING
    kind = KINDS[Path(name).suffix]
    return PageFile(content, packed if worth else None, kind, f'"{_sum(content)[:32]}"')


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def page_router() -> APIRouter:
    router = APIRouter(route_class=OpenRoute, tags=["page"], include_in_schema=False)
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
    if path in {"", "shared"}:
        file, _ = await page.index()
        return _send(request, file, ASK_AGAIN)
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
