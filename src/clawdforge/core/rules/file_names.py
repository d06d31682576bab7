"""Names that strangers give to files, made safe to store, to show and to use as one."""

import unicodedata

MAX_BYTES = 255
MAX_SUFFIX_BYTES = 32
UNNAMED = "file"
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
JOINERS = "\u200c\u200d"  # part of words in some scripts, and of emoji


def file_name(given: str) -> str:
    """The last part of a path, NFC, at most 255 bytes, with no character that hides or turns others."""
    last = given.replace("\\", "/").rsplit("/", 1)[-1]
    shown = "".join(char for char in last if char in JOINERS or unicodedata.category(char) not in HIDDEN)
    name = unicodedata.normalize("NFC", " ".join(shown.split()))
    if not name.strip("." + JOINERS):
        return UNNAMED
    if len(name.encode()) <= MAX_BYTES:
        return name
    stem, dot, suffix = name.rpartition(".")
    ending = dot + suffix
    if not stem or len(ending.encode()) > MAX_SUFFIX_BYTES:
        stem, ending = name, ""
    return _first(stem, MAX_BYTES - len(ending.encode())) + ending


def _first(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore").rstrip()
