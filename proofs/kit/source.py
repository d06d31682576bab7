"""Makes copies of the source with a planted change. A change that no longer fits is an error."""

import ast
import shutil
from dataclasses import dataclass
from pathlib import Path

PARTS = ("src", "tests", "proofs", "pyproject.toml", "docs", "scripts", "bench", "README.md")


@dataclass(frozen=True, slots=True)
class Change:
    """In `path`, exactly one `old` becomes `new`."""

    path: str
    old: str
    new: str


class DoesNotFit(Exception):
    """The source has changed: rewrite the planted change."""


def check_fits(source: Path, change: Change) -> None:
    text = (source / change.path).read_text()
    count = text.count(change.old)
    if count != 1:
        raise DoesNotFit(f"{change.path} has {count} places like {change.old!r}")
    if change.path.endswith(".py"):
        try:
            ast.parse(text.replace(change.old, change.new))
        except SyntaxError as error:
            raise DoesNotFit(f"{change.path} with {change.new!r} is no Python: {error}") from error


def plant(source: Path, folder: Path, *changes: Change) -> Path:
    """Make a copy of the source with these changes."""
    for part in PARTS:
        here = source / part
        if here.is_dir():
            shutil.copytree(here, folder / part, ignore=shutil.ignore_patterns("__pycache__", "results"))
        elif here.exists():
            shutil.copy(here, folder / part)
    for change in changes:
        check_fits(folder, change)
        path = folder / change.path
        path.write_text(path.read_text().replace(change.old, change.new))
    return folder


NORMAL = Change(
    "src/clawdforge/stores/sqlite/connection.py", '"synchronous", "full"', '"synchronous", "normal"'
)
