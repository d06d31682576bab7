"""The table of the dialects' routes is the route table."""

import os

from clawdforge.http.dialects.acp import routers as acp
from clawdforge.http.dialects.deepagent import routers as deepagent
from clawdforge.http.dialects.hermes import quiet, unserved
from clawdforge.http.dialects.hermes import routers as hermes
from clawdforge.http.dialects.mcp import routers as mcp
from clawdforge.http.dialects.openai import routers as openai
from clawdforge.http.dialects.ui import routers as ui
from clawdforge.http.routing import OpenRoute
from tests.api.hermes_routes import ROUTES
from tests.docs.render import REFERENCE, between_marks, first_words, replaced, routes

PAGE = REFERENCE / "dialects.md"
UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"
NEEDED = (
    *("GET /health", "POST /api/session/new", "POST /api/session/import", "GET /api/session"),
    *(f"GET /api/session/{word}" for word in ("status", "usage", "export")),
    *(
        f"POST /api/session/{word}"
        for word in ("rename", "delete", "clear", "retry", "undo", "branch", "pin", "archive")
    ),
    *("GET /api/sessions/search", "POST /api/chat/start", "GET /api/chat/stream", "GET /api/chat/cancel"),
    *("GET /api/chat/stream/status", "POST /api/approval/respond", "GET /api/approval/pending"),
)


DIALECTS = (
    ("acp", acp.routers()),
    ("deepagent", deepagent.routers()),
    ("hermes", hermes.routers()),
    ("mcp", mcp.routers()),
    ("openai", openai.routers()),
    ("AG-UI and Vercel", [*ui.agui_routers(), *ui.vercel_routers()]),
)


def name(route: OpenRoute) -> str:
    return f"{next(iter(route.methods or ()))} {route.path_format}"


def served() -> dict[str, dict[str, str]]:
    """Dialect → route → what it does, or why it does not."""
    found: dict[str, dict[str, str]] = {}
    for title, routers in DIALECTS:
        rows = [route for router in routers for route in router.routes]
        found[title] = {name(route): first_words(route) for route in rows}
    found["hermes"]["GET /api/sessions"] = "The list, under `CLAWDFORGE_HERMES_PREFIX` only."
    return found


def table() -> str:
    parts = []
    for title, rows in served().items():
        lines = [f"### {title}\n", "| route | | |", "|---|---|---|"]
        for route, words in sorted(rows.items(), key=lambda row: row[0].split(" ")[::-1]):
            refused = title == "hermes" and route in unserved.UNSERVED
            empty = title == "hermes" and route in quiet.QUIET
            how = "501" if refused else "quiet" if empty else "served"
            lines.append(f"| `{route}` | {how} | {words} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def test_the_table_is_the_route_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if UPDATE:
        PAGE.write_text(replaced(text, table()), encoding="utf-8")
    assert between_marks(PAGE.read_text(encoding="utf-8")) == table(), "run scripts/golden"


def test_every_route_of_the_dialects_is_in_the_server() -> None:
    built = {name(route) for route in routes()}
    for rows in served().values():
        assert set(rows) <= built


def test_what_existing_callers_need_is_served() -> None:
    rows = served()["hermes"]
    assert set(NEEDED) <= set(rows)
    assert set(NEEDED).isdisjoint(unserved.UNSERVED)


def answers(table: list[OpenRoute], method: str, path: str) -> bool:
    """Whether a route takes this, as the server looks it up: a path that is spelled out is no parameter."""
    mine = [route for route in table if route.path_regex.match(path)]
    literal = [route for route in mine if not route.has_parameters]
    return any(method in (route.methods or ()) for route in literal or mine)


def test_no_route_that_the_page_calls_is_unknown() -> None:
    """Served, quietly answered or refused with 501; never 404 or 405. The list is under a prefix only."""
    found = [route for router in hermes.routers("/page") for route in router.routes]
    table = found
    asked = [route.partition(" ") for route in ROUTES]
    assert [(method, path) for method, _, path in asked if not answers(table, method, f"/page{path}")] == []
    assert len(ROUTES) > 200
