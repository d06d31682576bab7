"""Usage on the page: bars and numbers by agent or model, the operator's by app, and as a CSV file."""

import csv
import io

from playwright.sync_api import expect

from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import PHONE, Tabs

pytestmark = needs("chromium")


def test_tokens_and_cost_are_shown_by_agent_and_model_and_saved(tabs: Tabs, app: App) -> None:
    session_id = app.session(agent="claude", model="=big")
    app.turn(session_id, "usage 1200 34\ncost 0.08\necho hi")
    app.turn(session_id, "usage 300 6\necho hi")
    tab = tabs.tab(app, "#/usage")
    row = tab.get("row").filter(has_text="claude")
    expect(row.get_by_role("cell")).to_have_text(["2", "1,500", "0", "40", "$0.0800", "0", "0", "\u2013"])
    expect(tab.get("img", "Reported by agents: 1,540")).to_be_visible()
    tab.see("nothing in this time")
    tab.page.get_by_label("Show").select_option("Turns")
    expect(tab.get("img", "Turns: 2")).to_be_visible()
    tab.page.locator(".choice select").nth(1).select_option("Model")
    expect(tab.get("rowheader", "=big")).to_be_visible()
    with tab.page.expect_download() as saved:
        tab.get("button", "CSV").click()
    lines = list(csv.DictReader(io.StringIO(saved.value.path().read_text())))
    assert [(one["agent"], one["model"], one["turns"]) for one in lines] == [("claude", "'=big", "2")]
    assert (lines[0]["reported_input_tokens"], "app" in lines[0]) == ("1500", False)
    limits = tab.get("region", "Table of limits")
    expect(limits.get_by_role("row").filter(has_text="Sessions")).to_contain_text("1 of 500")
    expect(limits.get_by_role("row").filter(has_text="Live agents")).to_contain_text("of any number")
    assert tab.axe() == []


def test_the_operator_sees_all_apps_also_on_a_phone(tabs: Tabs, app: App) -> None:
    app.turn(app.session(), "usage 7 0\necho hi")
    tab = tabs.tab(None, "#/usage", operator=True, size=PHONE)
    expect(tab.get("rowheader", app.name)).to_be_visible()
    tab.page.get_by_label("Period").select_option("A year")
    expect(tab.get("rowheader", app.name)).to_be_visible()
    assert tab.excess() <= 0
    assert tab.axe() == []
