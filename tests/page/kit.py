"""Tabs of a real browser on a real server: opened, logged in, and watched for what must not happen."""

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final, Literal

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Playwright,
    Request,
    Route,
    WebError,
    expect,
)

from tests.api.harness import ADMIN_TOKEN, App, Server

WAIT_MS: Final = 40_000
"""How long a condition may take on a machine that does much else."""

DESKTOP: Final = (1400, 900)
TABLET: Final = (900, 800)
PHONE: Final = (360, 740)
Scheme = Literal["light", "dark"]

ARGUMENTS: Final = (
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nobody is reached by name
)
RESPONSE: Final = re.compile(r"^Failed to load resource: ")
"""The browser's own word about a refused or lost request. The page has to deal with those, so they are no
error of its own; but every file of the page has to be there."""

GONE: Final = "net::ERR_"
"""Said when a test takes the server away from a page that is still loading; a missing file is a 404."""

CUT: Final = 'responded with a MIME type of "".'
"""Said of a file whose headers were cut off on their way; the server sends none without its kind."""

expect.set_options(timeout=WAIT_MS)

FIRED: Final = "window.__fired"
"""What a payload of ours sets if a browser runs it."""


@dataclass
class Watch:
    """What went wrong in a browser context: a test with one finding fails."""

    origin: str
    found: list[str] = field(default_factory=list)

    def attend(self, context: BrowserContext) -> None:
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)
        context.on("dialog", self._on_dialog)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning", "assert"):
            return
        address = str(message.location.get("url", ""))
        is_there = "/ui/" not in address or GONE in message.text
        if (RESPONSE.match(message.text) and is_there) or CUT in message.text:
            return
        self.found.append(f"console {message.type}: {message.text} ({address})")

    def _on_error(self, error: WebError) -> None:
        self.found.append(f"page error: {error.error}")

    def _on_dialog(self, dialog: Dialog) -> None:
        self.found.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.origin}/", "data:", "blob:", "about:")):
            self.found.append(f"request to the outside: {request.url}")


def wait_until(page: Page, found: Callable[[], object], what: str) -> None:
    """Wait for a condition outside the page, for a bounded time, while the browser's events come in."""
    end = time.monotonic() + WAIT_MS / 1000
    while not found():
        assert time.monotonic() < end, f"{what} did not happen"
        page.wait_for_timeout(20)


def restart(server: Server, app: App) -> App:
    """The same port, the same data, the same token."""
    port = server.url.rsplit(":", 1)[1]
    server._flags = (*server._flags, "--port", port)
    server.start()
    return App(app.name, app.token, app.token_id, server.client(app.token))


def _drop_reads(route: Route) -> None:
    if route.request.method == "GET":
        route.abort()
    else:
        route.continue_()


