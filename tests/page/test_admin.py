"""The operator's screens: apps, tokens that are shown once, limits, budgets, audit, health, measures."""

import re

import pytest
from playwright.sync_api import expect

from tests.api.harness import App, Server
from tests.needs import needs
from tests.page.kit import Tab, Tabs

pytestmark = needs("chromium")


@pytest.fixture
def admin(tabs: Tabs) -> Tab:
    return tabs.tab(None, "#/admin/health", operator=True)


def test_a_token_is_shown_once_and_works_and_is_revoked(admin: Tab, server: Server) -> None:
    page = admin.go("#/admin/tokens").page
    admin.get("button", "New token").click()
    dialog = admin.get("dialog")
    dialog.get_by_role("textbox", name="App").fill("shown-once")
    dialog.get_by_label("Note").fill("of the test")
    dialog.get_by_label("manage the app").uncheck()
    dialog.get_by_role("button", name="Create").click()
    secret = page.locator("[data-secret]")
    admin.see(secret)
    token = secret.inner_text()
    client = server.client(token)
    assert client.get("/sessions").status_code == 200
    assert client.get("/tokens").status_code == 403, "the box that was not ticked"

    admin.get("button", "I have kept it").click()
    admin.gone(secret)
    page.reload()
    row = page.get_by_role("row").filter(has_text="of the test")
    admin.see(row)
    assert token not in page.content()
    row.get_by_role("button", name="Revoke").click()
    admin.get("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    assert server.client(token).get("/sessions").status_code == 401


def test_limits_are_set_and_emptied_again(admin: Tab, server: Server, app: App) -> None:
    page = admin.go("#/admin/apps").page
    row = page.get_by_role("row").filter(has_text=app.name)
    for given, wanted in (("3", 3), ("", None)):
        row.get_by_role("button", name="Limits").click()
        expect(admin.get("dialog")).to_contain_text("0 of 2,000, by the server\u2019s setting")
        admin.get("dialog").get_by_label("Sessions").fill(given)
        admin.get("dialog").get_by_role("button", name="Save").click()
        admin.gone(admin.get("dialog"))
        found = {one["app_name"]: one for one in server.admin().get("/admin/apps").json()["apps"]}
        assert found[app.name]["limits"]["max_sessions"] == wanted


def test_an_app_is_paused_and_resumed(admin: Tab, app: App) -> None:
    row = admin.go("#/admin/apps").page.get_by_role("row").filter(has_text=app.name)
    row.get_by_role("button", name="Pause").click()
    admin.get("dialog").get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    assert app.http.get("/limits").json()["paused"]
    row.get_by_role("button", name="Resume").click()
    expect(row).not_to_contain_text("paused")
    assert not app.http.get("/limits").json()["paused"]


def test_a_budget_is_made_shown_and_removed(admin: Tab, app: App) -> None:
    page = admin.go("#/admin/budgets").page
    admin.get("button", "New budget").click()
    dialog = admin.get("dialog")
    dialog.get_by_label("App").fill(app.name)
    dialog.get_by_label("Most dollars").fill("2.5")
    dialog.locator("select[name=period]").select_option("month")
    dialog.get_by_role("button", name="Save").click()
    line = page.get_by_role("listitem").filter(has_text=app.name)
    expect(line).to_contain_text("$0.00 of $2.50 reported")
    assert app.http.get("/budgets").json()["budgets"][0]["period"] == "month"
    line.get_by_role("button", name="Remove").click()
    admin.get("dialog").get_by_role("button", name="Remove").click()
    admin.gone(line)
    assert app.http.get("/budgets").json()["budgets"] == []


def test_a_refusal_is_said_in_the_servers_words(admin: Tab, app: App) -> None:
    admin.go("#/admin/budgets")
    admin.get("button", "New budget").click()
    admin.get("dialog").get_by_label("App").fill(app.name)
    admin.get("dialog").get_by_role("button", name="Save").click()
    admin.see(admin.page.locator(".notice.bad"))
    expect(admin.page.locator(".notice.bad")).to_contain_text("max_tokens or max_cost_usd")
    expect(admin.get("dialog")).to_be_visible()  # what was typed is not lost


def test_the_audit_log_is_read_filtered_and_verified(admin: Tab, app: App) -> None:
    app.session()
    page = admin.go("#/admin/audit").page
    page.get_by_label("Only of this app").fill(app.name)
    admin.get("button", "Filter").click()
    rows = page.get_by_role("row").filter(has_text=app.name)
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("create")
    admin.get("button", "Verify").click()
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text(re.compile(r"All \d+ entries are intact"))
    head = verdict.locator("code").inner_text()
    page.get_by_label("A head that you have noted").fill("f" * len(head))
    admin.get("button", "Verify").click()
    expect(page.locator(".verdict.bad")).to_be_visible()


def test_health_and_agents_are_told(tabs: Tabs, app: App, server: Server) -> None:
    admin = tabs.tab(app, "#/admin/health", operator=True)
    health = server.client().get("/healthz").json()
    admin.see(admin.page.get_by_text(health["version"], exact=True))
    admin.see(admin.page.get_by_text(health["sandbox"], exact=True))
    admin.go("#/admin/agents")
    missing = admin.page.get_by_role("listitem").filter(has_text="Codex").first
    expect(missing).to_contain_text("not installed")
    expect(missing).to_contain_text("npm install -g")


def test_measures_are_drawn_as_they_come(admin: Tab) -> None:
    admin.go("#/admin/live")
    plot = admin.page.locator(".measure").filter(has_text="Live agents")
    expect(plot.locator("strong")).to_have_text(re.compile(r"\d+"))
    expect(plot.locator("polyline")).to_have_count(1)


def test_nobody_else_sees_it(tabs: Tabs, app: App) -> None:
    tab = tabs.tab(app, "#/admin/tokens")
    tab.see("This is for the operator")
    assert tab.get("link", "Admin").count() == 0
