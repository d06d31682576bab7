"""`@path` in a prompt: pictures, and files that the agent cannot read by itself, are sent along with it."""

import re
from pathlib import Path
from typing import Final

MENTION: Final = re.compile(r"(?:^|(?<=\s))@(\S+)")
PICTURES: Final = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


def find_attached(prompt: str, folder: Path) -> list[Path]:
    """What is to be sent. Other files in the session's folder are read by the agent where they are."""
    found = (_read_path(word, folder) for word in MENTION.findall(prompt))
    return list(dict.fromkeys(path for path in found if path is not None))


def _read_path(word: str, folder: Path) -> Path | None:
    for name in (word, word.rstrip(".,;:!?)")):  # the end of a sentence is no part of a name
        try:
            path = (folder / Path(name).expanduser()).resolve()
            if path.is_file():
                is_sent = path.suffix.lower() in PICTURES or not path.is_relative_to(folder.resolve())
                return path if is_sent else None
        except (OSError, RuntimeError, ValueError):  # no such home, a loop of links, no name at all
            continue
    return None
