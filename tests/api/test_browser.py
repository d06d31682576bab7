"""What a browser needs: a login that becomes a cookie, and streams that it can open without a header."""

import json
import time
import uuid
from collections.abc import Callable

import httpx2
import pytest

from tests.api.harness import App, Server, Stream

OWN = {"Sec-Fetch-Site": "same-origin"}
EVENT_SOURCE = {"Accept": "text/event-stream", "Cache-Control": "no-cache", "Sec-Fetch-Mode": "cors"}


def log_in(server: Server, token: str) -> httpx2.Response:
    return server.client().post("/login", json={"token": token}, headers=OWN)


def cookie(server: Server, app: App) -> str:
    reply = log_in(server, app.token)
    assert (reply.status_code, reply.json()["app_name"]) == (200, app.name)
    return reply.headers["set-cookie"].partition(";")[0]


def test_the_cookie_is_kept_from_scripts_other_sites_and_other_ports(server: Server, app: App) -> None:
    """X-08: HttpOnly, SameSite=Strict; and it is not the token, which a server next door would see."""
    said = log_in(server, app.token).headers["set-cookie"]
    name, _, rest = said.partition("=")
    assert name == f"clawdforge_session_{server.url.rsplit(':', 1)[1]}"
    parts = [part.strip().lower() for part in rest.split(";")[1:]]
    assert {"httponly", "samesite=strict", "path=/"} <= set(parts)
    assert app.token not in said


def test_a_cookie_opens_the_app_on_every_route(server: Server, app: App, other: App) -> None:
    session_id = app.session()
    client = server.client(Cookie=cookie(server, app), **OWN)
    assert client.get(f"/sessions/{session_id}").status_code == 200
    assert client.get(f"/api/sessions/{session_id}").status_code == 200
    assert client.post(f"/sessions/{session_id}/turn", json={"prompt": "echo x"}).status_code == 200
    assert client.get(f"/sessions/{other.session()}").status_code == 404
    assert client.get("/admin/apps").status_code == 403


@pytest.mark.parametrize("name", ["приложение", "アプリ", "é.app", "dotted.app-1_x"])
def test_an_app_may_have_a_name_that_no_header_can_hold(server: Server, name: str) -> None:
    app = server.app(f"{name}{uuid.uuid4().hex[:6]}")
    session_id = app.session()
    client = server.client(Cookie=cookie(server, app), **OWN)
    assert client.get(f"/sessions/{session_id}").status_code == 200


@pytest.mark.parametrize("site", ["same-site", "cross-site", None])
def test_a_cookie_counts_only_where_the_browser_says_that_the_page_is_ours(
    server: Server, app: App, site: str | None
) -> None:
    """A page on another port of this host is same-site, and is sent the cookie: it must open nothing."""
    headers = {"Sec-Fetch-Site": site} if site else {}
    reply = server.client(Cookie=cookie(server, app), **headers).get("/sessions")
    assert reply.status_code == (403 if site == "cross-site" else 401)


def test_typing_the_address_counts_as_ours(server: Server, app: App) -> None:
    client = server.client(Cookie=cookie(server, app), **{"Sec-Fetch-Site": "none"})
    assert client.get("/sessions").status_code == 200


def test_a_bearer_token_wins_and_is_never_replaced_by_a_cookie(server: Server, app: App, other: App) -> None:
    held = cookie(server, app)
    session_id = other.session()
    assert server.client(other.token, Cookie=held, **OWN).get(f"/sessions/{session_id}").status_code == 200
    assert server.client("cf_wrong", Cookie=held, **OWN).get("/sessions").status_code == 401


