"""Reading while an answer comes: the end is followed until a person turns away, and nothing jumps."""

import json
from typing import Final

import pytest
from playwright.sync_api import expect

from bench.page import SCROLL
from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import PHONE, Tab, Tabs

pytestmark = needs("chromium")
BEHIND: Final = """() => {
    const scroller = document.querySelector('.transcript');
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
}"""
TOP_ROW: Final = """() => {
    const edge = document.querySelector('.transcript').getBoundingClientRect().top;
    const rows = [...document.querySelectorAll('[data-row]')];
    const row = rows.find(one => one.getBoundingClientRect().bottom > edge);
    return [row.dataset.row, row.getBoundingClientRect().top];
}"""
DOWN: Final = """async () => {
    const scroller = document.querySelector('.transcript');
    const frame = () => new Promise(requestAnimationFrame);
    let worst = 0;
    for (let step = 0; step < 30; step++) {
        scroller.scrollTop += 1500;
        await frame();
        const edge = scroller.getBoundingClientRect().top;
        const rows = [...document.querySelectorAll('[data-row]')];
        const held = rows.find(row => row.getBoundingClientRect().bottom > edge);
        const top = held.getBoundingClientRect().top;
        for (let at = 0; at < 3; at++) {
            await frame();
            if (held.isConnected) worst = Math.max(worst, Math.abs(held.getBoundingClientRect().top - top));
        }
    }
    return worst;
}"""
STILL: Final = """async () => {
    const scroller = document.querySelector('.transcript');
    let top = scroller.scrollTop, same = 0;
    for (let step = 0; step < 600 && same < 12; step++) {
        await new Promise(requestAnimationFrame);
        same = scroller.scrollTop === top ? same + 1 : 0;
        top = scroller.scrollTop;
    }
}"""
TOUCH: Final = """async () => {
    const scroller = document.querySelector('.transcript');
    const touch = (kind, clientY) => {
        const finger = new Touch({ identifier: 1, target: scroller, clientX: 100, clientY });
        scroller.dispatchEvent(new TouchEvent(kind, { bubbles: true, touches: [finger] }));
    };
    touch('touchstart', 200);
    for (let at = 1; at <= 10; at++) {
        touch('touchmove', 200 + 30 * at);
        scroller.scrollTop -= 30;
        await new Promise(requestAnimationFrame);
    }
}"""


def said(text: str) -> str:
    content = {"type": "text", "text": text}
    return "update " + json.dumps({"sessionUpdate": "agent_message_chunk", "content": content})


def turn_away(tab: Tab, way: str) -> None:
    tab.page.mouse.move(300, 300)
    if way == "wheel":
        tab.page.mouse.wheel(0, -400)
    elif way == "keys":
        tab.page.locator(".transcript").focus()
        tab.page.keyboard.press("PageUp")
    else:
        tab.page.evaluate(TOUCH)


@pytest.mark.parametrize("way", ["wheel", "keys", "touch"])
def test_the_end_is_followed_until_a_person_turns_away(tabs: Tabs, app: App, way: str) -> None:
    session_id = app.session()
    parts = [f"{said(f'Part {number} of it.{chr(10)}{chr(10)}')}\nsleep 0.1" for number in range(300)]
    prompt = "\n".join([said("word\n\n" * 100), *parts, "sleep 60"])
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt}).raise_for_status()
    tab = tabs.tab(app, f"#/s/{session_id}", **({"size": PHONE} if way == "touch" else {}))
    tab.see("Part 3 of it.")
    tab.until(f"({BEHIND})() < 3")
    turn_away(tab, way)
    follow = tab.get("button", "Follow the answer")
    expect(follow).to_be_visible()
    tab.until(f"({BEHIND})() > 100")
    tab.settle().page.evaluate(STILL)  # a key scrolls smoothly
    before, behind = tab.page.evaluate(TOP_ROW), tab.page.evaluate(BEHIND)
    tab.until(f"behind => ({BEHIND})() > behind + 60", behind)
    name, top = tab.page.evaluate(TOP_ROW)
    assert name == before[0]
    assert abs(top - before[1]) <= 1
    follow.click()
    tab.until(f"({BEHIND})() < 3")
    expect(follow).to_have_count(0)
    app.http.post(f"/sessions/{session_id}/cancel").raise_for_status()


def test_a_long_answer_is_scrolled_with_few_rows_and_nothing_jumps(tabs: Tabs, app: App) -> None:
    """An answer of 1200 blocks, each of which is a row."""
    session_id = app.session()
    parts = "".join(f"## Part {number}\n\nSome `words` of it.\n\n" for number in range(600))
    app.turn(session_id, said(f"{parts}\n\nTHE END")).raise_for_status()
    tab = tabs.tab(app, f"#/s/{session_id}")
    tab.see("THE END")
    tab.page.mouse.move(600, 400)
    tab.page.mouse.wheel(0, -400)
    tab.see(tab.get("button", "To the end"))
    found = tab.page.evaluate(SCROLL)
    assert found["most"] <= 200
    assert found["worst"] <= 1
    assert found["steps"] > 40
    expect(tab.get("heading", "Part 0", exact=True)).to_be_in_viewport()
    assert tab.page.evaluate(DOWN) <= 1
    assert tab.page.locator("[data-row]").count() <= 200


@pytest.mark.parametrize("day", ["1970-01-01", "2199-12-31"])
def test_a_browser_whose_clock_is_wrong_shows_everything(tabs: Tabs, app: App, day: str) -> None:
    """What waits, how long it waits, and how a turn went: wrong by the clock, and no nonsense."""
    session_id = app.session(title="Of clocks", permission_mode="ask")
    app.turn(session_id, "usage 3 4\necho before")
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "ask to go on"}).raise_for_status()
    context = tabs.person(app)
    context.clock.set_system_time(day)
    tab = Tab(context, tabs.server).open("#/inbox")
    tab.see(tab.get("button", "Allow once"))
    for where in ("#/inbox", f"#/s/{session_id}", "#/usage", "#/search?q=before"):
        tab.go(where).settle()
        shown = tab.page.locator("body").inner_text()
        assert not any(word in shown for word in ("NaN", "Invalid", "undefined", "null")), where
    tab.go(f"#/s/{session_id}")
    context.clock.set_system_time("2026-01-01")
    tab.get("button", "Allow once").click()
    tab.see("permission: allow_once")
