"""Makes file names from strangers safe to store, show and use."""

import unicodedata

MAX_BYTES = 255
MAX_SUFFIX_BYTES = 32
UNNAMED = "file"
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
    stem, dot, suffix = name.rpartition(".")
    ending = dot + suffix
    if not stem or len(ending.encode()) > MAX_SUFFIX_BYTES:
        stem, ending = name, ""
    return _truncate(stem, MAX_BYTES - len(ending.encode())) + ending


def _truncate(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore").rstrip()
