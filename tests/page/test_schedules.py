"""Schedules on the page: made, changed, run, paused and removed; their times, and what became of them."""

import re
from typing import Any

from playwright.sync_api import Locator, expect

from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import PHONE, Tab, Tabs
from tests.page.test_access import tab_to

pytestmark = needs("chromium")
YEARLY = {"prompt": "echo the time has come", "cron": "0 0 1 1 *", "title": "Each new year"}


def add(app: App, **body: Any) -> str:
    reply = app.http.post("/schedules", json={**YEARLY, **body})
    reply.raise_for_status()
    return str(reply.json()["schedule"]["schedule_id"])


def found(app: App) -> list[dict[str, Any]]:
    return list(app.http.get("/schedules").raise_for_status().json()["schedules"])


def card(tab: Tab, title: str) -> Locator:
    return tab.page.locator("[data-schedule]").filter(has_text=title)


def test_one_is_made_changed_and_removed(tabs: Tabs, app: App) -> None:
    tab = tabs.tab(app, "#/schedules", timezone_id="Europe/Berlin", locale="en-GB")
    tab.see("Nothing is scheduled")
    tab.get("button", "New schedule").click()
    dialog = tab.get("dialog")
    dialog.get_by_label("Prompt", exact=True).fill("echo good morning")
    dialog.get_by_label("How often").select_option("Every working day")
    dialog.get_by_label("Time", exact=True).fill("08:30")
    expect(dialog.get_by_label("Time zone")).to_have_value("Europe/Berlin")
    coming = dialog.locator(".coming")
    expect(coming).to_contain_text("At 08:30 on Monday through Friday")
    expect(coming.get_by_role("listitem")).to_have_count(3)
    expect(coming).not_to_contain_text("for you")
    dialog.get_by_label("Time zone").fill("Asia/Tokyo")
    expect(coming.get_by_role("listitem").first).to_contain_text("08:30 Asia/Tokyo, ")
    expect(coming.get_by_role("listitem").first).to_contain_text("for you")
    assert tab.axe() == []
    dialog.get_by_role("button", name="Make it").click()
    line = card(tab, "echo good morning")
    expect(line).to_contain_text("At 08:30 on Monday through Friday, Asia/Tokyo")
    (made,) = found(app)
    assert (made["cron"], made["timezone"]) == ("30 8 * * MON-FRI", "Asia/Tokyo")
    assert made["session"] == {"agent": "claude", "permission_mode": "ask", "retention": "ttl"}

    line.get_by_role("button", name="Change").click()
    expect(dialog.get_by_label("Time", exact=True)).to_have_value("08:30")
    dialog.get_by_label("Title").fill("Mornings")
    dialog.get_by_role("button", name="Save").click()
    expect(card(tab, "Mornings")).to_be_visible()
    (changed,) = found(app)
    assert {**changed, "title": ""} == made, "what was not touched stays, its next time too"
    card(tab, "Mornings").get_by_role("button", name="Remove").click()
    dialog.get_by_role("button", name="Remove").click()
    tab.see("Nothing is scheduled")
    assert found(app) == []


def test_it_runs_pauses_and_its_history_leads_to_the_turn(tabs: Tabs, app: App) -> None:
    schedule_id = add(app)
    tab = tabs.tab(app, "#/schedules")
    line = card(tab, "Each new year")
    expect(line).to_contain_text("nothing yet")
    line.get_by_role("button", name="Run now").click()
    expect(line.locator(".chip.good")).to_have_text("done")
    line.get_by_role("button", name="Pause").click()
    expect(line).to_contain_text("not until it is resumed")
    assert found(app)[0]["state"] == "paused"
    line.get_by_role("link", name="Each new year").click()
    expect(tab.get("heading", "Each new year")).to_be_visible()
    tab.get("button", "Resume").click()
    expect(tab.page.locator(".schedule-facts ol li")).to_have_count(3)
    row = tab.get("row").filter(has_text="by hand")
    expect(row).to_contain_text("done")
    row.get_by_role("link", name="Turn 1").click()
    tab.see(tab.page.locator(".text-entry").get_by_text("the time has come"))
    tab.go(f"#/schedules/{schedule_id}")
    tab.get("button", "Remove").click()
    tab.get("dialog").get_by_role("button", name="Remove").click()
    tab.see("Nothing is scheduled")


