"""Every route has its place in the page, or the table says why it has none."""

import json
import re
from pathlib import Path
from typing import Final

REPO: Final = Path(__file__).parents[2]
APP: Final = REPO / "src" / "clawdforge" / "page" / "app"
METHODS: Final = {"get", "post", "put", "patch", "delete"}
ROW: Final = re.compile(r"^\| (`[A-Z]+ /[^|]+) \| (.+) \|$", re.MULTILINE)


def rows() -> dict[str, str]:
    text = (REPO / "docs" / "explain" / "page.md").read_text()
    return {route: where for routes, where in ROW.findall(text) for route in re.findall(r"`([^`]+)`", routes)}


def test_every_route_is_in_the_table() -> None:
    paths = json.loads((REPO / "docs" / "reference" / "openapi.json").read_text())["paths"]
    routes = {
        f"{method.upper()} {path}"
        for path, found in paths.items()
        for method in found
        if method in METHODS and not path.startswith(("/api/", "/v1/"))
    }
    assert routes == set(rows())


def test_the_module_that_the_table_names_asks_for_the_route() -> None:
    """By the last word of its path that is no name of something."""
    for route, where in rows().items():
        if where.startswith("no place: "):
            continue
        text = (APP / where.strip("`")).read_text()
        words = [part for part in route.split("/")[1:] if not part.startswith("{")]
        assert re.search(rf"\b{re.escape(words[-1])}\b", text), f"{where} does not ask for {route}"
