"""Limits of an app, its own and those of the settings: one below, at them, one above, and after a kill."""

import contextlib
import signal
from collections.abc import Callable
from typing import Any

from tests.api.harness import App, Server, until

QUICK = {"STOP_GRACE_SECS": "0.1", "CANCEL_GRACE_SECS": "0.1"}


def put(server: Server, app: App, **limits: int) -> App:
    reply = server.admin().post("/admin/apps", json={"app_name": app.name, "limits": limits})
    assert reply.status_code == 200, reply.text
    return app


def post(app: App, path: str, **body: Any) -> int:
    reply = app.http.post(path, json=body)
    if reply.status_code == 429:
        assert reply.json()["code"] == "limit_exceeded", reply.text
        assert int(reply.headers["Retry-After"]) >= 1
        assert "this app may have 2" in reply.json()["error"]
    return reply.status_code


def make(app: App, *kinds: str) -> list[int]:
    return [post(app, "/sessions", retention=kind) for kind in kinds]


def send(app: App, session: str, count: int) -> list[int]:
    return [post(app, f"/sessions/{session}/turns", prompt="hang") for _ in range(count)]


def read(app: App, session: str) -> list[int]:
    """The statuses of three streams that are open at the same time, when there was none."""
    until(lambda: app.http.get("/limits").json()["open_requests"] == 1, "nothing else is open")
    with contextlib.ExitStack() as streams:
        path = f"/sessions/{session}/events"
        return [streams.enter_context(app.stream(path)).response.status_code for _ in range(3)]


def wait_for_agents(app: App, count: int) -> None:
    def see() -> bool:
        return len(app.http.get("/sessions", params={"activity": "running"}).json()["sessions"]) == count

    until(see, f"{count} run")
    assert app.http.get("/limits").json()["agents"] == count


def again(server: Server, app: App) -> App:
    return App(app.name, app.token, app.token_id, server.client(app.token))


def test_open_sessions_are_limited_before_and_after_a_kill(start: Callable[..., Server]) -> None:
    server = start(APP_SESSIONS="2", **QUICK)
    own, default = put(server, server.app(), max_sessions=2), server.app()
    assert make(own, "ttl", "keep", "ttl", "keep") == [200, 200, 429, 429]
    assert make(default, "ttl", "ttl", "ttl", "keep") == [200, 200, 429, 200], "what is kept does not count"
    server.stop(signal.SIGKILL)
    server.start()
    for one, sources in ((own, "own"), (default, "default")):
        app = again(server, one)
        assert make(app, "ttl") == [429]
        found = app.http.get("/limits").json()
        assert (found["max_sessions"], found["sources"]["max_sessions"]) == (2, sources)
        assert found["ttl_sessions"] == (1 if one is own else 2)
        closed = next(
            row for row in app.http.get("/sessions").json()["sessions"] if row["retention"] == "ttl"
        )
        app.http.delete(f"/sessions/{closed['session_id']}").raise_for_status()
        assert make(app, "ttl", "ttl") == [200, 429]


def test_turns_and_requests_and_agents_are_limited_before_and_after_a_kill(
    start: Callable[..., Server],
) -> None:
    server = start(APP_TURNS="2", APP_OPEN_REQUESTS="2", APP_AGENTS="2", **QUICK)
    own, default = put(server, server.app(), max_turns_in_flight=2, max_open_requests=2), server.app()
    busy = put(server, server.app(), max_turns_in_flight=9)
    lines = {one.name: one.session() for one in (own, default)}
    crowd = [busy.session() for _ in range(4)]
    for one in (own, default):
        assert send(one, lines[one.name], 3) == [202, 202, 429]
        assert read(one, lines[one.name]) == [200, 200, 429]
    for session, running in zip(crowd[:3], (1, 2, 2), strict=True):
        assert send(busy, session, 1) == [202]
        wait_for_agents(busy, running)
    server.stop(signal.SIGKILL)
    server.start()
    for one in (own, default):
        app = again(server, one)
        until(lambda: app.http.get("/limits").json()["turns_in_flight"] == 1, "the one that waited runs")  # noqa: B023 - asked at once
        assert send(app, lines[one.name], 2) == [202, 429]
        assert read(app, lines[one.name]) == [200, 200, 429]
    busy = again(server, busy)
    wait_for_agents(busy, 1)
    for session in (crowd[0], crowd[3]):
        assert send(busy, session, 1) == [202]
        wait_for_agents(busy, 2)


def test_the_operator_sees_what_holds_and_what_is_used(start: Callable[..., Server]) -> None:
    server = start()
    app = put(server, server.app("shop"), max_readers=7)
    app.session(retention="keep")
    app.session()
    found = server.admin().get("/admin/apps").json()["apps"]
    shop = next(one for one in found if one["app_name"] == "shop")
    assert {name: value for name, value in shop["limits"].items() if value is not None} == {"max_readers": 7}
    assert shop["allowed"] == {
        "max_sessions": 500,
        "max_turns_in_flight": 2000,
        "max_bytes": 20 * 2**30,
        "max_requests_per_sec": 500,
        "max_open_requests": 256,
        "max_readers": 7,
        "max_agents": None,
    }
    assert {name for name, source in shop["sources"].items() if source == "own"} == {"max_readers"}
    assert (shop["used"]["sessions"], shop["used"]["ttl_sessions"], shop["used"]["readers"]) == (2, 1, 0)
    own = app.http.get("/limits").json()
    assert {name: own[name] for name in shop["allowed"]} == shop["allowed"]
    assert own["sources"] == shop["sources"]
