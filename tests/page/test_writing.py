"""The prompt: drafts, files by paste and drop, prompts that wait, turns that were stopped or failed."""

import re
from functools import partial
from typing import Final

from playwright.sync_api import Locator, Route, expect

from tests.api.harness import App, until
from tests.needs import needs
from tests.page.kit import PHONE, Tab, Tabs, wait_until

pytestmark = needs("chromium")

GIVE: Final = """(element, [kind, name]) => {
    const given = new DataTransfer();
    given.items.add(new File(['words'], name, { type: 'text/plain' }));
    const one = { bubbles: true, cancelable: true, clipboardData: given, dataTransfer: given };
    element.dispatchEvent(kind === 'paste' ? new ClipboardEvent(kind, one) : new DragEvent(kind, one));
}"""


def prompt_of(tab: Tab) -> Locator:
    return tab.page.get_by_label("Prompt", exact=True)


def send(app: App, session_id: str, *prompts: str) -> None:
    for prompt in prompts:
        app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt}).raise_for_status()


def prompts(app: App, session_id: str) -> list[str]:
    found = app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    return [message["content"] for message in found if message["role"] == "user"]


def runs(app: App, session_id: str, turn: int | None) -> bool:
    return bool(app.http.get(f"/sessions/{session_id}").json()["running_turn"] == turn)


def answer(tab: Tab, words: str) -> Locator:
    return tab.page.locator(".text-entry").get_by_text(words)


def test_each_session_keeps_its_draft_also_over_a_reload(tabs: Tabs, app: App) -> None:
    first, second = app.session(), app.session()
    tab = tabs.tab(app, f"#/s/{first}")
    prompt_of(tab).fill("half a thought")
    tab.go(f"#/s/{second}")
    expect(prompt_of(tab)).to_have_value("")
    prompt_of(tab).fill("another")
    tab.go(f"#/s/{first}")
    expect(prompt_of(tab)).to_have_value("half a thought")
    tab.page.reload()
    expect(prompt_of(tab)).to_have_value("half a thought")
    tab.go(f"#/s/{second}")
    expect(prompt_of(tab)).to_have_value("another")


