"""The files of the web page as they are sent: without notes, joined, packed once, and the sum of them all."""

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from clawdforge.http.web_page.joining import join_modules

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

INDEX: Final = "index.html"
APART: Final = "apart.html"
"""The page as its files lie there, one by one, for whoever looks into it with a browser's tools."""

UNSEALED: Final = b"v/0/"
"""How index.html writes the folder of the other files; the sum of them all takes the place of the nought."""

NOTE: Final = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/)[ \t]*$", re.MULTILINE)
"""A comment that has its lines to itself: an eighth of what would be sent."""

FIRST: Final = "app/main.js"
WORKER: Final = "app/stream/worker.js"
SCRIPT: Final = "page.js"
STYLE: Final = "page.css"
STYLES: Final = re.compile(r'<link rel="stylesheet" href="v/0/([^"]+)">\s*')
TAKEN: Final = (INDEX, "app/theme.js", "app/early.js", SCRIPT, STYLE, WORKER, "icon.svg")
"""What a visit takes, and therefore is packed."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file as it is sent. `packed` is None for what only `apart` asks for."""

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


def read_tree(folder: Path, known: PageTree | None) -> PageTree:
    """All files of the folder; the tree that is known already, if nothing has changed since."""
    paths = {path.relative_to(folder).as_posix(): path for path in _walk(folder)}
    stats = ((name, path.stat()) for name, path in sorted(paths.items()))
    stamp = tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
    if known is not None and known.stamp == stamp:
        return known
    sent = join_files({name: leave_notes(name, path.read_bytes()) for name, path in paths.items()})
    sums = "".join(f"{name} {_sum(content)}\n" for name, content in sorted(sent.items()))
    seal = _sum(sums.encode())[:16]
    for name in (INDEX, APART):
        sent[name] = sent[name].replace(UNSEALED, f"v/{seal}/".encode())
    return PageTree(stamp, seal, {name: _pack(name, content) for name, content in sent.items()})


def join_files(contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files, and one script and one style that stand for the many; the page asks for those."""
    modules = {name: content.decode() for name, content in contents.items() if name.endswith(".js")}
    index = contents[INDEX].decode()
    styles = b"".join(contents[name] for name in STYLES.findall(index))
    style = f'<link rel="stylesheet" href="v/0/{STYLE}">\n</head>'
    joined = STYLES.sub("", index).replace("</head>", style).replace(f"v/0/{FIRST}", f"v/0/{SCRIPT}")
    return {
        **contents,
        INDEX: joined.encode(),
        APART: contents[INDEX],
        STYLE: styles,
        SCRIPT: join_modules(modules, FIRST, SCRIPT).encode(),
        WORKER: join_modules(modules, WORKER, WORKER).encode(),
    }


def leave_notes(name: str, content: bytes) -> bytes:
    """A module of ours as it is sent: comments stay here, and every line keeps its number."""
    if not (name.startswith("app/") and name.endswith(".js")):
        return content
    return NOTE.sub(lambda found: "\n" * found[0].count("\n"), content.decode()).encode()


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix in KINDS and path.is_file() and not path.is_symlink():
            yield path


def _pack(name: str, content: bytes) -> PageFile:
    packed = gzip.compress(content, 9, mtime=0) if name in TAKEN else None
    return PageFile(content, packed, KINDS[Path(name).suffix], f'"{_sum(content)[:32]}"')


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
