"""The panel beside a session: a turn in numbers and bars, its files, the tree as time travel."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import Tab, Tabs

pytestmark = needs("chromium")


@pytest.fixture
def session_id(app: App) -> str:
    """Three turns; the second was cut, and the files of the third differ from those of the first."""
    found = app.session(title="Of files")
    app.turn(found, "write notes.txt one\necho first\nusage 1200 34\nusage-update 61 100\ncost 0.08")
    app.turn(found, "write notes.txt two\necho second")
    app.http.post(f"/sessions/{found}/undo", json={"files": True}).raise_for_status()
    app.turn(found, "think hm\ntool look 50\nwrite notes.txt three\necho third")
    return found


def panel(tabs: Tabs, app: App, session_id: str, name: str) -> tuple[Tab, Locator]:
    tab = tabs.tab(app, f"#/s/{session_id}")
    tab.get("tab", name).click()
    return tab, tab.get("tabpanel", name)


def test_a_turn_is_told_in_numbers_and_bars(tabs: Tabs, app: App, session_id: str) -> None:
    tab, shown = panel(tabs, app, session_id, "Turn")
    expect(shown).to_contain_text("Turn 3 of 3")
    expect(shown).to_contain_text("done")
    bars = shown.locator(".bar-row")
    expect(bars.filter(has_text="Thinking")).to_have_count(1)
    expect(bars.filter(has_text="look")).to_have_count(1)
    for _ in range(2):
        tab.get("button", "The turn before").click()
    expect(shown).to_contain_text("1,200 in, 34 out")
    expect(shown).to_contain_text("$0.08")
    expect(shown).to_contain_text("61 % of 100")


def test_a_long_name_of_a_tool_pushes_nothing_out_of_sight(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    app.turn(session_id, f"tool {'look/' * 80}\nusage 1200 34\necho done")
    _, shown = panel(tabs, app, session_id, "Turn")
    expect(shown.locator(".bar-row").filter(has_text="look/")).to_be_visible()
    excess = "panel => panel.scrollWidth - panel.clientWidth"
    assert shown.evaluate(excess) <= 0
    assert shown.locator(".bar-name > .cut").filter(has_text="look/").evaluate(excess) > 0  # cut, with dots


def test_a_running_turn_is_shown_as_it_goes(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "tool slow\nhang"}).raise_for_status()
    _, shown = panel(tabs, app, session_id, "Turn")
    expect(shown.locator(".chip").filter(has_text="running")).to_be_visible()
    app.http.post(f"/sessions/{session_id}/cancel", json={}).raise_for_status()
    expect(shown.locator(".chip").filter(has_text="stopped")).to_be_visible()


def rows(shown: Locator) -> Locator:
    return shown.locator(".tree-row")


def test_the_tree_shows_what_was_cut_and_leads_back_to_a_turn(tabs: Tabs, app: App, session_id: str) -> None:
    tab, shown = panel(tabs, app, session_id, "Tree")
    expect(rows(shown)).to_have_count(3)
    expect(rows(shown).first).to_contain_text("here")
    expect(rows(shown).nth(1)).to_contain_text("cut")
    expect(shown.locator("circle.hollow")).to_have_count(1)
    rows(shown).nth(2).click()
    shown.get_by_role("button", name="View").click()
    expect(tab.page).to_have_url(re.compile(r"at=1$"))


def test_a_fork_goes_on_from_a_turn_of_the_past(tabs: Tabs, app: App, session_id: str) -> None:
    tab, shown = panel(tabs, app, session_id, "Tree")
    rows(shown).nth(2).click()
    shown.get_by_role("button", name="Fork from here").click()
    tab.page.wait_for_url(lambda url: session_id not in url)
    made = tab.page.url.split("#/s/")[1]
    assert [
        turn["prompt"].split("\n")[0] for turn in app.http.get(f"/sessions/{made}/turns").json()["turns"]
    ] == ["write notes.txt one"]


def content(app: App, session_id: str) -> str:
    reply = app.turn(session_id, "read notes.txt")
    return "".join(event.get("content") or "" for event in reply.json()["events"] if event["type"] == "text")


@pytest.mark.parametrize(("files", "after"), [(True, "one"), (False, "three")])
def test_undo_to_a_turn_takes_files_along_if_wanted(
    tabs: Tabs, app: App, session_id: str, files: bool, after: str
) -> None:
    tab, shown = panel(tabs, app, session_id, "Tree")
    rows(shown).nth(2).click()
    shown.get_by_label("Files too").set_checked(files)
    shown.get_by_role("button", name="Undo to here").click()
    tab.get("dialog").get_by_role("button", name="Undo").click()
    expect(rows(shown).nth(2)).to_contain_text("here")
    expect(shown.locator("circle.hollow")).to_have_count(2)
    assert content(app, session_id) == after


def test_redo_brings_back_what_undo_took(tabs: Tabs, app: App, session_id: str) -> None:
    tab, shown = panel(tabs, app, session_id, "Tree")
    rows(shown).nth(2).click()
    shown.get_by_role("button", name="Undo to here").click()
    tab.get("dialog").get_by_role("button", name="Undo").click()
    expect(rows(shown).nth(2)).to_contain_text("here")
    shown.get_by_role("button", name="Redo the last undo").click()
    expect(rows(shown).first).to_contain_text("here")
    assert content(app, session_id) == "three"


def test_an_undo_of_what_has_moved_on_is_refused_in_words(tabs: Tabs, app: App, session_id: str) -> None:
    """The page acts on what it has seen: where that is no longer the end, nothing is taken back."""
    tab, shown = panel(tabs, app, session_id, "Tree")
    rows(shown).nth(2).click()
    with tab.deaf():
        app.turn(session_id, "echo meanwhile")
        head = app.http.get(f"/sessions/{session_id}").json()["head"]
        shown.get_by_role("button", name="Undo to here").click()
        tab.get("dialog").get_by_role("button", name="Undo").click()
        expect(tab.page.locator(".notice.bad").first).to_contain_text(re.compile(r"head|moved"))
    assert app.http.get(f"/sessions/{session_id}").json()["head"] == head
    expect(rows(shown).first).to_contain_text("meanwhile")


def test_the_files_of_a_turn_are_listed_and_open_as_diffs(tabs: Tabs, app: App, session_id: str) -> None:
    tab, shown = panel(tabs, app, session_id, "Files")
    file = shown.get_by_role("button", name="notes.txt")
    expect(file).to_contain_text("+1\u22121")
    file.click()
    diff = shown.get_by_role("region", name="Changes of notes.txt")
    expect(diff.locator("tr.del .line")).to_have_text("one")
    expect(diff.locator("tr.add .line")).to_have_text("three")
    shown.get_by_role("button", name="All so far").click()
    expect(diff.locator("tr.add .line")).to_have_text("three")
    expect(diff.locator("tr.del")).to_have_count(0)
    assert tab.axe() == []
    app.turn(session_id, "write other.txt x")
    expect(shown.get_by_role("button", name="other.txt")).to_be_visible()
    shown.get_by_role("link", name="Open wide").click()
    expect(tab.page).to_have_url(re.compile(rf"#/changes/{session_id}/4$"))
    tab.get("button", "The turn before").click()
    expect(tab.get("region", "Changes").get_by_role("button", name="notes.txt")).to_contain_text("+1\u22121")


def test_a_file_whose_name_is_hostile_is_one_name_and_its_content_only_text(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    folder = Path(app.http.get(f"/sessions/{session_id}").json()["cwd"])
    app.turn(session_id, "write a.txt one")
    app.http.get(f"/sessions/{session_id}/turns/1/changes").raise_for_status()  # its files are recorded now
    odd = os.fsdecode(b"<img src=x onerror=window.__fired=1>\n\xff")
    (folder / odd).write_text("<script>window.__fired=1</script>\n")
    app.turn(session_id, "echo it is there")
    tab, shown = panel(tabs, app, session_id, "Files")
    file = shown.locator(".file-row")
    expect(file).to_have_count(1)
    expect(file).to_contain_text("onerror")
    file.click()
    expect(shown.locator("tr.add .line")).to_have_text("<script>window.__fired=1</script>")
    tab.check_nothing_fired()


def test_a_turn_of_which_no_files_are_known_says_why(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "hang"}).raise_for_status()
    _, shown = panel(tabs, app, session_id, "Files")
    expect(shown).to_contain_text("The turn has not ended yet.")
    app.http.post(f"/sessions/{session_id}/cancel", json={}).raise_for_status()
    expect(shown).to_contain_text("No file was changed.")
