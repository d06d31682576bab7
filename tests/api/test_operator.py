"""What operators do: apps and limits, tokens that end, the ledger, usage, metrics, logs."""

import functools
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from clawdforge.wire.admin import AdminUsage, AppPage, AppReply, AuditPage, AuditVerdict
from clawdforge.wire.session import UsageReply
from tests.api.harness import ADMIN_TOKEN, App, Server, until

SAMPLE = re.compile(r'^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$')


def limit(server: Server, app: App, **limits: int | None) -> None:
    reply = server.admin().post("/admin/apps", json={"app_name": app.name, "limits": limits})
    assert reply.status_code == 200, reply.text


def measures(server: Server) -> dict[str, float]:
    reply = server.admin().get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in reply.text.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.match(line) for line in lines), reply.text
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}


def test_apps_have_limits_that_are_listed(server: Server, app: App) -> None:
    app.session()
    limit(server, app, max_sessions=3)
    limit(server, app, max_sessions=2, max_bytes=10)
    found = AppPage.model_validate(server.admin().get("/admin/apps").json())
    mine = next(row for row in found.apps if row.app_name == app.name)
    assert {name: value for name, value in mine.limits.items() if value is not None} == {
        "max_sessions": 2,
        "max_bytes": 10,
    }
    assert (mine.sessions, mine.tokens, found.count) == (1, 1, len(found.apps))
    reply = server.admin().post("/admin/apps", json={"app_name": "fresh-one"})
    assert AppReply.model_validate(reply.json()).app.limits["max_sessions"] is None
    huge = {"app_name": "a", "limits": {"max_bytes": 10**30}}
    for bad in ({}, {"app_name": "../x"}, {"app_name": "a", "limits": {"max_bytes": -1}}, huge):
        assert server.admin().post("/admin/apps", json=bad).status_code == 422


def test_the_limit_of_sessions_holds_and_a_close_frees_a_place(server: Server, app: App, other: App) -> None:
    limit(server, app, max_sessions=1)
    first = app.session()
    reply = app.http.post("/sessions", json={"retention": "keep"})
    assert (reply.status_code, reply.json()["code"]) == (429, "limit_exceeded")
    assert int(reply.headers["retry-after"]) >= 1
    other.session()
    app.http.delete(f"/sessions/{first}")
    app.session()


def test_the_limit_of_turns_in_flight_holds_and_frees(server: Server, app: App) -> None:
    limit(server, app, max_turns_in_flight=2)
    session_id = app.session()
    path = f"/sessions/{session_id}/turns"
    key = {"Idempotency-Key": "first"}
    assert app.http.post(path, json={"prompt": "hang"}, headers=key).status_code == 202
    assert app.http.post(path, json={"prompt": "echo 2"}).status_code == 202
    reply = app.http.post(path, json={"prompt": "echo 3"})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
    again = app.http.post(path, json={"prompt": "hang"}, headers=key)
    assert (again.status_code, again.json()["replayed"]) == (202, True), "what was accepted stays accepted"
    state = functools.partial(app.http.get, f"/sessions/{session_id}")
    until(lambda: state().json()["running_turn"] is not None, "the first turn")
    app.http.post(f"/sessions/{session_id}/cancel", json={})
    until(lambda: state().json()["turn_count"] == 2, "the second turn")
    until(lambda: state().json()["running_turn"] is None, "its end")
    assert app.turn(session_id, "echo 3").status_code == 200


@pytest.mark.slow
def test_an_app_at_fifty_times_its_limit_does_not_disturb_others(start: Callable[..., Server]) -> None:
    server = start()
    greedy, calm = server.app("greedy"), server.app("calm")
    limit(server, greedy, max_turns_in_flight=4)
    mine = calm.session()
    calm.turn(mine, "echo warm")
    before = _pace(calm, mine)
    sessions = [greedy.session() for _ in range(4)]
    accepted: list[tuple[str, int]] = []
    seen, stop = Counter[int](), threading.Event()
    flood = [
        threading.Thread(target=_flood, args=(server, greedy, sessions, number, accepted, seen, stop))
        for number in range(8)
    ]
    for thread in flood:
        thread.start()
    try:
        until(lambda: seen[429] >= 200, "the flood", 60)
        during = _pace(calm, mine)
    finally:
        stop.set()
        for thread in flood:
            thread.join()
    assert set(seen) == {202, 429}, seen
    assert during < max(1.0, before * 20), (before, during)
    for session_id in sessions:
        until(lambda: _quiet(greedy, session_id), "the greedy app's turns", 60)  # noqa: B023 - asked at once
    ended = {
        (session_id, turn["turn_index"]): turn["outcome"]
        for session_id in sessions
        for turn in greedy.http.get(f"/sessions/{session_id}/turns", params={"limit": 1000}).json()["turns"]
    }
    assert set(ended) == set(accepted), "exactly what was acknowledged"
    assert set(ended.values()) == {"completed"}


