"""Which session is meant: a whole id, a prefix of six or more characters, or a title."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from clawdforge.cli.failures import Exit, Failure
from clawdforge.cli.tables import session_lines
from clawdforge.cli.target.completing import complete_id
from clawdforge.cli.target.options import Endpoint
from clawdforge.cli.target.project import key_of, project_folder
from clawdforge.cli.target.quick_get import get

Row: TypeAlias = Mapping[str, Any]
"""A session: the answer to a quick GET, or what the SDK made of one."""

SHORTEST: Final = 6
WHOLE: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MOST: Final = 10


def find(endpoint: Endpoint, given: str) -> Row:
    """The one session that is meant. An id wins over a title; none or several are refused."""
    if WHOLE.fullmatch(given):
        return get(endpoint.url, endpoint.token, f"/sessions/{given}")
    found = _list_matches(endpoint, prefix=given.lower()) if len(given) >= SHORTEST else []
    found = found or [
        row for row in _list_matches(endpoint, q=given) if row["title"].lower() == given.lower()
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise describe_ambiguity(given, found)
    if len(given) < SHORTEST:
        raise Failure(
            f"{given!r} is not the title of a session, and an id needs {SHORTEST} characters or more; "
            "list yours with `clawdforge sessions list --all`",
            Exit.NOT_FOUND,
        )
    raise Failure(
        f"there is no session {given!r}; list yours with `clawdforge sessions list --all`", Exit.NOT_FOUND
    )


def describe_ambiguity(given: str, found: Iterable[Row]) -> Failure:
    rows = list(found)
    lines = session_lines(rows[:MOST], colour=False, short=False)
    more = ["  …"] if len(rows) > MOST else []
    listed = "\n".join([f"  {line}" for line in lines] + more)
    return Failure(f"{given!r} matches several sessions; give more of the id:\n{listed}", Exit.NOT_FOUND)


def find_open(endpoint: Endpoint, given: str) -> Row:
    """The same for a session that is to be talked to: one that has ended is refused."""
    row = find(endpoint, given)
    if row["state"] == "ended":
        raise Failure(
            f"session {row['session_id']} has ended; read it with `clawdforge sessions show "
            f"{row['session_id'][:8]}`, or open it again with `clawdforge sessions resume --reopen "
            f"{row['session_id'][:8]}`"
        )
    return row


def list_recent(
    endpoint: Endpoint, folder: Path | None = None, *, limit: int = 20, **wanted: Any
) -> list[Row]:
    """Sessions of this project on this machine, or of everywhere on another; last activity first."""
    if endpoint.is_local:
        wanted["project"] = key_of(folder or project_folder())
    return list_newest(endpoint, limit=limit, **wanted)


def list_newest(endpoint: Endpoint, *, limit: int, **wanted: Any) -> list[Row]:
    """The newest `limit` sessions that fit."""
    rows: list[Row] = []
    cursor = None
    while len(rows) < limit:
        size = min(limit - len(rows), 500)
        found = get(endpoint.url, endpoint.token, "/sessions", limit=size, cursor=cursor, **wanted)
        rows += found["sessions"]
        cursor = found.get("next")
        if not cursor:
            break
    return rows


def find_last(endpoint: Endpoint, folder: Path | None = None) -> Row:
    """The open session of this project that was active last."""
    rows = list_recent(endpoint, folder, limit=1, state="active")
    if not rows:
        raise Failure(
            "there is no open session in this project to continue; start one with `clawdforge`",
            Exit.NOT_FOUND,
        )
    return rows[0]


def _list_matches(endpoint: Endpoint, **wanted: Any) -> list[Row]:
    return list_newest(endpoint, limit=200, **wanted)


def id_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument ID: whole, its beginning, or the session's title."""
    return click.argument("session", metavar="ID", shell_complete=complete_id)(command)
