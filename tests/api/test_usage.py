"""What turns and sessions used, over HTTP: reported, counted on, estimated; nothing twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clawdforge.wire.session import UsageReply
from clawdforge.wire.turn import Usage
from tests.api.harness import AGENT, App, Server

CONFIG = f"""
[agents.silent]
command = "{AGENT} --no-usage"
[agents.running]
command = "{AGENT} --usage-cumulative"
quirks = {{ usage = "cumulative", counter = "session" }}
"""


@pytest.fixture
def app(tmp_path: Path, start: Callable[..., Server]) -> App:
    path = tmp_path / "clawdforge.toml"
    path.write_text(CONFIG)
    return start("--config", str(path)).app()


def used(app: App, session_id: str, prompt: str) -> Usage:
    body: dict[str, Any] = app.turn(session_id, prompt).json()
    return Usage.model_validate(body["usage"])


def total(app: App, session_id: str) -> UsageReply:
    return UsageReply.model_validate(app.http.get(f"/sessions/{session_id}/usage").json())


def test_a_running_total_is_not_counted_twice_also_after_an_undo(app: App) -> None:
    session_id = app.session(agent="running")
    assert used(app, session_id, "usage 100 20 7\necho a").input_tokens == 100
    assert used(app, session_id, "usage 30 5\necho b").input_tokens == 30
    assert app.http.post(f"/sessions/{session_id}/undo", json={}).status_code == 200
    assert used(app, session_id, "usage 4 1\necho c").input_tokens == 4
    found = total(app, session_id)
    assert (found.reported.input_tokens, found.reported.output_tokens) == (134, 26), (
        "what was undone was paid"
    )


def test_a_silent_agents_turn_is_estimated_and_never_added_to_what_was_reported(app: App) -> None:
    session_id = app.session(agent="silent")
    turn = used(app, session_id, "echo some words to count")
    assert turn.estimated
    assert turn.output_tokens > 0
    found = total(app, session_id)
    assert (found.reported.total_tokens, found.total_tokens) == (0, 0)
    assert found.estimated.output_tokens == turn.output_tokens


def test_a_computed_cost_is_kept_apart_from_a_reported_one(app: App) -> None:
    session_id = app.session(agent="claude", model="gpt-5-mini")
    turn = used(app, session_id, "usage 1000000 0\necho hi")
    assert (turn.cost_usd, turn.cost_estimated, turn.estimated) == (0.25, True, True)
    cost = '{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.5,"currency":"USD"}}'
    told = used(app, session_id, f"usage 1000000 0\nupdate {cost}")
    assert (told.cost_usd, told.cost_estimated, told.estimated) == (0.5, False, False)
    found = total(app, session_id)
    assert (found.cost_usd, found.reported.cost_usd, found.estimated.cost_usd) == (0.5, 0.5, 0.25)
    assert found.reported.input_tokens == 2_000_000
