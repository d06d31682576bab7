"""The reference is whole: every event, error, route, setting and body is documented, and nothing else is."""

import os
import re
from pathlib import Path

import pytest

from clawdforge.drivers.acp.updates import UPDATE_TYPES
from clawdforge.http.routing import OpenRoute
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.errors import BY_CODE
from clawdforge.wire.event import AGENT_TYPES, EventType
from tests.docs.render import (
    REFERENCE,
    between_marks,
    first_words,
    keys_table,
    models_reference,
    replaced,
    routes,
    routes_reference,
    settings_table,
)
from tests.wire_samples import OWN

UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"
GENERATED = {
    "agents.md": keys_table(),
    "routes.md": routes_reference(),
    "settings.md": settings_table(),
    "wire.md": models_reference(),
}
ROW = re.compile(r"^\| `([^`]+)` \| (.*) \|$", re.MULTILINE)


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def rows(name: str) -> dict[str, list[str]]:
    """First cell → the other cells, of every table row that starts with code."""
    return {found[1]: found[2].split(" | ") for found in ROW.finditer(page(name))}


@pytest.mark.parametrize("name", GENERATED)
def test_generated_part_is_fresh(name: str) -> None:
    if UPDATE:
        (REFERENCE / name).write_text(replaced(page(name), GENERATED[name]), encoding="utf-8")
    assert between_marks(page(name)) == GENERATED[name], "run scripts/golden"


def test_every_event_type_is_documented() -> None:
    documented = rows("events.md")
    assert set(documented) >= {kind.value for kind in EventType}
    for word, kind in UPDATE_TYPES.items():
        assert f"`{word}`" in documented[kind.value][0], word


@pytest.mark.parametrize("kind", sorted(set(EventType) - AGENT_TYPES))
def test_the_fields_of_our_own_events_are_documented(kind: EventType) -> None:
    cells = " ".join(rows("events.md")[kind.value])
    for field in OWN[kind][1]:
        assert f"`{field}`" in cells, field


def test_every_error_is_documented_with_its_status() -> None:
    documented = {code: cells[0] for code, cells in rows("errors.md").items()}
    assert documented == {code.value: str(BY_CODE[code].status) for code in ErrorCode}


@pytest.mark.parametrize("route", routes(), ids=lambda route: f"{route.methods} {route.path}")
def test_every_route_says_what_it_does(route: OpenRoute) -> None:
    assert first_words(route), "its handler needs a docstring: it is the route's line in the reference"


def test_every_setting_is_documented_once() -> None:
    assert page("settings.md").count("| `CLAWDFORGE_PORT` |") == 1


def test_links_between_pages_lead_somewhere() -> None:
    top = REFERENCE.parent.parent
    for path in [top / "README.md", *sorted((top / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.relative_to(top)} links to {target}"


def test_the_words_of_the_table_are_unique() -> None:
    names = [found[1] for found in ROW.finditer(page("errors.md"))]
    assert len(names) == len(set(names))


def test_pages_are_not_empty() -> None:
    for path in sorted(Path(REFERENCE.parent).rglob("*.md")):
        assert path.read_text(encoding="utf-8").startswith("# "), path