def test_files_come_by_paste_and_drop(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    tab = tabs.tab(app, f"#/s/{session_id}")
    prompt_of(tab).evaluate(GIVE, ["paste", "pasted.txt"])
    tab.page.locator("form.box").evaluate(GIVE, ["drop", "dropped.txt"])
    expect(tab.page.locator(".attached .chip")).to_have_count(2)
    tab.gone(tab.page.get_by_text("sending …"))
    prompt_of(tab).fill("echo two files")
    prompt_of(tab).press("Enter")
    expect(tab.page.locator(".prompt .chip")).to_have_text(["pasted.txt", "dropped.txt"])
    tab.see(answer(tab, "two files"))


def test_stop_keeps_the_answer_and_the_prompt_can_be_written_anew(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    send(app, session_id, "echo so far\nsleep 60")
    tab = tabs.tab(app, f"#/s/{session_id}")
    tab.see(answer(tab, "so far"))
    with tab.page.expect_request("**/cancel") as asked:
        prompt_of(tab).press("Escape")
    assert asked.value.post_data_json == {"turn": 1}  # and none that begins meanwhile
    tab.see("Stopped. The answer so far is kept.")
    tab.see(answer(tab, "so far"))
    prompt_of(tab).fill("and more")
    tab.get("button", "Edit and send again").click()
    tab.get("dialog").get_by_role("button", name="Undo", exact=True).click()
    expect(prompt_of(tab)).to_have_value("echo so far\nsleep 60\n\nand more")
    tab.gone(answer(tab, "so far"))
    assert prompts(app, session_id) == []


def test_a_turn_that_failed_offers_to_go_on_and_to_try_again(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "echo half of it\nerror it broke")
    tab = tabs.tab(app, f"#/s/{session_id}")
    outcome = tab.page.locator(".outcome")
    expect(outcome).to_contain_text("it broke")
    outcome.get_by_role("button", name="Retry").click()
    until(
        lambda: app.http.get(f"/sessions/{session_id}/turns").json()["turns"][-1]["turn_index"] == 2,
        "another try",
    )
    expect(outcome).to_contain_text("it broke")
    outcome.get_by_role("button", name="Continue").click()
    tab.gone(outcome.get_by_role("button", name="Continue"))
    until(lambda: len(prompts(app, session_id)) == 2, "the word to go on")


def test_a_prompt_that_waits_comes_next_or_begins_at_once(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    send(app, session_id, "echo running\nsleep 60", "echo one", "echo two", "echo three")
    tab = tabs.tab(app, f"#/s/{session_id}", size=PHONE)
    queue = tab.page.get_by_role("region", name="Queue").get_by_role("listitem")
    expect(queue).to_have_count(3)
    tab.see(answer(tab, "running"))

    def sooner(words: str, name: str) -> None:
        queue.filter(has_text=words).get_by_role("button", name="Sooner or at once").click()
        tab.get("menuitem", name).click()

    sooner("two", "Steer: it comes next")
    for _ in range(2):
        expect(queue).to_contain_text(["echo two", "echo one", "echo three"])
        assert tab.excess() <= 0
        tab.page.reload()
    sooner("three", "Interrupt: it begins now")
    tab.see(answer(tab, "three"))
    expect(queue).to_have_count(0)
    tab.see(answer(tab, "one"))
    assert prompts(app, session_id)[1:] == ["echo three", "echo two", "echo one"]


def test_a_transcript_that_is_read_again_misses_nothing_and_is_read_once(tabs: Tabs, app: App) -> None:
    """The running turn is told from its beginning; what changed the queue since then was read already."""
    session_id = app.session()
    send(app, session_id, "echo running\nsleep 60", "echo one", "echo two", "echo three")
    for turn in (3, 4):
        path = f"/sessions/{session_id}/turns/{turn}"
        app.http.patch(path, json={"position": 0}).raise_for_status()
    tab = tabs.tab(app)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    tab.page.route(re.compile(r"/messages\?.*tail"), hold)
    tab.go(f"#/s/{session_id}")

    def go_on() -> None:
        wait_until(tab.page, lambda: bool(held), "a reading of the transcript")
        held.pop().continue_()

    go_on()
    tab.see(answer(tab, "running"))
    assert not held, "it is read once more"
    app.http.patch(f"/sessions/{session_id}/turns/2", json={"position": 0}).raise_for_status()
    app.http.post(f"/sessions/{session_id}/cancel", json={"turn": 1}).raise_for_status()
    wait_until(tab.page, lambda: bool(held), "a reading of the transcript")
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["queued_turns"] == 0, "the last of them")
    until(partial(runs, app, session_id, None), "its end")
    go_on()
    for words in ("one", "two", "three"):
        tab.see(answer(tab, words))
    assert not held, "it is read once more"


def test_a_prompt_that_others_have_overtaken_still_stands_in_the_queue(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    send(app, session_id, "echo running\nsleep 60", "echo one", "echo two")
    for number in range(4):
        body = {"prompt": f"echo sooner {number}\nsleep 60", "if_busy": "interrupt"}
        app.http.post(f"/sessions/{session_id}/turns", json=body).raise_for_status()
        until(partial(runs, app, session_id, 4 + number), "its beginning")
    tab = tabs.tab(app, f"#/s/{session_id}")
    queue = tab.page.get_by_role("region", name="Queue").get_by_role("listitem")
    expect(queue).to_contain_text(["echo one", "echo two"])
    prompt_of(tab).press("Escape")
    tab.see(answer(tab, "two"))


def test_all_commands_can_be_seen_and_reached(tabs: Tabs, app: App) -> None:
    tab = tabs.tab(app, f"#/s/{app.session()}")
    prompt_of(tab).press("/")
    names = tab.get("option").locator(".mono")
    expect(names).to_have_count(11)
    asked = "/retry /undo /redo /status /usage /compact /clear /fork /export /agent /model"
    assert " ".join(name.split()[0] for name in names.all_inner_texts()) == asked
    prompt_of(tab).press("ArrowUp")
    expect(tab.get("option").last).to_be_in_viewport(ratio=1)
    prompt_of(tab).press("ArrowDown")
    expect(tab.get("option").first).to_be_in_viewport(ratio=1)


def test_a_session_is_downloaded_in_each_of_its_forms(tabs: Tabs, app: App) -> None:
    session_id = app.session(title="To keep")
    app.turn(session_id, "echo keep this").raise_for_status()
    tab = tabs.tab(app, f"#/s/{session_id}")
    for words, name, begins in (("", "json", "{"), (" md", "md", "#"), (" html", "html", "<!doctype html>")):
        prompt_of(tab).fill(f"/export{words}")
        with tab.page.expect_download() as download:
            tab.page.locator(".send").click()
        assert download.value.suggested_filename.endswith(f".{name}")
        text = download.value.path().read_text()
        assert text.startswith(begins)
        assert "keep this" in text


def test_the_menu_of_a_session_keeps_it_and_says_who_decides(tabs: Tabs, app: App) -> None:
    session_id = app.session(permission_mode="ask")
    tab = tabs.tab(app, f"#/s/{session_id}")
    more = tab.get("button", "More about this session").last
    more.click()
    expect(tab.get("menuitem", "Share …")).to_be_visible()
    tab.get("menuitem", "Keep it until I delete it").click()
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["retention"] == "keep", "that it is kept")
    more.click()
    tab.get("menuitem", "Permissions …").click()
    tab.get("dialog").get_by_role("button", name="Allow everything").click()
    expect(tab.page.locator(".head .about")).to_contain_text("allow everything")
    assert app.http.get(f"/sessions/{session_id}").json()["permission_mode"] == "approve_all"
