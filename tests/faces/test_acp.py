"""An editor over ACP: durable sessions, shared with everybody else who may use them."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate

from clawdforge.wire.local import LOCK_FILE
from tests.api.harness import App, Server, until
from tests.faces.kit import Json, RawEditor, editing

pytestmark = pytest.mark.slow


class OfficialClient:
    """What the official package calls; whatever is asked gets the first answer."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[str | None] = []

    def on_connect(self, conn: Any) -> None:
        """Nothing is to be said first."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        assert session_id
        self.updates.append(update)

    async def request_permission(
        self, options: list[PermissionOption], session_id: str, tool_call: ToolCallUpdate, **_: Any
    ) -> RequestPermissionResponse:
        assert session_id
        self.asked.append(tool_call.title)
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        )

    def text(self, word: str = "agent_message_chunk") -> str:
        return "".join(u.content.text for u in self.updates if u.session_update == word)

    def forget(self) -> None:
        self.updates.clear()
        self.asked.clear()


async def test_the_official_client_talks_lists_loads_forks_and_deletes(
    env: dict[str, str], project: Path, local: App
) -> None:
    client: Any = OfficialClient()
    command = (sys.executable, "-m", "clawdforge", "acp")
    quiet = {"stderr": asyncio.subprocess.DEVNULL}
    async with spawn_agent_process(client, *command, env=env, transport_kwargs=quiet) as (conn, _):
        introduced = await conn.initialize(protocol_version=1)
        assert introduced.protocol_version == 1
        assert introduced.agent_capabilities is not None
        assert introduced.agent_capabilities.load_session
        made = await conn.new_session(cwd=str(project))
        session = made.session_id
        assert made.modes is not None
        assert made.modes.current_mode_id == "ask"

        said = await conn.prompt(session_id=session, prompt=[text_block("echo hello\nask to go on")])
        assert said.stop_reason == "end_turn"
        assert client.text() == "hellopermission: allow_once"
        assert client.text("user_message_chunk") == "", "a live prompt was echoed"
        assert client.asked == ["to go on"]

        listed = await conn.list_sessions(cwd=str(project))
        assert [row.session_id for row in listed.sessions] == [session]

        client.forget()
        await conn.load_session(cwd=str(project), session_id=session)
        assert client.text("user_message_chunk") == "echo hello\nask to go on"
        assert client.text() == "hellopermission: allow_once"
        client.forget()
        await conn.resume_session(cwd=str(project), session_id=session)
        assert client.updates == []

        await conn.set_session_mode(session_id=session, mode_id="deny_all")
        options = await conn.set_config_option(session_id=session, config_id="model", value="scripted-2")
        assert options is not None
        assert [option.current_value for option in options.config_options] == ["claude", "scripted-2"]
        row = local.http.get(f"/sessions/{session}").json()
        assert (row["permission_mode"], row["model"], row["cwd"]) == ("deny_all", "scripted-2", str(project))
        await conn.prompt(session_id=session, prompt=[text_block("ask once more")])
        assert client.asked == []

        fork = await conn.fork_session(cwd=str(project), session_id=session)
        client.forget()
        await conn.prompt(session_id=fork.session_id, prompt=[text_block("recall")])
        known = json.loads(client.text())
        assert "ask once more" in known, "the fork does not know its past"
        assert "echo hello\nask to go on" in known, "with another model the agent forgot"

        await conn.close_session(session_id=session)
        assert local.http.get(f"/sessions/{session}").json()["state"] == "active"
        await conn._conn.send_request("session/delete", {"sessionId": session})
        assert local.http.get(f"/sessions/{session}").status_code == 404
        with pytest.raises(RequestError):
            await conn.load_session(cwd=str(project), session_id=session)


async def test_the_first_answer_counts_and_the_loser_is_told(
    env: dict[str, str], project: Path, local: App
) -> None:
    async with editing(env, project) as editor:
        await editor.initialize()
        session = await editor.new(project)
        running = await editor.prompt(session, "ask the page\nask the editor")
        question = await editor.asked()
        waiting = _waiting(local, session)
        path = f"/sessions/{session}/permissions/{waiting[0]['permission_id']}"
        assert local.http.post(path, json={"decision": "allow_once"}).status_code == 200
        withdrawn = await editor.until(lambda m: m.get("method") == "$/cancel_request")
        assert withdrawn["params"] == {"requestId": question["id"]}
        second = await editor.asked(2)
        assert "already" in editor.text("agent_thought_chunk")
        await editor.reply(question["id"], _choose(question, "reject"))  # too late, and does no harm
        still = _waiting(local, session)
        await editor.reply(second["id"], _choose(second, "allow"))
        assert (await editor.answer(running))["result"]["stopReason"] == "end_turn"
        path = f"/sessions/{session}/permissions/{still[0]['permission_id']}"
        assert local.http.post(path, json={"decision": "reject"}).status_code == 409
    assert editor.text().count("permission: allow_once") == 2


def _waiting(app: App, session: str) -> list[Json]:
    found: list[Json] = app.http.get(f"/sessions/{session}/permissions?state=pending").json()["permissions"]
    assert len(found) == 1
    return found


def _choose(question: Json, kind: str) -> Json:
    options = question["params"]["options"]
    chosen = next(o["optionId"] for o in options if o["kind"].startswith(kind))
    return {"outcome": {"outcome": "selected", "optionId": chosen}}


async def test_what_was_begun_elsewhere_is_picked_up_and_goes_on_without_an_editor(
    env: dict[str, str], project: Path, local: App
) -> None:
    session = local.session(cwd=str(project), permission_mode="ask")
    local.turn(session, "echo first")
    head = local.http.post(f"/sessions/{session}/turns", json={"prompt": "echo begun\nask to end\necho over"})
    assert head.status_code == 202
    until(lambda: local.http.get(f"/sessions/{session}").json()["pending_permissions"], "the question")
    async with editing(env, project) as editor:
        await editor.initialize()
        await editor.call("session/load", {"sessionId": session, "cwd": str(project), "mcpServers": []})
        assert editor.text("user_message_chunk") == "echo firstecho begun\nask to end\necho over"
        assert editor.text() == "firstbegun"
        question = await editor.asked()
        await editor.reply(question["id"], _choose(question, "allow"))
        await editor.until(lambda _: editor.text().endswith("over"))
        # Somebody else's next prompt is shown with its answer, once.
        local.turn(session, "echo from the page")
        await editor.until(lambda _: editor.text().endswith("from the page"))
        assert editor.text("user_message_chunk").endswith("overecho from the page")
        running = await editor.prompt(session, "echo mine\nask and wait")
        await editor.asked(2)
        assert not any(m.get("id") == running for m in editor.heard)
    # The editor is gone, and the turn waits for whoever answers.
    waiting = _waiting(local, session)
    path = f"/sessions/{session}/permissions/{waiting[0]['permission_id']}"
    assert local.http.post(path, json={"decision": "allow_once"}).status_code == 200
    until(lambda: local.http.get(f"/sessions/{session}").json()["activity"] == "idle", "the turn's end")
    turns = local.http.get(f"/sessions/{session}/turns").json()["turns"]
    assert [turn["outcome"] for turn in turns] == ["completed"] * 4


async def test_a_server_that_is_killed_in_mid_answer_is_found_again_and_the_turn_is_no_end(
    alone: dict[str, str], project: Path
) -> None:
    lock = Path(alone["CLAWDFORGE_DATA_DIR"]) / LOCK_FILE
    async with editing(alone, project) as editor:
        await editor.initialize()
        session = await editor.new(project)
        first = json.loads(lock.read_text())
        running = await editor.prompt(session, "echo half\nhang")
        await editor.until(lambda _: editor.text() == "half")
        os.kill(first["pid"], signal.SIGKILL)
        answer = await editor.answer(running)
        assert "result" not in answer
        assert answer["error"]["data"]["outcome"] == "interrupted"
        assert json.loads(lock.read_text())["pid"] != first["pid"]
        running = await editor.prompt(session, "echo next")
        assert (await editor.answer(running))["result"]["stopReason"] == "end_turn"
        assert editor.text() == "halfnext", "something was shown twice, or not at all"
        editor.heard.clear()
        await editor.call("session/load", {"sessionId": session, "cwd": str(project)})
        assert editor.text("user_message_chunk") == "echo half\nhangecho next"


async def test_a_cancel_stops_the_editors_own_turn_only(
    env: dict[str, str], project: Path, local: App
) -> None:
    session = local.session(cwd=str(project))
    async with editing(env, project) as editor:
        await editor.initialize()
        await editor.call("session/resume", {"sessionId": session, "cwd": str(project)})
        local.http.post(f"/sessions/{session}/turns", json={"prompt": "echo theirs\nsleep 30"})
        await editor.until(lambda _: editor.text() == "theirs")
        queued = await editor.prompt(session, "echo mine")
        await editor.notify("session/cancel", {"sessionId": session})
        assert (await editor.answer(queued))["result"]["stopReason"] == "cancelled"
        assert local.http.get(f"/sessions/{session}").json()["running_turn"] is not None
        local.http.post(f"/sessions/{session}/cancel")
        running = await editor.prompt(session, "echo mine\nsleep 30")
        await editor.until(lambda _: editor.text() == "theirsmine")
        await editor.notify("session/cancel", {"sessionId": session})
        assert (await editor.answer(running))["result"]["stopReason"] == "cancelled"
        await editor.notify("session/cancel", {"sessionId": session})  # after the end
        assert (await editor.answer(await editor.prompt(session, "echo on")))["result"][
            "stopReason"
        ] == "end_turn"


async def test_bad_input_is_refused_in_words_and_the_connection_goes_on(
    env: dict[str, str], project: Path, server: Server
) -> None:
    theirs = server.app().session()
    unknown = "00000000-0000-4000-8000-000000000000"
    mine = server.app()
    server.grant(mine, project)
    env = {**env, "CLAWDFORGE_URL": server.url, "CLAWDFORGE_TOKEN": mine.token}
    async with editing(env, project) as editor:
        code, words = await editor.refused("session/new", {"cwd": str(project)})
        assert (code, "initialize" in words) == (-32600, True)
        await editor.initialize()
        await _check_frames(editor)
        new = {"cwd": str(project), "mcpServers": []}
        stdio = {
            "name": "tools",
            "command": "/bin/true",
            "args": ["-x"],
            "env": [{"name": "A", "value": "b"}],
        }
        for changed, said in (
            ({"cwd": "relative"}, "absolute"),
            ({"cwd": None}, "absolute"),
            ({"cwd": str(project.parent)}, "outside of what this app may use"),
            ({"mcpServers": [stdio, stdio]}, "a name of its own"),
            ({"mcpServers": [{**stdio, "type": "sse"}]}, "neither"),
            ({"mcpServers": [{**stdio, "name": "NO NAME"}]}, "mcp_servers"),
            ({"additionalDirectories": ["/srv"]}, "one folder"),
        ):
            code, words = await editor.refused("session/new", {**new, **changed})
            assert (code, said in words) == (-32602, True), (changed, words)
        for method in ("load", "resume", "fork", "close", "delete", "prompt", "set_mode"):
            params = {"cwd": str(project), "prompt": [{"type": "text", "text": "x"}], "modeId": "ask"}
            found = [
                await editor.refused(f"session/{method}", {**params, "sessionId": name})
                for name in (theirs, unknown)
            ]
            assert found[0] == found[1], method
            assert found[0][0] == -32002, method
        session = (await editor.call("session/new", {**new, "mcpServers": [stdio]}))["sessionId"]
        assert mine.http.get(f"/sessions/{session}").json()["mcp_servers"] == ["tools"]
        await editor.call("session/resume", {"sessionId": session, **new, "mcpServers": [stdio]})
        other = {"sessionId": session, **new, "mcpServers": [{**stdio, "name": "other"}]}
        await editor.call("session/load", other)
        for blocks in ([], "text", [{"type": "text"}], [{"type": "audio", "data": ""}], [1]):
            assert (await editor.refused("session/prompt", {"sessionId": session, "prompt": blocks}))[
                0
            ] == -32602
        assert (await editor.refused("session/set_mode", {"sessionId": session, "modeId": "x"}))[0] == -32602
        running = await editor.prompt(session, "echo one\nsleep 30")
        await editor.until(lambda _: "does not have them: other." in editor.text("agent_thought_chunk"))
        second = await editor.answer(await editor.prompt(session, "echo two"))
        assert second["error"]["code"] == -32600
        await editor.notify("session/cancel", {"sessionId": session})
        assert (await editor.answer(running))["result"]["stopReason"] == "cancelled"


async def _check_frames(editor: RawEditor) -> None:
    await editor.write(b'{"jsonrpc": "2.0", "id": 1, "meth\n')
    assert (await editor.until(lambda m: "id" in m and m["id"] is None))["error"]["code"] == -32700
    await editor.write(
        b'{"jsonrpc":"2.0","id":77,"method":"session/list","params":{"x":"' + b"y" * 33 * 2**20
    )
    await editor.write(b'"}}\n')
    assert (await editor.answer(77))["error"]["code"] == -32600
    assert (await editor.refused("session/nothing", {}))[0] == -32601
    await editor.reply(4711, {"outcome": {}})  # an answer to nothing
    for _ in range(2):
        await editor.send("session/list", {}, number=5)
    await editor.until(lambda m: m.get("id") == 5, count=2)
