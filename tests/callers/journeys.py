"""What a person does with the page of hermes-webui, step by step; each journey is one function.

They click and type. Where a button is shown on hover only, or in a panel that is closed, its click is sent.
"""

import json
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.callers.desk import Desk
from tests.page.kit import wait_until

Walk = Callable[[Desk], None]
COUNTED: Final = "turn={}"
"""What the agent says to `count`: how many prompts it remembers. So an answer also tells of its memory."""


@dataclass(frozen=True)
class Journey:
    walk: Walk
    trusts: bool = True
    kills: bool = False

    @property
    def name(self) -> str:
        return self.walk.__name__.replace("_", " ")


def load(desk: Desk) -> None:
    tab = desk.tab().open()
    expect(tab.find("#msg")).to_be_visible()


def list_and_new_chat_twice(desk: Desk) -> None:
    tab = desk.tab().open()
    seen: set[str] = set()
    for number in range(3):
        if number:
            tab.find("#btnNewChat").click()
            tab.until(f"!S.session || !{json.dumps(sorted(seen))}.includes(S.session.session_id)")
        tab.ask("count", COUNTED.format(1))
        tab.rename(f"chat {number} of {desk.version}")
        seen.add(tab.session_id)
    assert len(seen) == 3
    for number in range(3):
        expect(tab.row(f"chat {number} of {desk.version}")).to_be_visible()


