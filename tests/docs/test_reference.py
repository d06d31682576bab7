"""The reference is whole: every event, error, route, setting and body is documented, and nothing else is."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import FastAPI

from clawdforge.core.services import Services
from clawdforge.http.app import build_asgi
from clawdforge.http.errors import STATUS
from clawdforge.http.settings import HttpSettings
from clawdforge.wire.error import ErrorCode
from clawdforge.wire.event import AGENT_TYPES, UPDATE_TYPES, EventType
from tests.docs.render import REFERENCE, between_marks, models_reference, replaced, settings_table
from tests.wire_samples import OWN

UPDATE = os.environ.get("CLAWDFORGE_TEST_UPDATE_GOLDEN") == "1"
GENERATED = {"settings.md": settings_table(), "wire.md": models_reference()}
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
    assert documented == {code.value: str(STATUS[code]) for code in ErrorCode}


def routes() -> set[str]:
    asgi: Any = build_asgi(cast(Services, None), HttpSettings(stopping=asyncio.Event()))
    while not isinstance(asgi, FastAPI):
        asgi = asgi._asgi
    return {f"{method} {route.path}" for route in asgi.state.table for method in route.methods or ()}


def test_every_route_is_documented_and_every_documented_route_exists() -> None:
    documented = {name for name in rows("routes.md") if name.split(" ")[0].isupper() and "/" in name}
    assert documented == routes()


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
