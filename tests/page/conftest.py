"""A browser and a server for each module, and tabs that fail a test for what goes wrong in them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.api.harness import App, Server
from tests.page.kit import Tabs, launched


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For a module and no longer: as long as it lives a loop runs in this thread, and others bring theirs."""
    with sync_playwright() as playwright, launched(playwright) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("forge") / "data")
    yield found
    found.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """A server that a test may kill: `start(PERMISSION_TIMEOUT_SECS="5")`."""
    started: list[Server] = []

    def begin(*flags: str, **settings: str) -> Server:
        env = {f"CLAWDFORGE_{name}": value for name, value in settings.items()}
        started.append(Server(tmp_path / f"data{len(started)}", env, *flags))
        return started[-1]

    yield begin
    for server in started:
        server.stop()


@pytest.fixture
def app(server: Server) -> App:
    """An app that nobody else knows."""
    return server.app()


@pytest.fixture
def other(server: Server) -> App:
    return server.app()


@pytest.fixture
def tabs(browser: Browser, server: Server) -> Iterator[Tabs]:
    """`tabs.tab(app, "#/inbox")`. Errors, breaches of the page's policy and requests to others fail."""
    found = Tabs(browser, server)
    yield found
    found.close()
    assert not found.findings(), "\n".join(found.findings())


@pytest.fixture
def tabs_of(browser: Browser) -> Iterator[Callable[[Server], Tabs]]:
    """The same on a server of the test's own."""
    made: list[Tabs] = []

    def make(server: Server) -> Tabs:
        made.append(Tabs(browser, server))
        return made[-1]

    yield make
    findings = [finding for tabs in made for finding in tabs.findings()]
    for tabs in made:
        tabs.close()
    assert not findings, "\n".join(findings)
