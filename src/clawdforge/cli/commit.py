"""Which commit this program was made from, where that is known."""

import re
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parents[1]
FILE: Final = "commit.txt"
"""What a built package has beside its modules; `scripts/build_commit.py` puts it there."""

SIGNS: Final = 12
HASH: Final = re.compile(r"[0-9a-f]{40,64}")


def find_commit(package: Path = PACKAGE) -> str | None:
    """Of a package, what it was built from; of a checkout, where it is now, read without starting git."""
    built = _read(package / FILE)
    if built:
        return built
    git = package.parent.parent / ".git"
    if package.parent.name != "src" or not git.exists():
        return None
    if git.is_file():  # a second work tree: its own head, and the names of the repository it belongs to
        git = Path(_read(git).removeprefix("gitdir: "))
    head = _read(git / "HEAD")
    shared = git / (_read(git / "commondir") or ".")
    name = head.removeprefix("ref: ")
    found = head if name == head else _read(shared / name) or _find_packed(shared, name)
    return found[:SIGNS] if HASH.fullmatch(found) else None


def _find_packed(git: Path, name: str) -> str:
    lines = (line.split(" ") for line in _read(git / "packed-refs").splitlines())
    return next((words[0] for words in lines if words[1:] == [name]), "")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
