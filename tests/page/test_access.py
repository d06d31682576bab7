"""The page for everybody: by keyboard alone, at 200 % zoom, and still for who wants nothing to move."""

from playwright.sync_api import expect

from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import Tab, Tabs

pytestmark = needs("chromium")
NAME = """() => {
    const found = document.activeElement;
    return (found?.getAttribute('aria-label') || found?.textContent || found?.placeholder || '').trim();
}"""
MOVING = """() => [...document.querySelectorAll('#app *')]
    .map(element => getComputedStyle(element))
    .filter(style => [style.animationDuration, style.transitionDuration]
        .some(all => all.split(',').some(time => parseFloat(time) > 0.01))).length"""


def tab_to(tab: Tab, name: str) -> None:
    """Press Tab until something of that name has the focus."""
    for _ in range(120):
        if tab.page.evaluate(NAME) == name:
            return
        tab.page.keyboard.press("Tab")
    raise AssertionError(f"no key leads to {name!r}")


def test_everything_by_keyboard(tabs: Tabs, app: App) -> None:
    """From the login over a new session, a prompt and a permission to the undo, without a mouse."""
    tab = tabs.tab(None)
    keys = tab.page.keyboard
    expect(tab.page.locator("input[type=password]")).to_be_focused()
    keys.insert_text(app.token)
    keys.press("Enter")
    tab.see("No sessions yet.")
    tab_to(tab, "New session")
    keys.press("Enter")
    expect(tab.page.locator("dialog select").first).to_have_value("claude")
    tab_to(tab, "Start")
    keys.press("Enter")
    expect(tab.page.get_by_label("Prompt", exact=True)).to_be_focused()
    keys.insert_text("ask to jump\necho and so it was")
    keys.press("Enter")
    tab.see(tab.get("button", "Allow once"))
    tab_to(tab, "Allow once")
    keys.press("Enter")
    tab.see(tab.page.locator(".text-entry").get_by_text("and so it was"))
    tab.see(tab.get("button", "Undo", exact=True))
    tab_to(tab, "Undo")
    keys.press("Enter")
    tab.see(tab.get("dialog"))
    tab_to(tab, "Undo")
    keys.press("Enter")
    tab.see("One turn was taken back.")
    tab_to(tab, "Redo")


def test_twice_as_large_everything_can_still_be_reached(tabs: Tabs, app: App) -> None:
    """A window of 1280 by 800 at 200 % has 640 by 400 of the page's own pixels."""
    session_id = app.session(
        title="A session with a name that is longer than a narrow window is wide, by far"
    )
    app.turn(session_id, "tool look\necho " + "word " * 200)
    tab = tabs.tab(app, f"#/s/{session_id}", size=(640, 400), device_scale_factor=2)
    for where in (f"#/s/{session_id}", "#/inbox", "#/search?q=word", "#/sessions", "#/more"):
        tab.go(where).settle()
        assert tab.excess() <= 0, where
    tab.go(f"#/s/{session_id}")
    prompt = tab.page.get_by_label("Prompt", exact=True)
    prompt.fill("echo large")
    tab.get("button", "Send", exact=True).click()
    expect(tab.page.locator(".text-entry").get_by_text("large")).to_be_in_viewport()


def test_nothing_moves_where_nothing_should(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo on\nsleep 60"}).raise_for_status()
    still = tabs.tab(app, f"#/s/{session_id}")
    still.see(still.page.locator(".text-entry").get_by_text("on"))
    assert still.page.evaluate(MOVING) == 0
    moving = tabs.tab(app, f"#/s/{session_id}", reduced_motion="no-preference")
    moving.see(moving.page.locator(".text-entry").get_by_text("on"))
    assert moving.page.evaluate(MOVING) > 0
    app.http.post(f"/sessions/{session_id}/cancel").raise_for_status()
