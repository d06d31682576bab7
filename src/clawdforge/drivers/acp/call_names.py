"""The name by which a call of a tool is asked about, and by which it is allowed for good.

Whoever decides sees the name, and what has the same name is allowed from then on. So the name has in it what
makes the call another one: the command that is run, what is deleted or moved, the host that is asked. Many
agents call all of these `Bash` or `Delete file`.
"""

import hashlib
import shlex
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from clawdforge.drivers.acp.grants import shown_commands, shows
from clawdforge.wire.base import Json

MAX_TOOL_CHARS: Final = 200
SUM_CHARS: Final = 32
PATH_KEYS: Final = ("path", "file_path", "abs_path", "source", "from", "old_path", "target", "to", "new_path")
URL_KEYS: Final = ("url", "uri")
REMOVING: Final = frozenset({"delete", "move"})


def name_call(call: Json) -> str:
    """What the agent calls it, and what it is about where that does not show it."""
    kind, given = call.get("kind"), call.get("rawInput")
    named = (call.get("title"), kind, call.get("toolCallId"))
    title = next((name for name in named if name and isinstance(name, str)), "tool")
    about = _find_subject(kind, given if isinstance(given, dict) else {}, call.get("locations"))
    return shorten_name(title if not about or shows(title, about) else f"{title}: {about}")


def shorten_name(tool: str) -> str:
    """A name of bounded length; of a long one the end is a sum of all of it.

    What is allowed for good is known by its name, so two long commands with the same beginning need two.
    """
    if len(tool) <= MAX_TOOL_CHARS:
        return tool
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:SUM_CHARS]
    return f"{tool[: MAX_TOOL_CHARS - SUM_CHARS - 2]}… {digest}"


def _find_subject(kind: Any, given: Json, locations: Any) -> str:
    for line in shown_commands(given):
        return shlex.join(line.split("\0")) if "\0" in line else line
    if kind in REMOVING:
        return " → ".join(dict.fromkeys((*_find_texts(given, PATH_KEYS), *_find_places(locations))))
    if kind == "fetch":
        return " ".join(filter(None, map(_find_host, _find_texts(given, URL_KEYS))))
    return ""


def _find_texts(given: Json, keys: tuple[str, ...]) -> Iterator[str]:
    return (given[key] for key in keys if isinstance(given.get(key), str) and given[key])


def _find_places(locations: Any) -> Iterator[str]:
    for one in locations if isinstance(locations, list) else ():
        path = one.get("path") if isinstance(one, dict) else None
        if isinstance(path, str) and path:
            yield path


def _find_host(url: str) -> str:
    """The whole of what is no URL, so that two of them are not taken for one."""
    try:
        return urlsplit(url).netloc or url
    except ValueError:
        return url
