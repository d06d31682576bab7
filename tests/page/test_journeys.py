"""Journeys that end badly for others: a killed server, a revoked token, hostile words."""

import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.api.harness import App, Server, until
from tests.needs import needs
from tests.page.kit import DESKTOP, PHONE, Tab, Tabs, restart, wait_until

pytestmark = needs("chromium")
WORDS = 400
PAYLOADS = ["<img src=x onerror=window.__fired=1>", "[x](javascript:window.__fired=1)"]


def answer(app: App, session_id: str) -> str:
    """The words of the answer so far, by the log."""
    found, after = "", 0
    while True:
        page = app.http.get(
            f"/sessions/{session_id}/events", params={"after": after, "limit": 1000, "form": "compact"}
        )
        events = page.json()["events"]
        if not events:
            return found
        found += "".join(event["content"] for event in events if event["type"] == "text")
        after = events[-1]["seq"]


def shown(tab: Tab) -> str:
    """The numbers of the answer as the page shows them; the prompt is no part of it."""
    text: str = tab.page.locator("main").inner_text()
    return " ".join(word for word in text.split() if word.isdigit())


def submit(app: App, session_id: str, prompt: str) -> None:
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt}).raise_for_status()


def test_a_server_killed_in_mid_answer_loses_no_letter(
    start: Callable[..., Server], tabs_of: Callable[[Server], Tabs]
) -> None:
    """Two desktop tabs and a phone: each shows what the log has, and that the turn was interrupted."""
    server = start()
    app, tabs = server.app(), tabs_of(server)
    session_id = app.session()
    open_tabs = [tabs.tab(app, f"#/s/{session_id}", size=size) for size in (DESKTOP, DESKTOP, PHONE)]
    submit(app, session_id, f"chunks {WORDS} 0 20")
    for tab in open_tabs:
        tab.see(tab.page.get_by_text("20 21 22").first)
    server.stop(signal.SIGKILL)
    app = restart(server, app)
    log = answer(app, session_id).split()
    assert 20 < len(log) < WORDS
    for tab in open_tabs:
        said = tab.see(tab.page.locator("main").get_by_text("Interrupted:").first).inner_text()
        assert said.count("stopped") == 1
        wait_until(tab.page, lambda: " ".join(log) in shown(tab), "the whole answer")  # noqa: B023


def test_a_revoked_token_leads_to_the_login(tabs: Tabs, app: App, server: Server) -> None:
    session_id = app.session()
    app.turn(session_id, "echo a secret")
    tab = tabs.tab(app, f"#/s/{session_id}")
    tab.see("a secret")
    server.admin().delete(f"/admin/tokens/{app.token_id}").raise_for_status()
    expect(tab.page.locator("input[type=password]")).to_be_visible()
    assert "a secret" not in tab.page.content()


def test_logging_out_everywhere_ends_the_login_of_another_browser(tabs: Tabs, app: App) -> None:
    here, there = tabs.tab(app), tabs.tab(app, size=PHONE)
    here.get("button", "Log out").click()
    here.get("dialog").get_by_role("button", name="Cancel").click()
    here.get("button", "Log out").click()
    here.get("dialog").get_by_role("button", name="Log out everywhere").click()
    for tab in (here, there):
        tab.page.reload()
        expect(tab.page.locator("input[type=password]")).to_be_visible()
    here.page.get_by_label("Token").fill("cf_of_somebody_else")
    here.get("button", "Log in").click()
    here.see("This server does not know that token.")


def test_another_apps_link_is_the_same_as_an_unknown_one(tabs: Tabs, app: App, other: App) -> None:
    session_id = other.session(title="Of somebody else")
    texts = []
    for where in (session_id, "00000000-0000-4000-8000-000000000000"):
        tab = tabs.tab(app, f"#/s/{where}")
        tab.see("This session cannot be shown")
        expect(tab.page.get_by_label("Prompt", exact=True)).to_have_count(0)
        tab.see(tab.page.locator("main").get_by_role("link", name="All sessions"))
        texts.append(tab.page.locator("main").inner_text().replace(where, ""))
    assert texts[0] == texts[1]


def test_killed_while_a_person_was_asked(
    start: Callable[..., Server], tabs_of: Callable[[Server], Tabs]
) -> None:
    """Nobody can decide any more: the question is gone from the inbox, and the turn shows interrupted."""
    server = start()
    app, tabs = server.app(), tabs_of(server)
    session_id = app.session(permission_mode="ask")
    submit(app, session_id, "ask for it")
    inbox = tabs.tab(app, "#/inbox")
    chat = tabs.another(inbox, f"#/s/{session_id}")
    inbox.see(inbox.page.locator(".ask"))
    server.stop(signal.SIGKILL)
    restart(server, app)
    inbox.gone(inbox.page.locator(".ask"))
    chat.see(chat.page.get_by_text("nterrupted").first)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_that_others_wrote_runs(tabs: Tabs, app: App, payload: str) -> None:
    """Through titles, prompts, answers, thoughts, tools, questions, paths and snippets, on every screen."""
    session_id = app.session(title=payload, permission_mode="ask")
    script = (
        f"think {payload}\ntool {payload.replace(' ', '/')}\necho {payload}\nplan {payload}\nnotice {payload}"
    )
    app.turn(session_id, script)
    submit(app, session_id, f"ask {payload}")
    path = f"/sessions/{session_id}/permissions"
    until(lambda: app.http.get(path, params={"state": "pending"}).json()["permissions"], "the question")
    tab = tabs.tab(app, f"#/s/{session_id}")
    for where in (f"#/s/{session_id}", "#/inbox", "#/search?q=fired"):
        tab.go(where)
        tab.see(tab.page.get_by_text("__fired").first)
        tab.check_nothing_fired()
        assert tab.page.locator("a[href^='javascript']").count() == 0
    tab.go(f"#/s/{session_id}")
    for name in ("Tree", "Turn"):
        tab.get("tab", name).click()
        tab.see(tab.get("tabpanel", name))
        tab.check_nothing_fired()
