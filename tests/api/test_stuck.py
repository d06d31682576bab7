"""Sessions that stand still are found, with what they wait for, by operators only."""

from collections.abc import Callable
from typing import Any

import pytest

from clawdforge.wire.admin import StuckReply, StuckSession
from tests.api.harness import Server, until

LONG = 3600


@pytest.fixture
def alone(start: Callable[..., Server]) -> Server:
    return start(MAX_LIVE_AGENTS="2")


def stuck(server: Server, secs: float = 0.0) -> dict[str, StuckSession]:
    reply = server.admin().get("/admin/stuck", params={"secs": secs})
    assert reply.status_code == 200, reply.text
    found = StuckReply.model_validate(reply.json())
    assert found.count == len(found.sessions)
    assert found.tasks == {}
    return {one.session_id: one for one in found.sessions}


def waits_for(server: Server, session_id: str, what: str) -> StuckSession:
    def look() -> StuckSession | None:
        found = stuck(server).get(session_id)
        return found if found is not None and found.waits_for == what else None

    return until(look, f"a session that waits for {what}")


def test_what_a_session_waits_for_is_told(alone: Server) -> None:
    app = alone.app()
    silent, asking, late = app.session(), app.session(permission_mode="ask"), app.session()

    def submit(session_id: str, prompt: str) -> Any:
        return app.http.post(f"/sessions/{session_id}/turns", json={"prompt": prompt}).json()["turn_index"]

    assert stuck(alone) == {}
    submit(silent, "hang")
    submit(asking, "ask Remove all")
    found = waits_for(alone, silent, "agent")
    assert (found.app_name, found.turn) == (app.name, 1)
    assert waits_for(alone, asking, "permission").turn == 1
    submit(late, "echo at last")
    assert waits_for(alone, late, "place").turn is None
    assert stuck(alone, LONG) == {}
    metrics = alone.admin().get("/metrics").text
    assert 'clawdforge_sessions_stuck{wait="agent"} 0' in metrics, "a minute has not passed"
    app.http.post(f"/sessions/{silent}/cancel", json={})
    until(lambda: app.http.get(f"/sessions/{late}").json()["turn_count"] == 1, "the turn that waited")
    app.http.post(f"/sessions/{asking}/cancel", json={})
    until(lambda: not stuck(alone), "an idle server")


def test_it_is_for_operators(alone: Server) -> None:
    app = alone.app()
    assert app.http.get("/admin/stuck").status_code in (401, 403)
    for secs in ("-1", "nan", "soon"):
        assert alone.admin().get("/admin/stuck", params={"secs": secs}).status_code == 422, secs
