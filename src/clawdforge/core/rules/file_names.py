"""Makes file names from strangers safe to store, show and use."""

import re
import unicodedata

MAX_BYTES = 255
MAX_SUFFIX_BYTES = 32
UNNAMED = "file"
MARK_CHARS = 11
MARK = re.compile(rf"-(ff_[\w-]{{{MARK_CHARS - 3}}})(?:\.[^.]*)?$", re.ASCII)
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
JOINERS = "\u200c\u200d"  # part of words in some scripts, and of emoji


def safe_file_name(given: str) -> str:
    """The last part of a path in NFC, at most 255 bytes, without control or formatting characters."""
    last = given.replace("\\", "/").rsplit("/", 1)[-1]
    shown = "".join(char for char in last if char in JOINERS or unicodedata.category(char) not in HIDDEN)
    name = unicodedata.normalize("NFC", " ".join(shown.split()))
    if not name.strip("." + JOINERS):
        return UNNAMED
    if len(name.encode()) <= MAX_BYTES:
        return name
    stem, ending = _split(name)
    return _truncate(stem, MAX_BYTES - len(ending.encode())) + ending


def mark_file_name(given: str, token: str) -> str:
    """A safe name that no other file has, because it tells how the file's token begins."""
    stem, ending = _split(safe_file_name(given))
    ending = f"-{token[:MARK_CHARS]}{ending}"
    return _truncate(stem, MAX_BYTES - len(ending.encode())) + ending


def find_mark(name: str) -> str | None:
    """How the token of a file with such a name begins."""
    found = MARK.search(name)
    return found[1] if found else None


def _split(name: str) -> tuple[str, str]:
    """A name and its ending, if it has one that is worth keeping."""
    stem, dot, suffix = name.rpartition(".")
    ending = dot + suffix
    return (stem, ending) if stem and len(ending.encode()) <= MAX_SUFFIX_BYTES else (name, "")


def _truncate(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore").rstrip()
