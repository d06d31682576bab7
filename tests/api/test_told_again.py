"""What an agent was told with a prompt that it did not keep, it is told again: no import is forgotten."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from tests.api.harness import AGENT, App, Server, until
from tests.api.talk import begin, how, knows

TALK = [{"role": "user", "content": "question A"}, {"role": "assistant", "content": "reply A"}]
IMPORTS: dict[str, dict[str, Any]] = {
    "/sessions/import": {"messages": TALK},
    "/api/session/import": {"title": "brought", "messages": TALK},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("told")
    config = folder / "clawdforge.toml"
    config.write_text(
        f'[agents.late]\ncommand = "{AGENT} --lose-last"\n[agents.gemini]\ncommand = "{AGENT}"\n'
    )
    settings = {"CLAWDFORGE_TURN_RETRIES": "0", "CLAWDFORGE_DEFAULT_AGENT": "late"}
    found = Server(folder / "data", settings, "--config", str(config))
    yield found
    found.stop()


def bring(app: App, path: str = "/sessions/import", **more: Any) -> str:
    reply = app.http.post(path, json={**IMPORTS[path], **more})
    assert reply.status_code == 200, reply.text
    made = reply.json()
    return str(made["session"]["session_id"] if "session" in made else made["session_id"])


def hold_agents(server: Server) -> int:
    """Stop them: one that still sees the end of its input writes down what it holds, before its own end."""
    below = psutil.Process(server.process.pid).children(recursive=True)
    agents = [one for one in below if one.name().startswith("python") and "--lose-last" in one.cmdline()]
    for agent in agents:
        agent.suspend()
    return len(agents)


def test_an_agent_killed_in_its_first_turn_is_told_the_import_again(server: Server) -> None:
    """It writes a turn to its memory late, so after the kill it comes back with an empty session."""
    app = server.app()
    brought = [bring(app, path) for path in IMPORTS]
    app.http.put("/personas/kind", json={"agent": "late", "instructions": "Be kind."})
    with_instructions = str(app.http.post("/sessions", json={"persona": "kind"}).json()["session_id"])
    for session_id in (*brought, with_instructions):
        begin(app, session_id)
    assert hold_agents(server) == 3
    server.stop(signal.SIGKILL)
    server.start()
    app = replace(app, http=server.client(app.token))
    for session_id in brought:
        memory = knows(app, session_id)
        assert "question A" in memory
        assert "reply A" in memory
        assert "the answer was cut off here" in memory
        assert how(app, session_id) == ["transcript", "transcript"]
    assert "Be kind." in knows(app, with_instructions)


def test_a_first_prompt_that_nobody_heard_takes_nothing_of_the_import_with_it(server: Server) -> None:
    app = server.app()
    session_id = bring(app, agent="claude")
    failed = app.turn(session_id, "error 529 overloaded").json()
    assert failed["heard"] is False, failed
    assert knows(app, session_id).count("reply A") == 2, "with the prompt that failed, and with the next one"
    assert how(app, session_id) == ["transcript"]


def test_what_was_cancelled_at_the_beginning_is_told_with_the_beginning(server: Server) -> None:
    """An agent that forgets a cancelled turn forgets what it was told in it, and every one of several."""
    app = server.app()
    session_id = bring(app, agent="gemini")
    for number in (1, 2):
        app.http.post(f"/sessions/{session_id}/turns", json={"prompt": f"echo half {number}\nhang"})

        def said(words: str = f"half {number}") -> bool:
            events = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
            return any(event["type"] == "text" and words in event["content"] for event in events)

        until(said, "its first words")
        assert app.http.post(f"/sessions/{session_id}/cancel", json={}).json()["cancelled"] == 1
    memory = knows(app, session_id)
    last = memory[memory.rindex("[Conversation so far]") :]
    for words in ("question A", "reply A", "half 1", "half 2"):
        assert words in last
