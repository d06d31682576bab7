"""The screen of a session: what comes back when it is opened again, and what lies over what."""

import base64
import json
import re
import struct
import zlib

from playwright.sync_api import Locator, Route, expect

from tests.api.harness import App
from tests.api.talk import say
from tests.needs import needs
from tests.page.kit import DESKTOP, PHONE, Tab, Tabs, wait_until

pytestmark = needs("chromium")


def png() -> str:
    """One red point, as an agent would send it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")), chunk(b"IEND", b""))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def picture() -> str:
    """The scripted agent's line that sends it."""
    content = {"type": "image", "mimeType": "image/png", "data": png()}
    return "update " + json.dumps({"sessionUpdate": "agent_message_chunk", "content": content})


def prompt_of(tab: Tab) -> Locator:
    return tab.page.get_by_label("Prompt", exact=True)


def test_a_picture_between_words_is_there_again_when_the_session_is_opened_again(
    tabs: Tabs, app: App
) -> None:
    session_id = app.session()
    app.turn(session_id, f"echo before it\n{picture()}\necho after it")
    app.turn(session_id, "echo words alone")
    tab = tabs.tab(app, f"#/s/{session_id}")
    expect(tab.page.locator("img.picture")).to_have_count(1)
    kinds = "rows => rows.map(one => one.className).filter(name => !name.includes('end-entry'))"
    assert tab.page.locator(".entry").evaluate_all(kinds) == [
        f"entry {kind}-entry" for kind in ("prompt", "text", "image", "text", "prompt", "text")
    ]


def test_what_was_undone_can_be_redone_after_a_reload_until_something_new_is_said(
    tabs: Tabs, app: App
) -> None:
    session_id = app.session()
    app.turn(session_id, "echo one")
    app.turn(session_id, "echo two")
    tab = tabs.tab(app, f"#/s/{session_id}")
    redo = tab.get("button", "Redo", exact=True)
    tab.see(tab.page.locator(".text-entry").get_by_text("two"))
    expect(redo).to_have_count(0)
    app.http.post(f"/sessions/{session_id}/undo", json={}).raise_for_status()
    tab.see("One turn was taken back.")
    tab.page.reload()
    tab.see("Something was taken back.")
    redo.click()
    tab.get("dialog").get_by_role("button", name="Redo", exact=True).click()
    tab.see(tab.page.locator(".text-entry").get_by_text("two"))
    expect(redo).to_have_count(0)
    app.http.post(f"/sessions/{session_id}/undo", json={}).raise_for_status()
    expect(redo).to_be_visible()
    app.turn(session_id, "echo three")
    expect(redo).to_have_count(0)
    tab.page.reload()
    tab.see(tab.page.locator(".text-entry").get_by_text("three"))
    expect(redo).to_have_count(0)


def test_a_redo_before_anything_is_shown_waits_for_what_it_redoes(tabs: Tabs, app: App) -> None:
    """The list knows of an undo before the session itself is read; nobody has seen its head then."""
    session_id = app.session()
    app.turn(session_id, "echo one")
    app.turn(session_id, "echo two")
    app.http.post(f"/sessions/{session_id}/undo", json={}).raise_for_status()
    tab = tabs.tab(app)
    tab.settle()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    tab.context.route(re.compile(rf"/sessions/{session_id}/messages"), hold, times=1)
    tab.go(f"#/s/{session_id}")
    wait_until(tab.page, lambda: held, "the page to ask for the messages")
    expect(tab.get("button", "Redo", exact=True)).to_have_count(0)
    prompt_of(tab).fill("/redo")
    prompt_of(tab).press("Enter")
    held[0].continue_()
    tab.get("dialog").get_by_role("button", name="Redo", exact=True).click()
    tab.see(tab.page.locator(".text-entry").get_by_text("two"))


def test_nobody_waits_for_a_session_that_cannot_be_shown(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "echo one")
    tab = tabs.tab(app)
    tab.settle()
    broken = {"ok": False, "error": "broken", "code": "internal"}
    tab.context.route(
        re.compile(rf"/sessions/{session_id}/messages"), lambda route: route.fulfill(status=500, json=broken)
    )
    tab.go(f"#/s/{session_id}")
    tab.see("This session cannot be shown")
    prompt_of(tab).fill("/retry")
    prompt_of(tab).press("Enter")
    tab.see(tab.page.get_by_text("look at the session as it is now"))
    expect(prompt_of(tab)).to_have_value("")


