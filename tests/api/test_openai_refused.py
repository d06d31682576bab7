"""A prompt that is refused leaves nothing behind in the OpenAI dialect: no session, no import, no fork."""

from collections.abc import Callable
from typing import Any

from tests.api.harness import App, Server
from tests.api.test_openai import CHAT, answer, ask, said, user


def ids(app: App) -> list[str]:
    found = app.http.get("/sessions?include_closed=true").json()["sessions"]
    return sorted(session["session_id"] for session in found)


def test_a_session_that_was_made_for_a_refused_prompt_is_gone_again(start: Callable[..., Server]) -> None:
    server = start(FACES="openai", OPENAI_HISTORY="fork")
    app = server.app()
    chat: dict[str, Any] = {"headers": {CHAT: "one"}}
    answer(ask(app, user("echo one"), **chat))
    answer(ask(app, user("echo one"), said("one"), user("echo two"), **chat))
    known = ids(app)
    assert len(known) == 1
    limits = {"app_name": app.name, "limits": {"max_turns_in_flight": 0}}
    assert server.admin().post("/admin/apps", json=limits).status_code == 200
    refused = [
        ask(app, user("echo new")),
        ask(app, user("echo a"), said("a"), user("echo imported")),
        ask(app, user("echo one"), said("one"), user("echo forked"), **chat),
        app.http.post("/v1/responses", json={"model": "claude", "input": "echo new"}),
    ]
    assert [reply.status_code for reply in refused] == [429] * 4, [reply.text for reply in refused]
    assert ids(app) == known
