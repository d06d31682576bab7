"""Search: titles and messages, the found words marked, and a hit that leads to its place."""

import re

from playwright.sync_api import expect

from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import Tabs, wait_until

pytestmark = needs("chromium")


def test_what_is_found_is_marked_and_leads_to_its_session(tabs: Tabs, app: App) -> None:
    session_id = app.session(title="Of pelicans")
    app.turn(session_id, "echo the quick heron")
    app.turn(app.session(), "echo something else")
    tab = tabs.tab(app, "#/search")
    field = tab.get("searchbox", "Search in everything")
    expect(field).to_be_focused()
    field.fill("heron")
    hits = tab.page.get_by_role("region", name="Messages").get_by_role("link")
    expect(hits).to_have_count(2)  # the prompt and the answer
    expect(hits.first.locator("mark")).to_have_text("heron")
    expect(tab.page).to_have_url(re.compile(r"#/search\?q=heron$"))
    hits.first.click()
    expect(tab.page).to_have_url(re.compile(rf"#/s/{session_id}\?at=\d+&words=heron$"))
    tab.page.go_back()
    expect(field).to_have_value("heron")


def test_a_hit_leads_to_the_words_far_down_in_a_long_answer(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    lines = [f"tool look-{number}\necho line {number}  " for number in range(60)]
    lines[50:50] = ["echo " + "many words " * 300 + "and the quick heron "]
    app.turn(session_id, "\n".join(["echo at first", *lines]))
    app.turn(session_id, "echo the end")
    tab = tabs.tab(app, "#/search?q=heron")
    answer = tab.page.get_by_role("region", name="Messages").get_by_role("link").filter(has_text="assistant")
    answer.click()
    marked = """() => [...CSS.highlights?.get('found') ?? []].map(range => {
        const box = range.getBoundingClientRect();
        return [String(range), box.top > 52 && box.bottom < innerHeight] })"""
    wait_until(tab.page, lambda: tab.page.evaluate(marked) == [["heron", True]], "the word in sight, marked")
    tab.go(f"#/s/{session_id}")
    tab.see(tab.page.locator(".text-entry").get_by_text("the end"))
    assert tab.page.evaluate(marked) == []


def test_titles_are_found_and_what_is_not_there_is_said(tabs: Tabs, app: App) -> None:
    app.session(title="Of pelicans")
    tab = tabs.tab(app, "#/search?q=pelicans")
    tab.see(
        tab.page.get_by_role("region", name="Sessions by title").get_by_role(
            "link", name=re.compile("Of pelicans")
        )
    )
    tab.get("searchbox", "Search in everything").fill('"no such* (word')
    tab.see("Nothing found")


def test_a_page_of_hits_is_followed_by_the_next(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    for number in range(20):
        app.turn(session_id, f"echo albatross {number}")
    tab = tabs.tab(app, "#/search?q=albatross")
    hits = tab.page.get_by_role("region", name="Messages").get_by_role("link")
    expect(hits).to_have_count(30)
    tab.get("button", "Show more").click()
    expect(hits).to_have_count(40)
