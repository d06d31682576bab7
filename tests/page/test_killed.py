"""`kill -9` under something that a person does: it happened whole or not at all, and can be done again."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Route, expect

from tests.api.harness import App, Server, until
from tests.needs import needs
from tests.page.kit import Tab, Tabs, restart

pytestmark = needs("chromium")
Start = Callable[..., Server]
TabsOf = Callable[[Server], Tabs]


@dataclass
class Scene:
    """A server that dies once under the next request to a path: before it arrives, or before its answer."""

    server: Server
    app: App
    tab: Tab

    def kill_at(self, path: str, *, arrives: bool) -> None:
        def handle(route: Route) -> None:
            if route.request.method != "POST":
                route.fallback()
                return
            if arrives:
                route.fetch()
            self.server.stop(signal.SIGKILL)
            route.abort("connectionreset")
            self.tab.context.unroute(path)

        self.tab.context.route(path, handle)

    def lost(self) -> None:
        """The page says that the server is gone; then it is there again."""
        expect(self.tab.page.locator(".notice.bad").last).to_contain_text("cannot be reached")
        for notice in self.tab.page.locator(".notice button").all():
            notice.click()
        self.app = restart(self.server, self.app)
        expect(self.tab.page.locator(".status")).to_have_attribute("data-state", "live")

    def prompts(self, session_id: str) -> list[str]:
        found = self.app.http.get(f"/sessions/{session_id}/messages").json()["messages"]
        return [message["content"] for message in found if message["role"] == "user"]


def open_scene(start: Start, tabs_of: TabsOf) -> tuple[Scene, str]:
    server = start()
    app = server.app()
    session_id = app.session()
    app.turn(session_id, "echo one")
    app.turn(session_id, "echo two")
    tab = tabs_of(server).tab(app, f"#/s/{session_id}")
    tab.see(tab.page.locator(".text-entry").get_by_text("two"))
    return Scene(server, app, tab), session_id


def undo(tab: Tab) -> None:
    tab.get("button", "Undo", exact=True).last.click()
    tab.get("dialog").get_by_role("button", name="Undo", exact=True).click()


def test_killed_during_an_undo(start: Start, tabs_of: TabsOf) -> None:
    """What the page shows afterwards is what the server has, whether the undo arrived or not."""
    scene, session_id = open_scene(start, tabs_of)
    tab = scene.tab
    scene.kill_at("**/undo", arrives=False)
    undo(tab)
    scene.lost()
    assert scene.prompts(session_id) == ["echo one", "echo two"]
    tab.see(tab.page.locator(".text-entry").get_by_text("two"))
    scene.kill_at("**/undo", arrives=True)
    undo(tab)
    scene.lost()
    tab.gone(tab.page.locator(".text-entry").get_by_text("two"))
    assert scene.prompts(session_id) == ["echo one"]


def test_killed_during_an_upload_and_a_prompt(start: Start, tabs_of: TabsOf, tmp_path: Path) -> None:
    """A file that did not arrive is named and may be sent again; a prompt whose answer was lost runs once."""
    scene, session_id = open_scene(start, tabs_of)
    tab = scene.tab
    file = tmp_path / "notes.txt"
    file.write_text("words")
    prompt = tab.page.get_by_label("Prompt", exact=True)
    prompt.fill("echo with a file")
    scene.kill_at("**/files", arrives=False)
    tab.page.locator("input[type=file]").set_input_files(file)
    scene.lost()
    expect(tab.page.locator(".attached")).to_have_count(0)
    tab.page.locator("input[type=file]").set_input_files(file)
    expect(tab.page.locator(".attached")).to_contain_text("notes.txt")
    tab.gone(tab.page.get_by_text("sending …"))
    scene.kill_at(f"**/{session_id}/turns", arrives=True)
    prompt.press("Enter")
    scene.lost()
    expect(prompt).to_have_value("echo with a file")
    prompt.press("Enter")
    expect(prompt).to_have_value("")
    until(lambda: scene.prompts(session_id).count("echo with a file") == 1, "the prompt")
    turns = scene.app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
    assert [turn["prompt"] for turn in turns] == ["echo one", "echo two", "echo with a file"]


def test_killed_while_a_prompt_was_queued(start: Start, tabs_of: TabsOf) -> None:
    """The turn that ran is interrupted, the one that waited runs, and the page shows both."""
    scene, session_id = open_scene(start, tabs_of)
    tab = scene.tab
    for words in ("echo three\nsleep 60", "echo four"):
        scene.app.http.post(f"/sessions/{session_id}/turns", json={"prompt": words}).raise_for_status()
    expect(tab.page.get_by_role("region", name="Queue")).to_contain_text("echo four")
    tab.see(tab.page.locator(".text-entry").get_by_text("three"))
    scene.server.stop(signal.SIGKILL)
    restart(scene.server, scene.app)
    tab.see(tab.page.get_by_text("Interrupted:").first)
    tab.see(tab.page.locator(".text-entry").get_by_text("four"))
    expect(tab.page.get_by_role("region", name="Queue")).to_have_count(0)