def _pace(app: App, session_id: str) -> float:
    """The slowest of some turns, in seconds."""
    slowest = 0.0
    for number in range(10):
        began = time.monotonic()
        reply = app.turn(session_id, f"echo {number}")
        assert reply.status_code == 200, reply.text
        slowest = max(slowest, time.monotonic() - began)
    return slowest


def _flood(
    server: Server,
    app: App,
    sessions: list[str],
    number: int,
    accepted: list[tuple[str, int]],
    seen: Counter[int],
    stop: threading.Event,
) -> None:
    """As a client does that does not know what Retry-After means, but for a breath."""
    with server.client(app.token) as client:
        while not stop.wait(0.005):
            session_id = sessions[number % len(sessions)]
            reply = client.post(f"/sessions/{session_id}/turns", json={"prompt": "sleep 0.2"})
            seen[reply.status_code] += 1
            if reply.status_code == 202:
                accepted.append((session_id, reply.json()["turn_index"]))
            else:
                assert int(reply.headers["retry-after"]) >= 1


def _quiet(app: App, session_id: str) -> bool:
    state = app.http.get(f"/sessions/{session_id}").json()
    return state["running_turn"] is None and not state["queued_turns"]


def test_a_token_can_be_rotated_without_a_gap(server: Server, app: App) -> None:
    session_id = app.session()
    second = server.app(app.name)
    assert second.http.get(f"/sessions/{session_id}").status_code == 200
    assert app.http.get(f"/sessions/{session_id}").status_code == 200
    server.admin().delete(f"/admin/tokens/{app.token_id}")
    assert app.http.get(f"/sessions/{session_id}").status_code == 401
    assert second.http.get(f"/sessions/{session_id}").status_code == 200


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_token_that_ends_takes_its_streams_with_it(server: Server, how: str) -> None:
    app = server.app(expires_in_secs=2) if how == "expired" else server.app()
    session_id = app.session()
    with app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("session.created")
        if how == "revoked":
            server.admin().delete(f"/admin/tokens/{app.token_id}")
        assert list(stream) == []


def test_usage_tells_reported_from_estimated(server: Server, app: App) -> None:
    session_id = app.session()
    empty = UsageReply.model_validate(app.http.get(f"/sessions/{session_id}/usage").json())
    assert (empty.total_tokens, empty.turns, empty.reported.estimated, empty.estimated.estimated) == (
        0,
        0,
        False,
        True,
    )
    app.turn(session_id, "usage 100 20 5\necho hello")
    app.turn(session_id, "usage 10 2\necho hello")
    found = UsageReply.model_validate(app.http.get(f"/sessions/{session_id}/usage").json())
    assert (found.input_tokens, found.output_tokens, found.total_tokens, found.turns) == (110, 22, 137, 2)
    assert (found.reported.input_tokens, found.reported.cached_tokens) == (110, 5)
    assert 0 < found.estimated.total_tokens < 110
    rows = AdminUsage.model_validate(server.admin().get("/admin/usage").json()).apps
    mine = next(row for row in rows if row.app_name == app.name)
    assert (mine.sessions, mine.turns, mine.input_tokens, mine.output_tokens) == (1, 2, 110, 22)
    assert mine.estimated_input_tokens == found.estimated.input_tokens


