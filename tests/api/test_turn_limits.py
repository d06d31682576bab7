"""Limits that a turn carries: below, at and beyond each of them, across a restart, and what is kept."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from clawdforge import AsyncForge, Forge
from tests.api.harness import AGENT, App, Server, until

CONFIG = f"""
[agents.counts]
command = "{AGENT}"
quirks = {{ usage = "per_call" }}
[agents.deaf]
command = "{AGENT} --ignore-cancel"
[agents.silent]
command = "{AGENT} --no-usage"
"""
STOPPED = ("cancelled", "stopped_by_limit")
DONE = ("completed", "end_turn")

AT_THE_END = {
    "max_tokens": ("usage 60 40", 100, 99),
    "max_cost_usd": ("cost 0.25", 0.25, 0.24),
    "max_tool_calls": ("tools 3 0", 3, 2),
    "max_seconds": ("echo quick", 600, None),
}
"""A prompt that uses a certain amount, a limit that it just keeps, and one that it crosses."""


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("limits")
    (folder / "clawdforge.toml").write_text(CONFIG)
    env = {"CLAWDFORGE_CANCEL_GRACE_SECS": "1"}
    server = Server(folder / "data", env, "--config", str(folder / "clawdforge.toml"))
    yield server
    server.stop()


@pytest.fixture
def caller(limited: Server) -> App:
    return limited.app()


def run(app: App, session_id: str, prompt: str, **limits: float) -> dict[str, Any]:
    reply = app.turn(session_id, prompt, **limits)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def ending(found: dict[str, Any]) -> tuple[str, str]:
    return found["outcome"], found["stop_reason"]


def turns(app: App, session_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = app.http.get(f"/sessions/{session_id}/turns").json()["turns"]
    return found


def ended_events(app: App, session_id: str) -> list[dict[str, Any]]:
    page = app.http.get(f"/sessions/{session_id}/events", params={"limit": 1000}).json()["events"]
    return [event for event in page if event["type"] == "turn.ended"]


@pytest.mark.parametrize("name", AT_THE_END)
def test_a_turn_below_and_at_its_limit_is_like_any_other(caller: App, name: str) -> None:
    prompt, at, _ = AT_THE_END[name]
    session_id = caller.session()
    for limit in (at, at * 2):
        found = run(caller, session_id, f"{prompt}\necho all", **{name: limit})
        assert (ending(found), found["stopped_by"]) == (DONE, None)
    first = turns(caller, session_id)[0]
    assert first["limits"] == {**dict.fromkeys(AT_THE_END), name: at}
    assert all("stopped_by" not in event for event in ended_events(caller, session_id))


@pytest.mark.parametrize("name", ["max_tokens", "max_cost_usd", "max_tool_calls"])
def test_a_turn_beyond_its_limit_is_stopped_and_what_it_said_is_kept(caller: App, name: str) -> None:
    prompt, _, below = AT_THE_END[name]
    assert below is not None
    session_id = caller.session()
    found = run(caller, session_id, f"echo first words\n{prompt}", **{name: below})
    assert (ending(found), found["stopped_by"]) == (STOPPED, name)
    (turn,) = turns(caller, session_id)
    assert (turn["outcome"], turn["stop_reason"], turn["stopped_by"]) == (*STOPPED, name)
    assert name in turn["error"]
    assert (turn["code"], turn["limits"][name]) == (None, below)
    (event,) = ended_events(caller, session_id)
    assert (event["stopped_by"], event["stop_reason"]) == (name, "stopped_by_limit")
    messages = caller.http.get(f"/sessions/{session_id}/messages").json()["messages"]
    assert messages[-1]["content"].startswith("first words")
    after = run(caller, session_id, "recall")
    assert ending(after) == DONE, "the session goes on"
    assert "first words" in json.dumps(caller.http.get(f"/sessions/{session_id}/messages").json())


def test_cost_stops_a_turn_as_soon_as_it_is_told(caller: App) -> None:
    session_id = caller.session()
    found = run(caller, session_id, "cost 0.5\nhang", max_cost_usd=0.4)
    assert (ending(found), found["stopped_by"]) == (STOPPED, "max_cost_usd")
    assert ending(run(caller, session_id, "cost 0.6\necho on", max_cost_usd=0.4)) == DONE, "its own cost only"


def test_tool_calls_stop_a_turn_as_soon_as_there_is_one_too_many(caller: App) -> None:
    session_id = caller.session()
    found = run(caller, session_id, "tools 2 0\ntool last 60000\ntools 5 0", max_tool_calls=2)
    assert found["stopped_by"] == "max_tool_calls"
    called = [event["name"] for event in found["events"] if event["type"] == "tool_call"]
    assert called == ["tool-1", "tool-2", "last"], "the one too many is shown, and none after it"
    none = run(caller, session_id, "tool first 60000", max_tool_calls=0)
    assert none["stopped_by"] == "max_tool_calls"


def test_tokens_that_are_told_for_each_call_stop_a_turn_at_once(caller: App) -> None:
    session_id = caller.session(agent="counts")
    at = run(caller, session_id, "call-usage 30 20\ncall-usage 30 20\necho all", max_tokens=100)
    assert (ending(at), at["usage"]["total_tokens"]) == (DONE, 100)
    beyond = run(caller, session_id, "call-usage 30 20\necho words\ncall-usage 31 20\nhang", max_tokens=100)
    assert (ending(beyond), beyond["stopped_by"]) == (STOPPED, "max_tokens")
    assert beyond["usage"]["total_tokens"] == 101


def test_time_stops_a_turn(caller: App) -> None:
    session_id = caller.session()
    found = run(caller, session_id, "echo begun\nhang", max_seconds=0.5)
    assert (ending(found), found["stopped_by"]) == (STOPPED, "max_seconds")
    assert found["duration_ms"] >= 500
    assert ending(run(caller, session_id, "echo on")) == DONE


def test_the_time_in_the_queue_does_not_count(caller: App) -> None:
    session_id = caller.session()
    path = f"/sessions/{session_id}/turns"
    caller.http.post(path, json={"prompt": "sleep 11"})
    assert caller.http.post(path, json={"prompt": "echo late", "max_seconds": 10}).status_code == 202
    until(lambda: turns(caller, session_id)[1]["state"] == "ended", "the second turn")
    assert [turn["outcome"] for turn in turns(caller, session_id)] == ["completed", "completed"]


def test_the_shorter_of_time_limit_and_time_out_decides(caller: App) -> None:
    session_id = caller.session()
    late = caller.turn(session_id, "hang", max_seconds=600, timeout_secs=0.5)
    assert (late.status_code, late.json()["code"]) == (504, "turn_timed_out")
    assert run(caller, session_id, "hang", max_seconds=0.5, timeout_secs=600)["stopped_by"] == "max_seconds"
    assert run(caller, session_id, "hang", max_seconds=0.5, timeout_secs=0.5)["stopped_by"] == "max_seconds"


def test_an_agent_that_does_not_hear_is_ended(caller: App) -> None:
    session_id = caller.session(agent="deaf")
    found = run(caller, session_id, "echo words\ncost 2\nsleep 60", max_cost_usd=1)
    assert (ending(found), found["stopped_by"]) == (STOPPED, "max_cost_usd")
    assert ending(run(caller, session_id, "echo on")) == DONE


def test_what_an_agent_does_not_report_stops_nothing(caller: App) -> None:
    session_id = caller.session(agent="silent")
    found = run(caller, session_id, "echo some words to count", max_tokens=0, max_cost_usd=0)
    assert (ending(found), found["usage"]["estimated"]) == (DONE, True)


def test_a_cancel_that_came_first_is_a_cancel(caller: App) -> None:
    session_id = caller.session(agent="deaf")
    caller.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo a\nsleep 60", "max_seconds": 600})
    with caller.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("text")
    caller.http.post(f"/sessions/{session_id}/cancel", json={})
    (turn,) = turns(caller, session_id)
    assert (turn["outcome"], turn["stop_reason"], turn["stopped_by"]) == ("cancelled", "cancelled", None)


@pytest.mark.parametrize("name", AT_THE_END)
def test_a_queued_turn_keeps_its_limit_across_a_restart(start: Callable[..., Server], name: str) -> None:
    server = start(STOP_GRACE_SECS="0.1")
    app = server.app()
    session_id = app.session()
    prompt, limit = ("hang", 0.5) if name == "max_seconds" else AT_THE_END[name][::2]
    path = f"/sessions/{session_id}/turns"
    app.http.post(path, json={"prompt": "hang"})
    key = {"Idempotency-Key": "once"}
    body = {"prompt": f"echo words\n{prompt}", name: limit}
    assert app.http.post(path, json=body, headers=key).status_code == 202
    assert app.http.post(path, json={**body, name: 700}, headers=key).json()["code"] == "key_reused"
    until(lambda: turns(app, session_id)[0]["state"] == "running", "the first turn")
    server.stop()
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    assert app.http.post(path, json=body, headers=key).json()["replayed"] is True
    until(lambda: turns(app, session_id)[1]["state"] == "ended", "the second turn")
    turn = turns(app, session_id)[1]
    assert (turn["outcome"], turn["stop_reason"], turn["stopped_by"]) == (*STOPPED, name)
    queued = app.http.get(f"/sessions/{session_id}/events").json()["events"]
    assert next(event for event in queued if event.get("turn") == 2)["limits"] == {name: limit}


def test_a_turn_that_is_tried_again_keeps_its_limits(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    session_id = app.session(on_interrupt="retry")
    body = {"prompt": "echo a\nsleep 2\ncost 3\nhang", "max_cost_usd": 1}
    app.http.post(f"/sessions/{session_id}/turns", json=body)
    with app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("text")
    server.process.kill()
    server.stop()
    server.start()
    app = App(app.name, app.token, app.token_id, server.client(app.token))
    until(lambda: len(turns(app, session_id)) == 2 and turns(app, session_id)[1]["stopped_by"], "the retry")
    again = app.http.post(f"/sessions/{session_id}/retry", json={"run": True}).json()["turn_index"]
    until(lambda: turns(app, session_id)[again - 1]["stopped_by"] == "max_cost_usd", "the third try")


@pytest.mark.parametrize(
    "limits",
    [
        {"max_tokens": -1},
        {"max_tokens": 1.5},
        {"max_cost_usd": -0.1},
        {"max_seconds": 0},
        {"max_tool_calls": 100_001},
        {"max_tool_calls": "many"},
    ],
)
def test_limits_are_numbers_that_make_sense(caller: App, limits: dict[str, Any]) -> None:
    assert caller.turn(caller.session(), "echo hi", **limits).status_code == 422


async def test_the_sdk_passes_them_on_and_tells_which_was_crossed(limited: Server, caller: App) -> None:
    with Forge(limited.url, caller.token) as forge, forge.session(agent="claude") as session:
        assert session.turn("cost 2\nhang", max_cost_usd=1).stopped_by == "max_cost_usd"
        with session.stream("tool x 60000", max_tool_calls=0) as stream:
            assert stream.result().stopped_by == "max_tool_calls"
        assert session.turn("echo fine", max_tokens=10**6).stopped_by is None
    async with AsyncForge(limited.url, caller.token) as awaiting:
        made = await awaiting.create_session(agent="claude")
        assert (await made.turn("hang", max_seconds=0.3)).stopped_by == "max_seconds"


def test_a_session_of_the_hermes_surface_sees_a_cancelled_turn(caller: App) -> None:
    """Callers that never asked for a limit meet no word that they do not know."""
    session_id = caller.session()
    run(caller, session_id, "cost 2\nhang", max_cost_usd=1)
    status = caller.http.get("/api/session/status", params={"session_id": session_id})
    assert status.status_code == 200
    assert status.json()["agent_running"] is False


@pytest.mark.parametrize(
    ("ends", "body"), [("crash 3", {}), ("hang-hard", {"timeout_secs": 4}), ("kill-self", {})]
)
def test_what_was_told_before_the_agent_was_gone_is_counted(
    caller: App, ends: str, body: dict[str, Any]
) -> None:
    session_id = caller.session(agent="counts")
    failed = caller.turn(session_id, f"call-usage 100 20\ncall-usage 11 1\necho half\n{ends}", **body)
    assert failed.status_code in (502, 504), failed.text
    (turn,) = turns(caller, session_id)
    usage = turn["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["estimated"]) == (111, 21, True)
    reported = caller.http.get(f"/sessions/{session_id}/usage").json()
    assert (reported["input_tokens"], reported["output_tokens"]) == (111, 21)
