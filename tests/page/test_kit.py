"""That the browser of these tests sees what it has to: each kind of trouble is found, and nothing else is."""

import pytest

from tests.needs import needs
from tests.page.kit import Tabs, Watch, wait_until

pytestmark = needs("chromium")


@pytest.fixture
def watched(tabs: Tabs) -> tuple[Tabs, Watch]:
    """Findings that this module makes on purpose are taken away again."""
    tabs.person(None)
    return tabs, tabs.watches[0]


@pytest.mark.parametrize(
    ("script", "finding"),
    [
        ("console.error('so')", "console error: so"),
        ("setTimeout(() => { throw new Error('thrown') })", "page error: thrown"),
        ("fetch('http://example.invalid/').catch(() => 0)", "violates the following Content Security Policy"),
        (
            "setTimeout(() => location.assign('http://example.invalid/'))",
            "request to the outside: http://exa",
        ),
        ("setTimeout(() => alert('hi'))", "dialog: hi"),
        ("Promise.reject(new Error('nobody looked')); 0", "page error: nobody looked"),
    ],
)
def test_trouble_is_found(watched: tuple[Tabs, Watch], script: str, finding: str) -> None:
    tabs, watch = watched
    page = tabs._contexts[0].new_page()
    page.goto(f"{tabs.server.url}/healthz")
    page.evaluate(script)
    wait_until(page, lambda: any(finding in one for one in watch.found), finding)
    watch.found.clear()