class Tab:
    """One page with its context; `page` is Playwright's own."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.context = context
        self.server = server
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT_MS)
        self._asked: set[Request] = set()
        self._streams: set[Request] = set()
        self.page.on("request", self._on_request)
        self.page.on("requestfinished", self._on_answer)
        self.page.on("requestfailed", self._on_answer)

    def _on_request(self, request: Request) -> None:
        """A stream has no end that anybody could wait for."""
        is_stream = "text/event-stream" in request.headers.get("accept", "")
        (self._streams if is_stream else self._asked).add(request)

    def _on_answer(self, request: Request) -> None:
        self._asked.discard(request)
        self._streams.discard(request)

    def open(self, where: str = "") -> "Tab":
        """`open("#/session/ID")`; the shell is there when this returns."""
        self.page.goto(f"{self.server.url}/ui/{where}")
        expect(self.page.locator("#app > *").first).to_be_visible()
        return self

    def go(self, fragment: str) -> "Tab":
        """Another screen of the same page, as a link would."""
        self.page.evaluate("fragment => { location.hash = fragment }", fragment)
        return self

    def settle(self) -> "Tab":
        """Everything that the screen asked for is there, and was painted; a turn may go on meanwhile."""
        painted = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
        busy = "document.querySelector('#app [aria-busy=true]:not([role=log])') !== null"

        def is_settled() -> bool:
            if self._asked or self.page.evaluate(busy):
                return False
            self.page.evaluate(painted)
            self.page.evaluate(painted)
            return not self._asked and not self.page.evaluate(busy)

        wait_until(self.page, is_settled, "everything that the screen asked for")
        return self

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """The page learns nothing by itself meanwhile, as if it were hidden; what a person does arrives."""
        self.settle()  # what it has asked for already would still be answered
        told = re.compile(r"/(events|sessions\?|permissions\?|sessions/[^/]+$)")
        self.context.route(told, _drop_reads)
        hide = "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        hide += " document.dispatchEvent(new Event('visibilitychange')) }"
        self.page.evaluate(hide, True)
        wait_until(self.page, lambda: not self._streams, "the end of its streams")
        yield
        self.context.unroute(told)
        self.page.evaluate(hide, False)

    def get(self, role: Any, name: str | re.Pattern[str] | None = None, *, exact: bool = False) -> Locator:
        if name is None:
            return self.page.get_by_role(role)
        return self.page.get_by_role(role, name=name, exact=exact)

    def see(self, what: Locator | str) -> Locator:
        found = self.page.get_by_text(what).first if isinstance(what, str) else what
        expect(found).to_be_visible()
        return found

    def gone(self, what: Locator) -> None:
        expect(what).to_have_count(0)

    def until(self, script: str, argument: Any = None) -> None:
        """Wait for an expression to become true. (Playwright's own way needs `eval` in the page.)"""
        wait_until(self.page, lambda: self.page.evaluate(script, argument), script)

    def axe(self) -> list[str]:
        """What axe finds on the screen as it is."""
        self.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
        found = self.page.evaluate("axe.run().then(found => found.violations)")
        return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"][:3]]

    def excess(self) -> int:
        """How many pixels stick out to the right."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def check_nothing_fired(self) -> None:
        assert self.page.evaluate(f"{FIRED} === undefined"), "a payload ran"


class Tabs:
    """The contexts of one test. Each is a browser of its own: other cookies, other storage."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self._browser = browser
        self.server = server
        self._contexts: list[BrowserContext] = []
        self.watches: list[Watch] = []

    def person(
        self,
        app: App | None,
        *,
        size: tuple[int, int] = DESKTOP,
        scheme: Scheme = "light",
        operator: bool = False,
        **options: Any,
    ) -> BrowserContext:
        """A browser of somebody who has logged in to `app`, or of nobody."""
        width, height = size
        options.setdefault("reduced_motion", "reduce")
        if size == PHONE:
            options |= {"has_touch": True, "is_mobile": True}
        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            base_url=self.server.url,
            **options,
        )
        context.set_default_timeout(WAIT_MS)
        self._contexts.append(context)
        watch = Watch(self.server.url)
        watch.attend(context)
        self.watches.append(watch)
        if app is not None:
            self.log_in(context, app.token)
        if operator:
            self.log_in(context, ADMIN_TOKEN)
        return context

    def log_in(self, context: BrowserContext, token: str) -> None:
        reply = context.request.post(
            f"{self.server.url}/login", data={"token": token}, headers={"Sec-Fetch-Site": "same-origin"}
        )
        assert reply.ok, reply.text()

    def tab(self, app: App | None, where: str = "", **options: Any) -> Tab:
        return Tab(self.person(app, **options), self.server).open(where)

    def another(self, tab: Tab, where: str = "") -> Tab:
        """A second tab of the same person."""
        return Tab(tab.context, self.server).open(where)

    def close(self) -> None:
        for context in self._contexts:
            context.close()

    def findings(self) -> list[str]:
        return [finding for watch in self.watches for finding in watch.found]


@contextmanager
def launched(playwright: Playwright) -> Iterator[Browser]:
    """Debian's chromium, found on the PATH; Playwright brings none."""
    browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
    try:
        yield browser
    finally:
        browser.close()
