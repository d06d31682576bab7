"""Hostile words through a real server: every place where an agent, a file or an error names something."""

import json
import re
from typing import Any

from playwright.sync_api import expect

from tests.api.harness import App
from tests.needs import needs
from tests.page.kit import Tab, Tabs
from tests.page.payloads import markup

pytestmark = needs("chromium")
BAD = """[...document.querySelectorAll('#app *, body > div *')].flatMap(element => [
    ...(['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'STYLE', 'LINK', 'META', 'BASE', 'VIDEO', 'AUDIO', 'MATH']
        .includes(element.tagName.toUpperCase()) ? [element.outerHTML] : []),
    ...[...element.attributes].filter(one => /^on/i.test(one.name) || /^\\s*javascript:/i.test(one.value))
        .map(one => `${element.tagName} ${one.name}=${one.value}`),
])"""


def one_line(text: str) -> str:
    return re.sub(r"[\r\n\x00]+", " ", text).strip()


def look(tab: Tab) -> None:
    """Everything is drawn and opened; nothing ran, and nothing that could run was made."""
    tab.settle()
    tab.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    tab.settle()
    assert tab.page.evaluate(BAD) == []
    tab.check_nothing_fired()


def test_what_others_named_is_text_on_every_screen(tabs: Tabs, app: App) -> None:
    """Tools with their paths and output, file names, errors, questions, titles, snippets: one session."""
    payloads = [one_line(text) for text in markup()]
    session_id = app.session(title=" ".join(payloads)[:400], model=payloads[0], permission_mode="ask")
    calls = []
    for number, text in enumerate(payloads):
        call: dict[str, Any] = {
            "sessionUpdate": "tool_call",
            "toolCallId": f"c{number}",
            "title": text,
            "kind": "edit",
        }
        call |= {"status": "completed", "locations": [{"path": f"/{text}"}], "rawInput": {text: text}}
        diff = {"type": "diff", "path": f"/{text}", "oldText": text, "newText": f"{text} more"}
        words = {"type": "content", "content": {"type": "text", "text": text}}
        calls.append(f"update {json.dumps({**call, 'content': [diff, words]})}")
    app.turn(session_id, "\n".join([*calls, *(f"echo heron {text}" for text in payloads)])).raise_for_status()
    for text in payloads[:3]:
        app.turn(session_id, f"error {text}")
    for number, text in enumerate(payloads):
        app.http.post("/files", files={"file": (f"{number}{text}"[:200], b"x")})
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": f"ask {payloads[1]}"}).raise_for_status()
    tab = tabs.tab(app, f"#/s/{session_id}")
    expect(tab.page.locator(".permission.open").first).to_be_visible()
    look(tab)
    for panel in ("Turn", "Files", "Tree"):
        tab.get("tab", panel, exact=True).click()
        look(tab)
    for screen in ("#/inbox", "#/search?q=heron", "#/usage", f"#/changes/{session_id}/1"):
        tab.go(screen)
        look(tab)
    tab.go("#/search?q=heron")
    expect(tab.page.locator("main mark").first).to_be_visible()
    look(tab)


def test_agents_with_hostile_names_are_text_where_one_is_chosen_and_where_they_are_listed(
    tabs: Tabs, app: App
) -> None:
    context = tabs.person(app, operator=True)
    names = [one_line(text) for text in markup()]
    fields = ("name", "title", "version", "sandbox", "install", "driver")
    agents = [dict.fromkeys(fields, name) | {"installed": at % 2 == 0} for at, name in enumerate(names)]
    listed = {"ok": True, "default": names[0], "agents": agents}
    context.route(re.compile(r"\d/agents$"), lambda route: route.fulfill(json=listed))
    tab = Tab(context, tabs.server).open("#/admin/agents")
    expect(tab.page.locator(".agent")).to_have_count(len(names))
    look(tab)
    tab.go("#/")
    tab.get("button", "New session").click()
    choice = tab.get("dialog").locator("select").first
    expect(choice.locator("option")).to_have_count(len(names))
    for name in names[:2]:
        choice.select_option(name)
        look(tab)


def test_an_agent_that_sends_nonsense_is_shown_as_far_as_it_makes_sense(tabs: Tabs, app: App) -> None:
    """NUL and right-to-left, half a letter, bytes that are none, unknown kinds, updates of no call."""
    session_id = app.session()
    orphan = {"sessionUpdate": "tool_call_update", "toolCallId": "never made", "status": "completed"}
    broken = {"sessionUpdate": "plan", "entries": [None, 5, {"content": None}]}
    patch = {"type": "diff", "path": "", "oldText": None, "newText": "\u0000\ud7ff"}
    call = {"sessionUpdate": "tool_call", "toolCallId": "x", "title": "", "content": [patch, {}, None]}
    nonsense = ["unicode", "surrogate", "bad-utf8", "other from-the-future", "garbage 3"]
    nonsense += [f"update {json.dumps(one)}" for one in (orphan, broken, call)]
    prompt = "\n".join([*nonsense, "echo and that was all"])
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt}).raise_for_status()
    tab = tabs.tab(app, f"#/s/{session_id}")
    for _ in range(2):
        tab.see(tab.page.locator(".text-entry").get_by_text("and that was all"))
        look(tab)
        expect(tab.page.get_by_text("Something here cannot be shown")).to_have_count(0)
        tab.page.reload()
