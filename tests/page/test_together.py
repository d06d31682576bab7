"""Many tabs on one session: all of them live, one step at a time, and no prompt that runs by half."""

from playwright.sync_api import expect

from tests.api.harness import App, until
from tests.needs import needs
from tests.page.kit import Tab, Tabs, wait_until

pytestmark = needs("chromium")
TABS = 8


def send(app: App, session_id: str, prompt: str) -> None:
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt}).raise_for_status()


def prompts(app: App, session_id: str) -> list[str]:
    found = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    return [message["content"] for message in found if message["role"] == "user"]


def is_idle(app: App, session_id: str) -> bool:
    return bool(app.http.get(f"/sessions/{session_id}").json()["activity"] == "idle")


def test_eight_tabs_at_once_are_all_live_and_a_ninth_request_gets_through(tabs: Tabs, app: App) -> None:
    """A browser has six connections to a server; streams leave some of them for everything else."""
    session_id = app.session(title="Of eight")
    first = tabs.tab(app, f"#/s/{session_id}")
    shown = [first, *(tabs.another(first, f"#/s/{session_id}") for _ in range(TABS - 1))]
    for tab in shown:
        expect(tab.page.locator(".status")).to_have_attribute("data-state", "live")
    last = shown[-1].page.get_by_label("Prompt", exact=True)
    last.fill("chunks 60 0 10")
    last.press("Enter")
    for tab in shown:
        tab.see(tab.page.locator("main").get_by_text("58 59 60").first)
    app.http.patch(f"/sessions/{session_id}", json={"title": "Renamed for all"}).raise_for_status()
    for tab in shown:
        expect(tab.page.locator("[data-session] .title")).to_have_text("Renamed for all")


def test_an_undo_beside_a_retry_is_refused_in_words_and_no_draft_is_lost(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "echo one")
    app.turn(session_id, "echo two")
    first = tabs.tab(app, f"#/s/{session_id}")
    second = tabs.tab(app, f"#/s/{session_id}")
    for tab in (first, second):
        tab.see(tab.page.locator(".text-entry").get_by_text("two"))
    second.page.get_by_label("Prompt", exact=True).fill("what I was about to say")
    with second.deaf():
        first.get("button", "Undo", exact=True).last.click()
        first.get("dialog").get_by_role("button", name="Undo", exact=True).click()
        until(lambda: prompts(app, session_id) == ["echo one"], "the undo")
        second.get("button", "Retry", exact=True).last.click()
        expect(second.page.locator(".notice.bad").last).to_contain_text("moved on")
        second.get("button", "Edit and send again", exact=True).last.click()
        second.get("dialog").get_by_role("button", name="Undo", exact=True).click()
        expect(second.page.locator(".notice.bad").last).to_contain_text(
            "Somebody or something else was faster"
        )
    expect(second.page.get_by_label("Prompt", exact=True)).to_have_value("what I was about to say")
    second.gone(second.page.locator(".text-entry").get_by_text("two"))
    assert prompts(app, session_id) == ["echo one"]


def queued(tab: Tab, words: str) -> None:
    expect(tab.page.get_by_role("region", name="Queue").get_by_text(words)).to_be_visible()


def open_edit(tab: Tab, words: str, change: str) -> None:
    line = tab.page.get_by_role("region", name="Queue").get_by_role("listitem").filter(has_text=words)
    line.get_by_role("button", name="Change this prompt").click()
    tab.get("dialog").get_by_role("textbox").fill(change)


def test_a_prompt_taken_out_never_runs_and_one_being_edited_never_by_half(tabs: Tabs, app: App) -> None:
    session_id = app.session(permission_mode="ask")
    send(app, session_id, "ask for the gate")
    for words in ("echo taken out", "echo changed in time", "echo changed too late"):
        send(app, session_id, words)
    tab = tabs.tab(app, f"#/s/{session_id}")
    queued(tab, "echo taken out")
    tab.get("button", "Take this prompt out").first.click()
    tab.gone(tab.page.get_by_text("echo taken out"))
    open_edit(tab, "echo changed in time", "echo other words")
    tab.get("dialog").get_by_role("button", name="Change").click()
    queued(tab, "echo other words")
    open_edit(tab, "echo changed too late", "echo half of it")
    gate = app.http.get(f"/sessions/{session_id}/permissions").json()["permissions"][0]["permission_id"]
    answer = {"decision": "allow_once"}
    app.http.post(f"/sessions/{session_id}/permissions/{gate}", json=answer).raise_for_status()
    until(lambda: is_idle(app, session_id), "the end of the queue")
    tab.get("dialog").get_by_role("button", name="Change").click()
    expect(tab.page.locator(".notice.bad").last).to_contain_text("has ended, so it stays as it is")
    expect(tab.page.get_by_label("Prompt", exact=True)).to_have_value("echo half of it")
    wait_until(tab.page, lambda: tab.page.locator(".prompt-entry").count() == 3, "what has run")
    assert prompts(app, session_id) == ["ask for the gate", "echo other words", "echo changed too late"]