def test_an_edit_keeps_its_numbers_signs_and_code_apart(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    diff = {"type": "diff", "path": "a.txt", "oldText": "one\ntwo\n", "newText": "one\nthree\n"}
    call = {"toolCallId": "e", "title": "Edit a.txt", "kind": "edit", "status": "completed"}
    update = json.dumps({"sessionUpdate": "tool_call", **call, "content": [diff]})
    app.turn(session_id, f"update {update}\nusage 1200 34\necho done")
    tab = tabs.tab(app, f"#/s/{session_id}", size=PHONE)
    tab.page.get_by_text("Edit a.txt", exact=True).click()
    lines = tab.page.get_by_role("region", name="Changes of a.txt").locator("> div")
    expect(lines).to_have_count(3)
    left = "line => [...line.children].map(part => part.getBoundingClientRect().x)"
    number, sign, code = lines.nth(2).evaluate(left)
    assert number + 20 < sign < code - 8
    facts = tab.page.locator(".end-facts")
    expect(facts).to_contain_text("tokens")
    assert facts.evaluate("element => getComputedStyle(element).display") == "block"  # as dots need it
    assert tab.excess() <= 0


def test_an_agent_that_is_not_installed_starts_nothing_and_fits_on_a_phone(tabs: Tabs, app: App) -> None:
    tab = tabs.tab(app, "#/sessions", size=PHONE)
    tab.get("button", "New session").click()
    dialog = tab.get("dialog", "New session")
    agents = dialog.locator("select").first
    expect(dialog.get_by_role("button", name="Start")).to_be_enabled()
    missing = agents.locator("option", has_text="not installed").all()
    assert missing
    for one in missing:
        agents.select_option(one.get_attribute("value"))
        expect(dialog).to_contain_text("Not installed here")
        expect(dialog.get_by_role("button", name="Start")).to_be_disabled()
        assert dialog.evaluate("dialog => dialog.scrollWidth - dialog.clientWidth") <= 0
    agents.select_option("claude")
    expect(dialog).to_contain_text(re.compile(r"Closes on .*\d:\d\d.* deleted on .*\d:\d\d"))
    dialog.get_by_role("button", name="Start").click()
    dates = re.compile(r"Closes on .*\d:\d\d.* deleted on .*\d:\d\d")
    expect(tab.page.locator(".beginning")).to_contain_text(dates)


def test_an_attached_file_has_its_name_and_a_table_its_sides(tabs: Tabs, app: App) -> None:
    tab = tabs.tab(app, f"#/s/{app.session()}")
    name = "Gänse & Reiher.txt"
    tab.page.locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": b"geese"}
    )
    expect(tab.page.locator(".attached .chip")).not_to_contain_text("sending")
    prompt_of(tab).fill("| a | b |\n|:--|--:|\n| 1 | 2 |\n\nand\n\n3. the third")
    tab.get("button", "Send").click()
    for _ in range(2):
        expect(tab.page.locator(".prompt .chip")).to_have_text(name)
        expect(tab.page.locator("td").nth(1)).to_have_css("text-align", "right")
        expect(tab.page.locator(".md ol")).to_have_attribute("start", "3")
        tab.page.reload()


def test_a_command_without_its_name_says_so_and_names_of_agents_are_completed(tabs: Tabs, app: App) -> None:
    session_id = app.session(agent="demo")
    tab = tabs.tab(app, f"#/s/{session_id}")
    prompt = prompt_of(tab)
    for command in ("/model", "/agent"):
        prompt.fill(command)
        prompt.press("Enter")
        tab.see(f"{command} NAME")
        expect(prompt).to_have_value(command)
    prompt.press_sequentially(" cla")
    expect(tab.get("option")).to_contain_text(["/agent claude"])
    prompt.press("Tab")
    expect(prompt).to_have_value("/agent claude ")
    prompt.press("Enter")
    expect(prompt).to_have_value("")
    assert app.http.get(f"/sessions/{session_id}").json()["agent"] == "claude"
    prompt.fill("/agent nobody")
    prompt.press("Enter")
    tab.see(tab.page.locator(".notice.bad"))
    expect(prompt).to_have_value("/agent nobody")


def test_another_model_takes_no_memory_away(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "echo the blue door")
    prompt = prompt_of(tabs.tab(app, f"#/s/{session_id}"))
    prompt.fill("/model m1")
    prompt.press("Enter")
    expect(prompt).to_have_value("")
    assert app.http.get(f"/sessions/{session_id}").json()["model"] == "m1"
    assert say(app, session_id, "recall") == '["echo the blue door"]'


def test_a_question_in_the_transcript_says_how_far_and_how_long(tabs: Tabs, app: App) -> None:
    session_id = app.session(permission_mode="ask")
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "ask Look around"}).raise_for_status()
    tab = tabs.tab(app, f"#/s/{session_id}")
    card = tab.page.get_by_role("region", name="The agent asks")
    expect(card).to_contain_text(re.compile(r"expires in \d+"))
    expect(card).to_contain_text("in this session from now on: all that is asked for by this very name.")
    card.get_by_role("button", name="Refuse").first.click()
    expect(card).to_contain_text("Refused")
    expect(card).not_to_contain_text("expires in")


def test_a_notice_lies_over_nothing_that_is_pressed(tabs: Tabs, app: App) -> None:
    session_id = app.session()
    is_free = """button => {
        const box = button.getBoundingClientRect();
        const above = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return above?.closest('a, button') === button }"""
    for size in (DESKTOP, PHONE):
        tab = tabs.tab(app, f"#/s/{session_id}", size=size)
        prompt_of(tab).fill("/status")
        tab.get("button", "Send").click()
        tab.see(tab.page.locator(".notice"))
        for button in tab.page.locator(".composer button, .tabs-phone a").all():
            assert not button.is_visible() or button.evaluate(is_free)
