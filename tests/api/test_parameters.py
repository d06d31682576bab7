"""A parameter that a route does not have is refused in words, on every route but those of the dialects."""

from typing import Any

import pytest

from clawdforge.http.routing import AdminRoute, AppRoute, OpenRoute
from tests.api.harness import App, Server

OF_LINKS = ("/shared",)
"""They answer nobody but the holder of a share link."""

TOLERANT = ("/api/", "/health", "/healthz", "/readyz", "/login", "/logout")
"""Other dialects, whose callers have their own ideas, and what is open to anybody, probes above all."""


@pytest.fixture(scope="session")
def operations(server: Server) -> list[tuple[str, str, list[str]]]:
    """Method, path and query parameters of every route there is."""
    document = server.client().get("/openapi.json").json()
    return [
        (method.upper(), path, _names(operation))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def _names(operation: Any) -> list[str]:
    return sorted(one["name"] for one in operation.get("parameters", []) if one["in"] == "query")


def fill(path: str) -> str:
    return path.replace("{turn_index}", "1").replace("{", "").replace("}", "")


def test_every_route_refuses_a_parameter_that_it_does_not_have(
    server: Server, app: App, operations: list[tuple[str, str, list[str]]]
) -> None:
    walked = 0
    for method, path, names in operations:
        if path.startswith((*TOLERANT, *OF_LINKS)):
            continue
        walked += 1
        http = server.admin() if path.startswith(("/admin/", "/metrics")) else app.http
        reply = http.request(method, fill(path), params={"bfore": "1"})
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request"), (method, path)
        takes = f"takes {', '.join(names)}" if names else "takes no parameters"
        assert reply.json()["detail"] == f"unknown parameter: bfore; this route {takes}"
    assert walked >= 50


def test_the_routes_of_share_links_refuse_it_as_well(server: Server, app: App) -> None:
    session_id = app.session()
    token = app.http.post(f"/sessions/{session_id}/shares", json={}).json()["token"]
    for path in ("/shared", "/shared/messages"):
        reply = server.client(token).get(path, params={"bfore": "1"})
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request"), path


def test_the_dialects_and_open_routes_ignore_it(
    app: App, operations: list[tuple[str, str, list[str]]]
) -> None:
    walked = 0
    for method, path, names in operations:
        if method == "GET" and path.startswith(TOLERANT):
            walked += 1
            reply = app.http.get(fill(path), params=dict.fromkeys([*names, "bfore"], "1"))
            assert "unknown parameter" not in reply.text, path
    assert walked >= 10


def test_nothing_is_told_to_whoever_may_not_ask(server: Server, app: App, other: App) -> None:
    assert server.client().get("/sessions", params={"x": 1}).status_code == 401
    assert app.http.get("/admin/usage", params={"x": 1}).status_code == 403
    sid = app.session()
    mine, foreign, unknown = (
        http.get(f"/sessions/{one}", params={"x": 1})
        for http, one in ((app.http, sid), (other.http, sid), (other.http, "nope"))
    )
    assert mine.status_code == foreign.status_code == unknown.status_code == 422
    assert foreign.content == unknown.content


def test_a_long_or_odd_name_is_told_in_short(app: App) -> None:
    reply = app.http.get("/agents", params={"x" * 5000: "1", "": "2", "é\n": "3"})
    assert reply.status_code == 422
    assert len(reply.json()["detail"]) < 200
    assert app.http.get("/agents?").status_code == 200
    assert app.http.get("/sessions?limit=1&limit=2").status_code == 200


def test_a_route_of_ours_is_strict_unless_it_says_why_not() -> None:
    assert AppRoute.refuses_unknown
    assert AdminRoute.refuses_unknown
    assert not OpenRoute.refuses_unknown
