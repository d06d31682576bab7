"""What an app may have of a server at one time: at the limit, below, above, and after a restart."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from clawdforge import Forge
from tests.api.harness import App, Server, until


def limit(server: Server, app: App, **limits: int) -> None:
    reply = server.admin().post("/admin/apps", json={"app_name": app.name, "limits": limits})
    assert reply.status_code == 200, reply.text


def read(app: App, count: int) -> list[int]:
    """The statuses of so many streams that are open at the same time."""
    session = app.session()
    with contextlib.ExitStack() as streams:
        opened = [streams.enter_context(app.stream(f"/sessions/{session}/events")) for _ in range(count)]
        return [stream.response.status_code for stream in opened]


def check_readers(server: Server, app: App) -> None:
    until(lambda: app.http.get("/limits").json()["readers"] == 0, "nobody reads")
    assert read(app, 1) == [200]
    until(lambda: app.http.get("/limits").json()["readers"] == 0, "they have gone")
    assert read(app, 3) == [200, 200, 429]
    other = server.app()
    assert read(other, 3) == [200, 200, 200]


def test_an_app_has_so_many_readers(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    limit(server, app, max_readers=2)
    check_readers(server, app)
    server.stop()
    server.start()
    check_readers(server, App(app.name, app.token, app.token_id, server.client(app.token)))


def test_an_app_has_so_many_open_requests(server: Server, app: App) -> None:
    session = app.session()
    limit(server, app, max_open_requests=2)
    with contextlib.ExitStack() as streams:
        streams.enter_context(app.stream(f"/sessions/{session}/events"))
        assert app.http.get("/limits").json()["open_requests"] == 2
        streams.enter_context(app.stream(f"/sessions/{session}/events"))
        refused = app.http.get("/sessions")
        assert (refused.status_code, refused.json()["code"]) == (429, "limit_exceeded")
        assert "2 open requests" in refused.json()["error"]
        assert refused.headers["Retry-After"] == "1"
    until(lambda: app.http.get("/sessions").status_code == 200, "they have gone")


def counts(app: App, number: int) -> list[Any]:
    replies = [app.http.get("/limits") for _ in range(number)]
    return [(reply.status_code, reply.headers.get("RateLimit-Policy")) for reply in replies]


def test_an_app_has_a_rate_of_requests(start: Callable[..., Server]) -> None:
    """With none a second there is nothing to win by waiting, so that the time of the test does not matter."""
    server = start(APP_REQUESTS_PER_SEC="1000000")
    app, other = server.app(), server.app()
    assert counts(app, 1) == [(200, '"requests";q=10000000;w=10')]
    limit(server, app, max_requests_per_sec=0)
    refused = app.http.get("/sessions")
    assert (refused.status_code, refused.headers["RateLimit"]) == (429, '"requests";r=0;t=10')
    assert (refused.headers["Retry-After"], refused.json()["code"]) == ("1", "limit_exceeded")
    assert other.http.get("/sessions").status_code == 200
    server.stop()
    server.start()
    assert server.client(app.token).get("/sessions").status_code == 429
    limit(server, app)
    assert server.client(app.token).get("/sessions").status_code == 200


def test_the_operators_own_app_and_the_operator_have_no_limit(start: Callable[..., Server]) -> None:
    server = start(APP_REQUESTS_PER_SEC="1", APP_OPEN_REQUESTS="1", APP_READERS="1")
    local = server.client((server.data_dir / "local.token").read_text().strip())
    for client in (local, server.admin()):
        path = "/limits" if client is local else "/admin/apps"
        replies = [client.get(path) for _ in range(30)]
        assert {reply.status_code for reply in replies} == {200}
        assert "RateLimit" not in replies[-1].headers


def test_an_app_sees_its_own_limits_and_what_it_has(server: Server, app: App) -> None:
    app.session()
    limit(server, app, max_sessions=5, max_readers=7)
    app.http.post("/files", files={"file": ("a", b"12345")}).raise_for_status()
    with Forge(server.url, app.token) as forge:
        found = forge.limits()
    assert (found.app_name, found.max_sessions, found.max_readers) == (app.name, 5, 7)
    assert (found.max_bytes, found.max_agents) == (20 * 2**30, None)
    assert (found.sessions, found.open_requests, found.readers) == (1, 1, 0)
    assert found.bytes_by_form["uploads"] == 5
    assert found.bytes_stored == sum(found.bytes_by_form.values()) > 5
    assert found.max_requests_per_sec == 500
    assert found.requests_left
    assert found.requests_left <= 5000


@pytest.mark.parametrize("name", ["max_requests_per_sec", "max_open_requests", "max_readers"])
def test_limits_are_whole_numbers(server: Server, app: App, name: str) -> None:
    for bad in (-1, 1.5, "many", 2**40):
        body = {"app_name": app.name, "limits": {name: bad}}
        assert server.admin().post("/admin/apps", json=body).status_code == 422