def test_what_others_do_is_seen_without_a_reload(tabs: Tabs, app: App) -> None:
    """Every change of a session is a reason to look: what a schedule has done is one."""
    tab = tabs.tab(app, "#/schedules")
    tab.see("Nothing is scheduled")
    schedule_id = add(app)
    app.http.post(f"/schedules/{schedule_id}/run").raise_for_status()
    expect(card(tab, "Each new year").get_by_role("link", name="Turn 1")).to_be_visible()
    expect(card(tab, "Each new year").locator(".chip.good")).to_have_text("done")


def test_a_refusal_is_said_in_the_servers_words_and_nothing_typed_is_lost(tabs: Tabs, app: App) -> None:
    tab = tabs.tab(app, "#/schedules")
    tab.get("button", "New schedule").click()
    dialog = tab.get("dialog")
    dialog.get_by_label("Prompt", exact=True).fill("echo hi")
    dialog.get_by_label("How often").select_option("By a cron expression")
    dialog.locator("input[name=cron]").fill("61 9 * * *")
    expect(dialog.locator(".coming")).to_contain_text("Cron is not valid: bad minute")
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Cron is not valid: bad minute")
    dialog.locator("input[name=cron]").fill("*/10 * * * *")
    expect(dialog.locator(".coming")).to_contain_text("Every 10th minute")
    dialog.get_by_role("button", name="Make it").click()
    expect(card(tab, "echo hi")).to_be_visible()


def test_by_keyboard_on_a_phone(tabs: Tabs, app: App) -> None:
    """Once, into a session that would expire and is kept then; nothing is wider than the window."""
    session_id = app.session(title="A talk")
    tab = tabs.tab(app, "#/schedules", size=PHONE)
    tab.see("Nothing is scheduled")
    keys = tab.page.keyboard
    tab_to(tab, "New schedule")
    keys.press("Enter")
    dialog = tab.get("dialog")
    expect(dialog.get_by_label("Prompt", exact=True)).to_be_focused()
    keys.insert_text("echo " + "long" * 60)
    dialog.get_by_label("How often").select_option("Once")
    dialog.locator("select[name=session]").select_option("A talk")
    tab.see("From now on it is kept")
    tab.settle()
    assert tab.excess() <= 0
    tab_to(tab, "Make it")
    keys.press("Enter")
    expect(card(tab, "longlong")).to_be_visible()
    assert (found(app)[0]["session_id"], found(app)[0]["cron"]) == (session_id, None)
    assert app.http.get(f"/sessions/{session_id}").json()["retention"] == "keep"
    assert tab.excess() <= 0
    tab.go(f"#/schedules/{found(app)[0]['schedule_id']}").settle()
    assert tab.excess() <= 0
    assert tab.axe() == []


def test_the_menu_of_a_session_leads_to_a_schedule_of_its_own(tabs: Tabs, app: App) -> None:
    session_id = app.session(title="A talk", retention="keep")
    tab = tabs.tab(app, f"#/s/{session_id}")
    tab.get("main").get_by_role("button", name="More about").click()
    tab.get("menuitem", "Schedule").click()
    chosen = tab.page.locator("select[name=session]")
    expect(chosen).to_have_value(session_id)
    expect(chosen.locator("option:checked")).to_have_text("A talk")
    tab.page.keyboard.press("Escape")
    tab.see("Nothing is scheduled")
    expect(tab.page).not_to_have_url(re.compile("session="))
