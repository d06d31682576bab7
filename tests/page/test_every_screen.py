"""What holds of every screen: no finding of axe in light and dark, and nothing wider than a phone."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import PHONE, TABLET, Scheme, Tab, Tabs

pytestmark = needs("chromium")
OWN = ["#/", "#/inbox", "#/search?q=echo", "#/more", "#/s/{id}", "#/usage", "#/changes/{id}/1", "#/schedules"]
OPERATOR = ["#/usage"] + [
    f"#/admin/{name}" for name in ("health", "apps", "tokens", "budgets", "agents", "live", "audit")
]


@pytest.fixture
def session_id(app: App) -> str:
    found = app.session(title="A session with a name that is longer than any phone is wide, by far")
    app.turn(found, "think hm\ntool look\nwrite a/long/path/to/a/file.txt words\necho done")
    app.turn(found, "echo " + "x" * 500)
    app.http.post(f"/sessions/{found}/undo", json={})
    daily = {"prompt": "echo " + "x" * 200, "cron": "0 9 * * *", "timezone": "Asia/Tokyo"}
    app.http.post("/schedules", json=daily).raise_for_status()
    return found


def screens(tabs: Tabs, app: App, session_id: str, **how: Any) -> Iterator[tuple[str, Tab]]:
    """Each screen, shown."""
    tab = tabs.tab(app, **how)
    for where in OWN:
        yield where, tab.go(where.format(id=session_id)).settle()
    operator = tabs.tab(None, operator=True, **how)
    for where in OPERATOR:
        yield where, operator.go(where).settle()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(tabs: Tabs, app: App, session_id: str, scheme: Scheme) -> None:
    shown = screens(tabs, app, session_id, scheme=scheme)
    found = [f"{where}: {finding}" for where, tab in shown for finding in tab.axe()]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("size", [PHONE, TABLET], ids=["phone", "tablet"])
def test_nothing_is_wider_than_the_window(
    tabs: Tabs, app: App, session_id: str, size: tuple[int, int]
) -> None:
    shown = screens(tabs, app, session_id, size=size)
    assert {where: tab.excess() for where, tab in shown if tab.excess() > 0} == {}