def stream(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.say("think let me see\ntool grep\nchunks 300 1 5")
    tab.see("299 300")
    tab.rest()
    assert tab.answers[-1].split() == [str(number) for number in range(1, 301)]
    assert len(tab.rows) == 2


def stop(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.say("chunks 5\nhang")
    tab.see("4 5")
    tab.until("!!S.activeStreamId")
    tab.find("#btnCancel" if desk.version == "April" else "#btnSend").click()
    tab.rest()
    tab.reload()
    tab.see("4 5")


def reload_and_second_tab(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.say("chunks 300 1 20")
    tab.see("9 10")
    other = desk.tab(beside=tab).open(urlsplit(tab.page.url).path)
    tab.reload()
    for one in (tab, other):
        one.see("299 300")
        one.rest()
        assert one.answers[-1].split() == [str(number) for number in range(1, 301)]
        assert len(one.rows) == 2


def crash_in_mid_answer(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.say("chunks 2000 1 50")
    tab.see("9 10")
    desk.server.stop(signal.SIGKILL)
    desk.server.start()
    tab.reload()
    tab.see("chunks 2000 1 50")
    tab.see("9 10")
    tab.rest()
    tab.ask("count", COUNTED.format(2))


def retry_and_undo(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.ask("count", COUNTED.format(1))
    tab.ask("count", COUNTED.format(2))
    before = tab.revision()
    tab.command("/retry")
    tab.until(f"S.session.updated_at > {before} && S.messages.length === 4")
    tab.rest()
    assert tab.answers == [COUNTED.format(1), COUNTED.format(2)]
    tab.command("/undo")
    tab.until("S.messages.length === 2 && !S.busy")
    tab.ask("count", COUNTED.format(2))


def regenerate(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.ask("count", COUNTED.format(1))
    tab.ask("count", COUNTED.format(2))
    before = tab.revision()
    tab.press("Regenerate response")
    tab.until(f"S.session.updated_at > {before} && S.messages.length === 4")
    tab.rest()
    tab.reload()
    assert tab.rows == ["user: count", "assistant: turn=1", "user: count", "assistant: turn=2"]


def edit(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.ask("count", COUNTED.format(1))
    tab.ask("echo old", "old")
    tab.edit("count")
    tab.find(".msg-edit-send").dispatch_event("click")
    tab.see(COUNTED.format(2))
    tab.rest()
    assert tab.rows == ["user: count", "assistant: turn=1", "user: count", "assistant: turn=2"]


def rename_pin_archive_delete(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.ask("count", COUNTED.format(1))
    name = f"kept {desk.version}"
    tab.rename(name)
    tab.menu(name, "^Pin")
    tab.until(f"_allSessions.find(s => s.session_id === {json.dumps(tab.session_id)}).pinned")
    tab.menu(name, "^Archive")
    expect(tab.row(name)).to_have_count(0)
    tab.reload()
    tab.until(f"_allSessions.some(s => s.archived && s.title === {json.dumps(name)})")
    before = tab.session_id
    tab.find("#btnNewChat").click()
    tab.until(f"!S.session || S.session.session_id !== {json.dumps(before)}")
    tab.ask("count", COUNTED.format(1))
    gone = f"gone {desk.version}"
    tab.rename(gone)
    tab.menu(gone, "^Delete")
    tab.find("#appDialogConfirm").click()
    expect(tab.row(gone)).to_have_count(0)
    tab.reload()
    expect(tab.row(gone)).to_have_count(0)


def search(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.ask("echo xylophone\ncount", COUNTED.format(1))
    tab.rename("a plain title")
    tab.find("#sessionSearch").fill("xylophone")
    expect(tab.row("a plain title")).to_be_visible()
    tab.find("#sessionSearch").fill("nothing has this")
    expect(tab.row("a plain title")).to_have_count(0)


def duplicate(desk: Desk) -> None:
    """The page of April makes an empty chat beside; that of August copies what was said."""
    tab = desk.tab().open()
    tab.ask("count", COUNTED.format(1))
    tab.rename("original")
    before = tab.session_id
    tab.menu("original", "^Duplicate")
    tab.until(f"S.session && S.session.session_id !== {json.dumps(before)}")
    expect(tab.row("original (copy)")).to_be_visible()
    tab.ask("count", COUNTED.format(1 if desk.version == "April" else 2))


def export_and_import(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.ask("count", COUNTED.format(1))
    before = tab.session_id
    with tab.page.expect_download() as download:
        tab.find("#btnExportJSON").dispatch_event("click")
    file = desk.folder / "export.json"
    download.value.save_as(file)
    tab.find("#importFileInput").set_input_files(file)
    tab.until(f"S.session && S.session.session_id !== {json.dumps(before)} && S.messages.length === 2")
    assert tab.rows == ["user: count", "assistant: turn=1"]
    tab.ask("count", COUNTED.format(1))  # with this prompt it is told what was said before
    tab.say("recall all")
    tab.until("S.messages.length === 6 && !S.busy")
    assert "Assistant: turn=1" in tab.answers[-1], "the agent was told what had been said"
    if desk.version == "August":
        with tab.page.expect_download() as download:
            tab.find("#btnExportHTML").dispatch_event("click")
        download.value.save_as(desk.folder / "export.html")
        assert "<pre>turn=1</pre>" in (desk.folder / "export.html").read_text()


def approve_and_deny(desk: Desk) -> None:
    """The page cannot say that a session asks, so the session is made for it and then opened.

    Something has to be said in it first: the newer page does not come back to an empty one.
    """
    tab = desk.tab().open()
    made = tab.page.evaluate(
        """async () => {
            const made = await api('/api/session/new', {method: 'POST', body: '{"permission_mode": "ask"}'})
            const id = made.session.session_id
            localStorage.setItem('hermes-webui-session', id)
            const said = JSON.stringify({session_id: id, message: 'count'})
            await api('/api/chat/start', {method: 'POST', body: said})
            return id
        }"""
    )
    running = f"async () => (await api('/api/session/status?session_id={made}')).agent_running"
    wait_until(tab.page, lambda: not tab.page.evaluate(running), "the end of the first turn")
    tab.open("/" if desk.version == "April" else f"/session/{made}")
    tab.until(f"S.session && S.session.session_id === {json.dumps(made)}")
    for button, chosen in (("#approvalBtnOnce", "allow_once"), ("#approvalBtnDeny", "reject_once")):
        tab.say(f"ask rm -rf {chosen}")
        expect(tab.find("#approvalCard")).to_have_class(re.compile("visible"))
        tab.find(button).click()
        tab.see(f"permission: {chosen}")
        tab.rest()


def attach(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.ask("count", COUNTED.format(1))
    file = Path(desk.folder / "notes.txt")
    file.write_text("what the file says")
    tab.find("#fileInput").set_input_files(file)
    tab.say("echo have a look")
    tab.until("S.messages.filter(row => row.role === 'assistant').length === 2 && !S.busy")
    tab.say("recall")
    tab.until("S.messages.filter(row => row.role === 'assistant').length === 3 && !S.busy")
    paths = set(re.findall(r"/[\w./-]*/notes-ff_[\w-]{8}\.txt", tab.answers[-1]))
    assert len(paths) == 1, tab.answers[-1]
    tab.ask(f"read {paths.pop()}", "what the file says")


def send_while_busy(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.say("chunks 3\nsleep 3\necho done")
    tab.see("2 3")
    tab.say("count")
    tab.until("S.messages.filter(row => row.role === 'assistant').length === 2 && !S.busy")
    assert tab.answers[-1] == COUNTED.format(2)


def model_picker(desk: Desk) -> None:
    """Whatever the picker says, the agent remembers; and the page shows what is used.

    The page lists models of its own until it has heard of those that the server knows.
    """
    tab = desk.tab().open()
    tab.page.evaluate("api('/api/session/new', {method: 'POST', body: '{\"model\": \"m1\"}'})")
    tab.reload()
    tab.ask("count", COUNTED.format(1))
    tab.until("[...$('modelSelect').options].map(one => one.value).sort().join() === 'default,m1'")
    tab.find("#composerModelChip").click()
    tab.find("#composerModelDropdown .model-opt:not(.active)", has_text="m1").first.click()
    tab.until("S.session.model === 'm1'")
    tab.ask("count", COUNTED.format(2))
    tab.reload()
    tab.until("S.session.model === 'm1' && $('modelSelect').value === 'm1'")
    tab.ask("count", COUNTED.format(3))


def failed_agent(desk: Desk) -> None:
    tab = desk.tab().open()
    tab.say("error the model is on fire")
    tab.until("S.messages.some(row => row.role === 'assistant' && msgContent(row).includes('on fire'))")
    tab.until("!S.busy")
    tab.reload()
    tab.until("S.messages.some(row => row.role === 'assistant' && msgContent(row).includes('on fire'))")
    tab.say("count")
    tab.until("S.messages.some(row => row.role === 'assistant' && msgContent(row).includes('turn='))")


def login(desk: Desk) -> None:
    """Without `--trust-loopback`: a token is the password."""
    app = desk.server.app()
    tab = desk.tab()
    tab.page.goto(f"{tab.url}/login")
    tab.find("#pw").fill("wrong")
    tab.find("#pw").press("Enter")
    expect(tab.find("#err")).to_be_visible()
    desk.said.clear()  # the browser's word about the wrong password
    tab.find("#pw").fill(app.token)
    tab.find("#pw").press("Enter")
    tab.page.wait_for_url(re.compile(r"/(session/.*)?$"))
    tab.until("S._bootReady === true")
    tab.ask("count", COUNTED.format(1))


def check_quiet(desk: Desk, journey: Journey) -> None:
    """Nothing was said to the console about the page itself or our server."""
    lost = re.compile(r"net::ERR_|Failed to fetch") if journey.kills else re.compile(r"(?!)")
    heard = sorted({line for line in desk.said if not lost.search(line)})
    assert not heard, "the console heard: " + "; ".join(heard)


JOURNEYS: Final = (
    Journey(load),
    Journey(list_and_new_chat_twice),
    Journey(stream),
    Journey(stop),
    Journey(reload_and_second_tab),
    Journey(crash_in_mid_answer, kills=True),
    Journey(retry_and_undo),
    Journey(regenerate),
    Journey(edit),
    Journey(rename_pin_archive_delete),
    Journey(search),
    Journey(duplicate),
    Journey(export_and_import),
    Journey(approve_and_deny),
    Journey(attach),
    Journey(send_while_busy),
    Journey(model_picker),
    Journey(failed_agent),
    Journey(login, trusts=False),
)
