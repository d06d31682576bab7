"""Connections that break, or lead below a path: offline and back, cut at any byte, missing parts."""

from collections.abc import Callable, Iterator
from typing import cast

import pytest
from playwright.sync_api import Browser, expect

from tests.api.harness import App, Server, until
from tests.needs import needs
from tests.page.kit import Tab, Tabs, wait_until
from tests.page.wires import Wire

pytestmark = needs("chromium")
SEED = 20
Wired = Callable[..., tuple[Tabs, Wire]]


@pytest.fixture
def wired(browser: Browser, server: Server) -> Iterator[Wired]:
    """Tabs whose connections go over a wire of the test's own."""
    made: list[tuple[Tabs, Wire]] = []

    def make(below: str = "") -> tuple[Tabs, Wire]:
        wire = Wire(server, SEED, below)
        made.append((Tabs(browser, cast("Server", wire)), wire))
        return made[-1]

    yield make
    for tabs, wire in made:
        tabs.close()
        wire.close()
    findings = [finding for tabs, _ in made for finding in tabs.findings()]
    assert not findings, "\n".join(findings)


def state(tab: Tab) -> str | None:
    return tab.page.locator(".status").get_attribute("data-state")


def test_offline_and_back(tabs: Tabs, app: App) -> None:
    """As the browser says it: the page goes on by itself, also with a screen that it could not load."""
    session_id = app.session(title="Of tides")
    app.turn(session_id, "echo before")
    tab = tabs.tab(app, f"#/s/{session_id}")
    tab.see("before")
    tab.page.get_by_label("Prompt", exact=True).fill("half a thought")
    tab.context.set_offline(True)
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".notice.bad").first).to_contain_text("cannot be reached")
    expect(tab.page.get_by_label("Prompt", exact=True)).to_have_value("half a thought")
    tab.go("#/search?q=before")
    tab.see("cannot be reached")
    tab.context.set_offline(False)
    tab.see(tab.page.locator("main mark").first)
    app.turn(session_id, "echo after")
    tab.go(f"#/s/{session_id}")
    tab.see(tab.page.locator(".text-entry").get_by_text("after"))
    expect(tab.page.get_by_label("Prompt", exact=True)).to_have_value("half a thought")


def test_a_dead_wire_and_back(wired: Wired, app: App) -> None:
    """Nothing reaches the server, streams included: it is said, and everything comes when it is back."""
    tabs, wire = wired()
    session_id = app.session(title="Of wires")
    other = app.session(title="Of others")
    app.turn(other, "echo otherwise")
    tab = tabs.tab(app, f"#/s/{session_id}")
    wait_until(tab.page, lambda: state(tab) == "live", "the stream")
    wire.down()
    wait_until(tab.page, lambda: state(tab) == "waiting", "a word about the lost connection")
    app.turn(session_id, "echo while nobody saw")
    app.session(title="Made meanwhile")
    second = Tab(tab.context, tabs.server)
    tab.go(f"#/s/{other}")
    tab.see("This session cannot be shown")
    wire.up()
    tab.see(tab.page.locator(".text-entry").get_by_text("otherwise"))
    tab.see("Made meanwhile")
    tab.go(f"#/s/{session_id}")
    tab.see("while nobody saw")
    second.page.close()


def test_a_wire_that_is_cut_at_any_byte_loses_nothing_and_sends_nothing_twice(wired: Wired, app: App) -> None:
    tabs, wire = wired()
    session_id = app.session()
    tab = tabs.tab(app, f"#/s/{session_id}")
    wait_until(tab.page, lambda: state(tab) == "live", "the stream")
    wire.cut_after(200, 6000)
    prompt = tab.page.get_by_label("Prompt", exact=True)
    prompt.fill("chunks 300 0 5")

    def is_sent() -> bool:
        """A person presses Enter until the words have gone."""
        if prompt.input_value() and tab.page.locator("button.send:enabled").count():
            prompt.press("Enter")
        return not prompt.input_value()

    wait_until(tab.page, is_sent, "the prompt's arrival")
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["running_turn"] is None, "the turn's end")
    whole = " ".join(str(number) for number in range(1, 301))
    words = "document.querySelector('main .rows')?.textContent.replaceAll(/\\s+/g, ' ') || ''"
    wait_until(tab.page, lambda: whole in tab.page.evaluate(words), "the whole answer")
    assert wire.cuts > 3
    turns = app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
    assert [turn["prompt"] for turn in turns] == ["chunks 300 0 5"]
    wire.cut_after(0, 0)
    wait_until(tab.page, lambda: state(tab) == "live", "the stream again")


def test_the_page_lives_below_a_path(wired: Wired, app: App) -> None:
    """Behind a proxy that serves others beside it; a request that leaves the path fails the test."""
    tabs, _wire = wired("/forge")
    session_id = app.session(title="Of paths")
    tab = tabs.tab(app)
    tab.page.locator("[data-session]").filter(has_text="Of paths").click()
    wait_until(tab.page, lambda: state(tab) == "live", "the stream")
    tab.page.get_by_label("Prompt", exact=True).fill("echo below")
    tab.get("button", "Send", exact=True).click()
    tab.see(tab.page.locator(".text-entry").get_by_text("below"))
    for screen in ("#/inbox", "#/search?q=below", "#/usage", f"#/changes/{session_id}/1"):
        tab.go(screen).settle()
