"""What turns and sessions used, over HTTP: reported, counted on, estimated; nothing twice."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from clawdforge import Forge
from clawdforge.wire.session import UsageReply
from clawdforge.wire.turn import Usage
from clawdforge.wire.usage import UsagePage, UsageRow
from tests.api.harness import ADMIN_TOKEN, AGENT, App, Server

CONFIG = f"""
[agents.silent]
command = "{AGENT} --no-usage"
[agents.running]
command = "{AGENT} --usage-cumulative"
quirks = {{ usage = "cumulative", counter = "session" }}
"""


@pytest.fixture
def host(tmp_path: Path, start: Callable[..., Server]) -> Server:
    path = tmp_path / "clawdforge.toml"
    path.write_text(CONFIG)
    return start("--config", str(path))


@pytest.fixture
def app(host: Server) -> App:
    return host.app()


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


def test_usage_by_day_counts_every_turn_once(host: Server, app: App) -> None:
    session_id = app.session(agent="claude", model="gpt-5-mini")
    app.turn(session_id, "usage 1000000 5 3\necho hi")
    app.turn(app.session(agent="silent"), "echo some words")
    fork = app.http.post(f"/sessions/{session_id}/fork", json={}).json()["session_id"]
    app.turn(fork, "usage 10 0\necho again")
    app.http.post(f"/sessions/{fork}/undo", json={})
    assert app.http.post(f"/sessions/{fork}/purge").status_code == 200
    page = UsagePage.model_validate(app.http.get("/usage", params={"by": "agent,model"}).json())
    found = {row.agent: row for row in page.rows}
    claude, silent = found["claude"], found["silent"]
    assert (claude.turns, claude.model, claude.reported.input_tokens) == (2, "gpt-5-mini", 1_000_010)
    assert (claude.reported.total_tokens, claude.reported.cost_usd) == (1_000_018, None)
    assert claude.estimated.total_tokens == 0
    assert claude.estimated.cost_usd == pytest.approx(0.25, abs=0.01)
    assert (silent.turns, silent.model, silent.reported.total_tokens) == (1, None, 0)
    assert silent.estimated.total_tokens > 0
    assert (claude.day, claude.app, page.next) == (None, None, None)

    with host.admin() as admin, Forge(host.url, token=ADMIN_TOKEN) as operator:
        other = host.app()
        assert other.http.get("/usage").json()["rows"] == []
        rows = admin.get("/admin/usage", params={"by": "app"}).json()["rows"]
        assert [(row["app"], row["turns"], row["day"]) for row in rows] == [(app.name, 3, None)]
        assert {one["app_name"] for one in admin.get("/admin/usage").json()["apps"]} >= {app.name, other.name}
        told: list[UsageRow] = list(operator.admin.usage_by("app", "agent", page_size=1))
        assert [(row.app, row.agent) for row in told] == [(app.name, "claude"), (app.name, "silent")]
        assert admin.get("/admin/usage", params={"from": page.first_day}).status_code == 422
    with Forge(host.url, token=app.token) as forge:
        days = list(forge.usage_by(from_day=page.first_day, to_day=date.fromisoformat(page.last_day)))
        assert sum(row.turns for row in days) == 3
        assert all(row.day and page.first_day < row.day <= page.last_day for row in days)
    for by in ("week", "app", ""):
        answer = app.http.get("/usage", params={"by": by})
        assert (answer.status_code, "day, agent, model" in answer.text) == (422, True)
    for params in ({"from": "2024-01-01", "to": "2025-01-01"}, {"from": "today"}, {"cursor": "x"}):
        assert app.http.get("/usage", params=params).status_code == 422, params
