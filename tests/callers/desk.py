"""A server, a front end beside it, and browsers on both: what every journey works with."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, WebError, expect

from tests.api.harness import Server
from tests.callers.beside import PREFIX, served
from tests.callers.front_end import FrontEnd
from tests.page.kit import WAIT_MS, wait_until

SETTINGS: Final = {"CLAWDFORGE_HERMES_PREFIX": PREFIX, "CLAWDFORGE_DEFAULT_AGENT": "claude"}
"""`claude` is the scripted agent in these tests: what a prompt says is what it does."""

ANSWERED: Final = "Failed to load resource: the server responded with a status of "
LOADED: Final = "S._bootReady === true"
NOT_LOADING: Final = (
    "(typeof _loadingSessionId === 'undefined' || !_loadingSessionId)"
    " && (typeof _activeSessionExternalRefreshInFlight === 'undefined'"
    " || !_activeSessionExternalRefreshInFlight)"
)
LISTED: Final = (
    "_allSessions.some(s => s.session_id === S.session.session_id && s.message_count === S.messages.length)"
)


@dataclass
class Tab:
    """One page of the front end. What it says to the console about itself or our server is kept."""

    version: str
    page: Page
    url: str

    def open(self, path: str = "/") -> "Tab":
        self.page.goto(self.url + path)
        self.until(LOADED)
        return self

    def reload(self) -> "Tab":
        self.page.reload()
        self.until(LOADED)
        return self

    def until(self, script: str) -> None:
        """Wait for an expression of the page to become true."""
        wait_until(self.page, lambda: self._is_true(script), script)

    def find(self, selector: str, has_text: str | None = None) -> Locator:
        return self.page.locator(selector, has_text=has_text)

    def say(self, text: str) -> None:
        """Type a message and send it, as a person does."""
        self.page.fill("#msg", text)
        self.page.press("#msg", "Enter")

    def see(self, text: str) -> None:
        """Wait for text among the messages."""
        expect(self.page.locator("#msgInner")).to_contain_text(text, timeout=WAIT_MS)

    def ask(self, text: str, answer: str) -> None:
        """Say something, and wait until the answer is whole."""
        self.say(text)
        self.see(answer)
        self.rest()

    def rest(self) -> None:
        """Wait until nothing runs in the session that is shown, and the page does not load it anew."""
        self.until(f"!S.busy && !S.activeStreamId && !!S.session && {NOT_LOADING}")

    @property
    def session_id(self) -> str:
        return str(self.page.evaluate("S.session && S.session.session_id"))

    @property
    def rows(self) -> list[str]:
        """The session's messages as the page has them."""
        return list(self.page.evaluate("S.messages.map(row => row.role + ': ' + msgContent(row))"))

    @property
    def answers(self) -> list[str]:
        own = "S.messages.filter(row => row.role === 'assistant').map(row => msgContent(row).trim())"
        return list(self.page.evaluate(own))

    def revision(self) -> float:
        """When the session last changed, as the page knows it."""
        return float(self.page.evaluate("S.session.updated_at"))

    def command(self, text: str) -> None:
        """A command of the page itself, such as /undo."""
        self.page.fill("#msg", text)
        self.page.locator("#btnSend").click()

    def press(self, title: str) -> None:
        """Press the last of the buttons at the messages that are shown on hover."""
        self.page.locator(f'#msgInner [title="{title}"]').last.dispatch_event("click")

    def edit(self, text: str) -> None:
        """Put other words into the last prompt; press again if the page has drawn its messages anew."""
        field = self.page.locator(".msg-edit-area")

        def opened() -> bool:
            if not field.count():
                self.press("Edit message")
            return bool(field.count())

        wait_until(self.page, opened, "a prompt to edit")
        field.fill(text)

    def rename(self, title: str) -> None:
        """Give the session that is shown another title, in the list.

        That must know of the last answer: a list that was asked for before would bring the old title back.
        """
        self.until(LISTED)
        row = self.page.locator("#sessionList .session-item.active").first
        row.hover()
        if self.version == "April":
            row.locator(".session-title").dblclick()
        else:
            row.locator(".session-actions-trigger").click()
            self.page.locator(".session-action-menu .session-action-opt", has_text="Rename").first.click()
        field = self.page.locator(".session-title-input")
        field.fill(title)
        field.press("Enter")
        expect(self.row(title)).to_be_visible()

    def row(self, title: str) -> Locator:
        """A session's row in the list at the side."""
        return self.page.locator("#sessionList .session-item", has_text=title).first

    def menu(self, title: str, entry: str) -> None:
        """Choose an entry of a session's menu."""
        row = self.row(title)
        row.hover()
        row.locator(".session-actions-trigger").click()
        self.page.locator(
            ".session-action-menu .session-action-opt", has_text=re.compile(entry)
        ).first.click()

    def _is_true(self, script: str) -> bool:
        safe = f"() => {{ try {{ return !!({script}) }} catch (_) {{ return false }} }}"
        return bool(self.page.evaluate(safe))


@dataclass
class Desk:
    """One version of the front end on one server. A journey opens tabs and may kill the server."""

    version: str
    server: Server
    url: str
    browser: Browser
    folder: Path
    contexts: list[BrowserContext] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def tab(self, beside: Tab | None = None) -> Tab:
        """A browser of somebody new, or a second tab of the same person."""
        context = beside.page.context if beside else self._person()
        page = context.new_page()
        page.set_default_timeout(WAIT_MS)
        return Tab(self.version, page, self.url)

    def close(self) -> None:
        for context in self.contexts:
            context.close()
        self.contexts.clear()
        self.said.clear()

    def _person(self) -> BrowserContext:
        context = self.browser.new_context(
            viewport={"width": 1400, "height": 900}, reduced_motion="reduce", service_workers="block"
        )
        context.set_default_timeout(WAIT_MS)
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        self.contexts.append(context)
        return context

    def _on_console(self, message: ConsoleMessage) -> None:
        """Its page asks other hosts for fonts and a highlighter. They are not reached, and not our fault."""
        address = str(message.location.get("url", ""))
        if message.type == "error" and address.startswith(self.url):
            self.said.append(f"{message.text.removeprefix(ANSWERED)} {address.removeprefix(self.url)}")

    def _on_error(self, error: WebError) -> None:
        self.said.append(f"page error: {error.error}")


@contextmanager
def set_up(
    front_end: FrontEnd, browser: Browser, folder: Path, *flags: str, **settings: str
) -> Iterator[Desk]:
    """A desk for one version: the server trusts this machine, unless `flags` say otherwise."""
    server = Server(folder / "data", {**SETTINGS, **settings}, *flags)
    try:
        with served(front_end, _where(server)) as url:
            desk = Desk(front_end.version, server, url, browser, folder)
            try:
                yield desk
            finally:
                desk.close()
    finally:
        server.stop()


def _where(server: Server) -> Callable[[], str]:
    return lambda: server.url
