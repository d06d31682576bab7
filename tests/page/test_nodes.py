"""The operator's list of servers that share a database, and the button that drains one."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.api.harness import Server, until
from tests.cluster.kit import Cluster
from tests.needs import needs
from tests.page.kit import Tabs, launched
from tests.postgres import run_postgres

pytestmark = [needs("chromium"), needs("postgres")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The one that is asked, of two. They are there before the browser, whose loop runs in this thread."""
    with run_postgres() as postgres:
        cluster = Cluster(postgres.make_database(), tmp_path_factory.mktemp("nodes"))
        cluster.start("a", "b")
        yield cluster.nodes["a"]
        cluster.close()


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    assert server.url
    with sync_playwright() as playwright, launched(playwright) as found:
        yield found


def test_a_server_is_drained_and_that_is_undone(tabs: Tabs, server: Server) -> None:
    admin = tabs.tab(None, "#/admin/health", operator=True)
    known = server.admin().get("/admin/nodes").json()["nodes"]
    other = next(node for node in known if not node["is_this"])

    def state() -> str:
        nodes = server.admin().get("/admin/nodes").json()["nodes"]
        return str(next(node["state"] for node in nodes if node["node"] == other["node"]))

    row = admin.page.get_by_role("listitem").filter(has_text=other["name"])
    row.get_by_role("button", name="Drain").click()
    expect(row.get_by_role("button", name="Undo the drain")).to_be_visible()
    until(lambda: state() == "draining", "the server was told")
    row.get_by_role("button", name="Undo the drain").click()
    expect(row.locator(".chip.good")).to_have_text("up")
    until(lambda: state() == "up", "the server was told of that too")