def test_forged_changed_and_revoked_cookies_are_one_401(server: Server, app: App, other: App) -> None:
    held = cookie(server, app)
    name, _, value = held.partition("=")
    parts = value.split(".")
    forged = [
        "x",
        value[:-1],
        ".".join([*parts[:-1], other.name]),
        ".".join([other.token_id, *parts[1:]]),
        ".".join([parts[0], str(int(time.time()) + 10**9), *parts[2:]]),
        app.token,
    ]
    replies = [server.client(Cookie=f"{name}={one}", **OWN).get("/sessions") for one in forged]
    server.admin().delete(f"/admin/tokens/{app.token_id}")
    replies.append(server.client(Cookie=held, **OWN).get("/sessions"))
    assert {(reply.status_code, reply.content) for reply in replies} == {(401, replies[0].content)}


def test_a_wrong_token_does_not_log_in(server: Server) -> None:
    reply = log_in(server, "cf_wrong")
    assert reply.status_code == 401
    assert "set-cookie" not in reply.headers


def test_another_origin_cannot_log_a_browser_in(server: Server, app: App) -> None:
    headers = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert server.client().post("/login", json={"token": app.token}, headers=headers).status_code == 403


def test_logging_out_takes_the_cookie_away(server: Server) -> None:
    said = server.client().post("/logout", headers=OWN).headers["set-cookie"].lower()
    assert "max-age=0" in said


def test_a_login_outlives_the_server(start: Callable[..., Server]) -> None:
    server = start(PORT="0")
    app = server.app()
    _, _, value = cookie(server, app).partition("=")
    server.stop()
    server.start()
    name = f"clawdforge_session_{server.url.rsplit(':', 1)[1]}"
    assert server.client(Cookie=f"{name}={value}", **OWN).get("/sessions").status_code == 200


def read_two(client: httpx2.Client, session_id: str) -> list[str]:
    with client.stream("GET", f"/api/sessions/{session_id}/stream", headers=EVENT_SOURCE) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        frames = iter(Stream(response))
        return [json.loads(next(frames).data)["content"] for _ in range(2)]


def test_event_source_works_with_the_cookie(server: Server, app: App) -> None:
    """X-08: EventSource cannot send Authorization, but it sends cookies."""
    session_id = app.session()
    app.turn(session_id, "echo hi")
    client = server.client(Cookie=cookie(server, app), **OWN)
    assert read_two(client, session_id) == ["echo hi", "hi"]


def test_revoking_the_token_ends_the_stream_of_its_cookie(server: Server, app: App) -> None:
    session_id = app.session()
    client = server.client(Cookie=cookie(server, app), **OWN)
    with client.stream("GET", f"/api/sessions/{session_id}/stream", headers=EVENT_SOURCE) as response:
        server.admin().delete(f"/admin/tokens/{app.token_id}")
        assert list(Stream(response)) == []


@pytest.fixture
def trusting(start: Callable[..., Server]) -> Server:
    return start("--trust-loopback")


def test_event_source_works_on_a_machine_that_trusts_itself(trusting: Server) -> None:
    """X-08: no credential at all, from a page of the same origin."""
    client = trusting.client(**OWN)
    session_id = client.post("/api/sessions", json={}).json()["session_id"]
    for word in ("one", "two"):
        client.post(f"/api/sessions/{session_id}/messages", json={"content": word})
    assert read_two(client, session_id) == ["one", "two"]
    assert client.get("/sessions").status_code == 401


@pytest.mark.parametrize(("site", "status"), [("same-origin", 200), ("none", 200), ("same-site", 401)])
def test_trust_does_not_extend_to_pages_next_door(trusting: Server, site: str, status: int) -> None:
    reply = trusting.client(**{"Sec-Fetch-Site": site}).get("/api/sessions")
    assert reply.status_code == status


def test_trust_is_local_only_and_a_wrong_token_is_no_fall_back(trusting: Server) -> None:
    """X-08: `local` never sees another app's sessions."""
    app = trusting.app()
    session_id = app.http.post("/api/sessions", json={}).json()["session_id"]
    nobody = trusting.client()
    assert nobody.get(f"/api/sessions/{session_id}").status_code == 404
    assert nobody.get("/api/sessions").json() == []
    assert trusting.client("cf_wrong").get("/api/sessions").status_code == 401
