"""What a share link shows: the transcript, to anybody who has the link, to read and no more."""

import re

import pytest
from playwright.sync_api import expect

from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import PHONE, Scheme, Tabs

pytestmark = needs("chromium")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_link_made_on_the_page_shows_the_session_to_a_stranger(
    tabs: Tabs, app: App, scheme: Scheme
) -> None:
    session_id = app.session(title="Of herons")
    for number in range(12):
        app.turn(session_id, f"echo long ago {number}")
    app.turn(session_id, "think hm\ntool look\necho **bold** <img src=x onerror=alert(1)>")
    app.turn(session_id, "echo kept to ourselves")
    owner = tabs.tab(app, f"#/s/{session_id}")
    owner.get("button", "More about Of herons").first.click()
    owner.get("menuitem", "Share …").click()
    owner.page.get_by_label("How long").select_option("For a day")
    owner.page.get_by_label("Up to").select_option("13")  # the last but one
    owner.get("button", "Make a link").click()
    link = owner.page.get_by_label("Link", exact=True).input_value()
    owner.get("button", "Done").click()
    app.turn(session_id, "echo later words")

    stranger = tabs.tab(None, link.partition("/ui/")[2], scheme=scheme, size=PHONE)
    stranger.see(stranger.get("heading", "Of herons"))
    expect(stranger.page.locator(".md strong")).to_have_text("bold")
    stranger.see(stranger.page.get_by_text("<img src=x onerror=alert(1)>").last)
    for words in ("kept to ourselves", "later words"):
        expect(stranger.page.get_by_text(words)).to_have_count(0)
    (made,) = app.http.get(f"/sessions/{session_id}/shares").json()["shares"]
    assert (made["up_to_turn"], made["expires_at"] - made["created_at"]) == (13, 86_400)
    expect(stranger.page.get_by_role("textbox")).to_have_count(0)
    assert not stranger.settle().axe()
    assert stranger.excess() <= 0
    last = stranger.page.locator(".md strong")
    expect(last).not_to_be_in_viewport()
    stranger.page.mouse.move(100, 300)
    stranger.page.mouse.wheel(0, 100_000)
    expect(last).to_be_in_viewport()

    owner.get("button", "More about Of herons").first.click()
    owner.get("menuitem", "Share …").click()
    expect(owner.page.locator(".shares li")).to_have_count(1)
    assert not owner.axe()
    owner.get("button", re.compile("Revoke the link")).click()
    expect(owner.page.locator(".shares li")).to_have_count(0)
    owner.get("button", "Done").click()
    stranger.page.reload()
    stranger.see("There is nothing behind this link")
    expect(stranger.page.get_by_text("bold")).to_have_count(0)
