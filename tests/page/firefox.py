"""The page in Firefox: log in, list, a streamed turn, a permission, an undo. Errors in the console fail.

    .venv/bin/python -m tests.page.firefox

Speaks WebDriver BiDi with the Firefox of the machine; ends with 3 where there is none.
"""

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from websockets.sync.client import ClientConnection, connect

from tests.api.harness import App, Server, until

LISTENING: Final = re.compile(r"BiDi listening on (ws://\S+)")
NOWHERE: Final = {
    "network.proxy.type": 1,  # nobody but this machine is reached
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.no_proxies_on": "127.0.0.1",
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
}
SECONDS: Final = 60.0
TELL: Final = "[...document.querySelectorAll('.text-entry')].map(one => one.textContent).join(' ')"


class Firefox:
    """One tab; what its console complains of is kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.complaints: list[str] = []
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self._tab = self.ask("browsingContext.create", type="tab")["context"]

    def ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=SECONDS))
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.complaints.append(str(message["params"]["text"]))
            if message.get("id") == number:
                assert message["type"] == "success", message
                return message["result"]

    def open(self, url: str) -> None:
        self.ask("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def run(self, script: str) -> Any:
        target = {"context": self._tab}
        found = self.ask("script.evaluate", expression=script, target=target, awaitPromise=True)
        assert found["type"] == "success", found
        return found["result"].get("value")

    def until(self, script: str) -> None:
        end = time.monotonic() + SECONDS
        while not self.run(script):
            assert time.monotonic() < end, f"{script}: {self.run('document.body.innerText')}"
            time.sleep(0.1)

    def click(self, selector: str, words: str = "") -> None:
        one = f"[...document.querySelectorAll({json.dumps(selector)})].find(one => !one.disabled && "
        one += f"(one.ariaLabel || one.textContent).includes({json.dumps(words)}))"
        self.until(f"!!({one})")
        self.run(f"void ({one}).click()")

    def type(self, selector: str, words: str) -> None:
        self.until(f"!!document.querySelector({json.dumps(selector)})")
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        keys = [{"type": kind, "value": key} for key in words for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keys", "actions": keys}]
        self.ask("input.performActions", context=self._tab, actions=actions)


@contextmanager
def launched(program: str) -> Iterator[Firefox]:
    with tempfile.TemporaryDirectory(prefix="clawdforge-firefox-") as folder:
        prefs = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in NOWHERE.items()]
        (Path(folder) / "user.js").write_text("".join(prefs))
        log = Path(folder) / "log"
        command = [program, "--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", folder]
        with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
            try:
                address = until(lambda: LISTENING.search(log.read_text()), "Firefox listens", SECONDS)[1]
                with connect(f"{address}/session", max_size=None) as socket:
                    yield Firefox(socket)
            finally:
                process.terminate()
                process.wait(timeout=30)


def walk(browser: Firefox, server: Server, app: App) -> None:
    session_id = app.session(title="Of foxes", permission_mode="ask")
    browser.open(f"{server.url}/ui/")
    browser.type("input[name=token]", f"{app.token}\ue007")
    browser.until("document.querySelector('[data-session]')?.textContent.includes('Of foxes')")
    say("logs in, and lists the session")
    browser.click("[data-session] a", "Of foxes")
    browser.until("!!document.querySelector('.beginning')")
    browser.type("textarea", "chunks 40 8 5\ue007")
    browser.until(f"/\\b40\\b/.test({TELL})")
    browser.until("document.querySelector('.status').dataset.state === 'live'")
    say("streams an answer")
    browser.type("textarea", "ask to go on\ue007")
    browser.click(".permission.open .button.main")
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["activity"] == "idle", "the decision")
    say("decides a permission")
    browser.click(".end.last button", "Undo")
    browser.click("dialog .button.main", "Undo")
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["message_count"] == 2, "the undo")
    say("takes a turn back")


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main() -> int:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        say("Firefox is not installed: not tried")
        return 3
    with tempfile.TemporaryDirectory(prefix="clawdforge-page-") as folder:
        server = Server(Path(folder) / "data")
        try:
            with launched(program) as browser:
                walk(browser, server, server.app())
        finally:
            server.stop()
    for complaint in browser.complaints:
        say(f"the console: {complaint}")
    return bool(browser.complaints)


if __name__ == "__main__":
    sys.exit(main())
