"""Lists that follow the server: told by one connection, silent while hidden, true again after a break."""

import re

from playwright.sync_api import Locator, Request, Route, expect

from tests.api.harness import App, Server
from tests.needs import needs
from tests.page.kit import Tab, Tabs, wait_until

pytestmark = needs("chromium")
LISTS = re.compile(r"/(sessions|permissions)\?")


def line(tab: Tab, title: str) -> Locator:
    return tab.page.locator("[data-session]").filter(has_text=title)


def titles(tab: Tab) -> list[str]:
    return tab.page.locator("[data-session] .title").all_inner_texts()


def asked(tab: Tab) -> list[str]:
    """The requests of the page from now on, but for its streams."""
    found: list[str] = []

    def note(request: Request) -> None:
        if LISTS.search(request.url):
            found.append(request.url)

    tab.page.on("request", note)
    return found


def test_a_list_is_told_what_changes_and_asks_for_nothing(tabs: Tabs, app: App) -> None:
    """New, renamed, at work, asking, gone: each without reading the list again."""
    first = app.session(title="The first", permission_mode="ask")
    tab = tabs.tab(app, "#/inbox")
    expect(line(tab, "The first")).to_be_visible()
    tab.settle()
    seen = asked(tab)
    second = app.session(title="The second")
    expect(line(tab, "The second")).to_be_visible()
    app.http.patch(f"/sessions/{first}", json={"title": "Renamed"}).raise_for_status()
    expect(line(tab, "Renamed")).to_be_visible()
    app.http.post(f"/sessions/{first}/turns", json={"prompt": "ask to go on"}).raise_for_status()
    expect(line(tab, "Renamed")).to_contain_text("asks you")
    expect(tab.page.locator(".ask")).to_contain_text("to go on")
    expect(tab.page).to_have_title(re.compile(r"^\(1\) "))
    wait_until(tab.page, lambda: titles(tab)[0] == "Renamed", "the last used first")
    app.http.post(f"/sessions/{first}/purge").raise_for_status()
    expect(line(tab, "Renamed")).to_have_count(0)
    expect(tab.page).not_to_have_title(re.compile(r"^\("))
    app.http.post(f"/sessions/{second}/purge").raise_for_status()
    expect(line(tab, "The second")).to_have_count(0)
    assert seen == []


def test_what_was_used_within_one_second_stands_in_its_order(tabs: Tabs, app: App) -> None:
    """Whole seconds do not tell which came last, and the ids that would decide then say the opposite here."""
    ids = sorted((app.session(title="Used") for _ in range(6)), reverse=True)
    tab = tabs.tab(app)
    expect(line(tab, "Used")).to_have_count(6)
    for session_id in ids:
        app.http.patch(f"/sessions/{session_id}", json={"title": "Renamed"}).raise_for_status()
    expect(line(tab, "Renamed")).to_have_count(6)
    shown = tab.page.locator("[data-session]").evaluate_all("lines => lines.map(one => one.dataset.session)")
    assert shown == ids[::-1]
    listed = app.http.get("/sessions").json()["sessions"]
    assert [row["session_id"] for row in listed] == shown
    assert listed == sorted(listed, key=lambda row: -row["updated_us"])


def test_an_answer_that_comes_late_does_not_undo_what_the_list_was_told(tabs: Tabs, app: App) -> None:
    """Somebody renames a session while this tab's own renaming is still on its way back."""
    session_id = app.session(title="Before")
    tab = tabs.tab(app)
    expect(line(tab, "Before")).to_be_visible()

    def hold(route: Route) -> None:
        answer = route.fetch()
        app.http.patch(f"/sessions/{session_id}", json={"title": "Theirs"}).raise_for_status()
        expect(line(tab, "Theirs")).to_be_visible()
        route.fulfill(response=answer)

    tab.context.route(re.compile(rf"/sessions/{session_id}$"), hold)
    tab.page.get_by_role("button", name="More about Before").click()
    tab.get("menuitem", "Rename").click()
    tab.page.get_by_label("Title").fill("Ours")
    tab.get("button", "Rename").click()
    expect(line(tab, "Theirs")).to_be_visible()
    tab.settle()
    assert titles(tab) == ["Theirs"]


def test_a_closed_session_leaves_the_list_and_can_be_opened_again(tabs: Tabs, app: App) -> None:
    session_id = app.session(title="Over")
    tab = tabs.tab(app, f"#/s/{session_id}")
    tab.page.get_by_role("button", name="More about Over").click()
    tab.get("menuitem", "Close").click()
    expect(line(tab, "Over")).to_have_count(0)
    assert not app.http.get(f"/sessions/{session_id}").json()["live"]
    tab.get("button", "More about this session").click()
    tab.get("menuitem", "Open again").click()
    expect(line(tab, "Over")).to_be_visible()
    assert app.http.get(f"/sessions/{session_id}").json()["live"]


def test_a_filtered_list_takes_in_only_what_it_looks_for(tabs: Tabs, app: App) -> None:
    heron = app.session(title="Of herons")
    tab = tabs.tab(app)
    tab.get("searchbox", "Find a session").fill("HERON")
    expect(line(tab, "Of herons")).to_be_visible()
    app.session(title="Of otters")
    app.session(title="More herons")
    expect(line(tab, "More herons")).to_be_visible()
    expect(line(tab, "Of otters")).to_have_count(0)
    app.http.patch(f"/sessions/{heron}", json={"title": "Of nothing"}).raise_for_status()
    expect(line(tab, "Of herons")).to_have_count(0)
    assert titles(tab) == ["More herons"]


def test_a_hidden_tab_holds_no_connection_and_catches_up_when_it_is_seen(
    tabs: Tabs, app: App, server: Server
) -> None:
    tab = tabs.tab(app)
    session_id = app.session(title="Seen")
    expect(line(tab, "Seen")).to_be_visible()
    tab.go(f"#/s/{session_id}").settle()
    with tab.deaf():
        wait_until(tab.page, lambda: readers(server) == 0, "the end of every stream")
        app.session(title="Made meanwhile")
        assert titles(tab) == ["Seen"]
    expect(line(tab, "Made meanwhile")).to_be_visible()


def readers(server: Server) -> int:
    """How many streams of lists and sessions are open, by the server's own measures."""
    text = server.admin().get("/metrics").text
    return sum(int(float(found)) for found in re.findall(r"^clawdforge_readers (\S+)$", text, re.MULTILINE))


def test_a_list_that_missed_something_is_read_anew(tabs: Tabs, app: App) -> None:
    """A server that was restored counts from elsewhere: it says so, and the page reads everything again."""
    app.session(title="There all along")
    context = tabs.person(app)
    told = []

    def pretend(route: Route) -> None:
        told.append(1)
        frame = 'id: 0\nevent: reset\ndata: {"cursor":0,"type":"reset"}\n\n'
        route.fulfill(content_type="text/event-stream", body=frame)

    context.route(re.compile(r"/events$"), pretend)
    tab = Tab(context, tabs.server).open()
    expect(line(tab, "There all along")).to_be_visible()
    app.session(title="And another")
    expect(line(tab, "And another")).to_be_visible()
    assert told == [1]