def test_the_ledger_is_paged_and_verified(start: Callable[..., Server]) -> None:
    """S0-90: exactly these events."""
    server = start()
    app, other = server.app(), server.app()
    session_id = app.session()
    app.turn(session_id, "echo hi")
    app.http.delete(f"/sessions/{session_id}")
    other.session()
    admin = server.admin()
    page = AuditPage.model_validate(admin.get("/admin/audit", params={"app_name": app.name}).json())
    assert [entry.event for entry in page.entries] == ["create", "turn", "close"]
    assert {entry.session_id for entry in page.entries} == {session_id}
    first = AuditPage.model_validate(admin.get("/admin/audit", params={"limit": 2}).json())
    rest = AuditPage.model_validate(admin.get("/admin/audit", params={"after": first.next or 0}).json())
    assert [entry.number for entry in first.entries + rest.entries] == [1, 2, 3, 4]
    whole = AuditVerdict.model_validate(admin.get("/admin/audit/verify").json())
    assert (whole.valid, whole.entries, whole.first_bad, whole.head) == (True, 4, None, rest.entries[-1].hash)

    def verdict(head: str | None = None) -> AuditVerdict:
        params = {"head": head} if head else {}
        return AuditVerdict.model_validate(admin.get("/admin/audit/verify", params=params).json())

    edit = server.sql
    edit("UPDATE session_events SET details = '{\"turn\":2}' WHERE number = 2")
    assert (verdict().valid, verdict().first_bad) == (False, 2)
    edit("UPDATE session_events SET details = 'not json' WHERE number = 2")
    assert (verdict().valid, verdict().first_bad) == (False, 2)
    edit("UPDATE session_events SET details = '{\"turn\":1}' WHERE number = 2")
    assert verdict(whole.head).valid
    edit("DELETE FROM session_events WHERE number = 4")
    assert verdict().valid
    assert (verdict(whole.head).valid, verdict(whole.head).first_bad) == (False, 4)
    app.session()
    assert not verdict(whole.head).valid, "a new entry does not hide the cut"


def test_metrics_count_what_happens(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    before = measures(server)
    assert before['clawdforge_turns_ended_total{outcome="completed"}'] == 0
    session_id = app.session()
    app.turn(session_id, "echo hi")
    app.turn(session_id, "error no")
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "hang"})
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo later"})
    until(lambda: measures(server)['clawdforge_turns{state="running"}'] == 1, "the running turn")
    with app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("turn.started")
        until(lambda: measures(server)["clawdforge_agents_live"] == 1, "the agent after the one that failed")
        now = measures(server)
        assert now['clawdforge_turns_ended_total{outcome="completed"}'] == 1
        assert now['clawdforge_turns_ended_total{outcome="failed"}'] == 1
        assert now['clawdforge_turns{state="queued"}'] == 1
        assert now["clawdforge_turns_started_total"] == 3
        assert (now["clawdforge_agents_live"], now["clawdforge_readers"]) == (1, 1)
        assert now["clawdforge_places_taken"] == 1
        assert now["clawdforge_tasks"] > before["clawdforge_tasks"] > 0
        until(
            lambda: (
                measures(server)["clawdforge_events_appended_total"]
                == app.http.get(f"/sessions/{session_id}").json()["head"]
            ),
            "every event of the session in the count (the agent may still be saying its last word)",
        )
        assert (
            now["clawdforge_commit_seconds_count"] == now['clawdforge_commit_seconds_bucket{le="+Inf"}'] > 5
        )
        assert now["clawdforge_store_writable"] == 1
    assert server.client().get("/metrics").status_code == 401
    assert app.http.get("/metrics").status_code == 403


def lines(server: Server) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log_text.splitlines() if line.startswith("{")]


def test_logs_are_json_with_ids_and_without_secrets(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    session_id = app.session()
    reply = app.http.get(f"/sessions/{session_id}", params={"token": app.token})
    request_id = reply.headers["x-request-id"]

    def found() -> dict[str, Any] | None:
        return next((line for line in lines(server) if line.get("request_id") == request_id), None)

    line = until(found, "the line of the request")
    assert (line["method"], line["path"], line["status"]) == ("GET", "/sessions/{session_id}", 422)
    assert (line["session_id"], line["app"], line["level"]) == (session_id, app.name, "info")
    assert line["ms"] >= 0
    app.http.get(f"/{app.token}/{ADMIN_TOKEN}")
    app.http.get("/sessions", headers={"Host": app.token})
    server.stop()
    for line in lines(server):
        assert {"ts", "level", "logger", "msg"} <= line.keys()
    logged = [line for line in server.log_text.splitlines() if line.startswith("{")]
    text = [line for line in server.log_text.splitlines() if line and not line.startswith("{")]
    assert "Bearer" not in "".join(logged)
    for secret in (app.token, ADMIN_TOKEN):
        assert secret not in server.log_text
    assert len(text) == 8, "the greeting, and nothing else, is not JSON"
