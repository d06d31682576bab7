"""Logins of browsers: codes, the operator's cookie, plain HTTP from another machine, their end everywhere."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from clawdforge import __version__
from tests.api.harness import ADMIN_TOKEN, App, Server, Stream
from tests.api.test_operator_socket import operator
from tests.api.test_trust import CALL, LEVELS, as_agent, as_neighbour, command

OWN = {"Sec-Fetch-Site": "same-origin"}
LAN = "forge.lan"
NOBODY: dict[str, object] = {
    "ok": True,
    "app_name": None,
    "scopes": [],
    "operator": False,
    "version": __version__,
}


def browser(server: Server, **headers: str) -> httpx2.Client:
    """A client that keeps cookies as a browser on our own page does."""
    return server.client(**OWN, **headers)


def logged_in(server: Server, token: str) -> httpx2.Client:
    client = browser(server)
    assert client.post("/login", json={"token": token}).status_code == 200
    return client


def code_of(app: App) -> str:
    reply = app.http.post("/login/codes")
    assert reply.status_code == 200, reply.text
    return str(reply.json()["code"])


def test_who_am_i_is_never_refused(server: Server, app: App) -> None:
    assert server.client().get("/login").json() == NOBODY
    assert server.client("cf_wrong").get("/login").json() == NOBODY
    mine = {**NOBODY, "app_name": app.name, "scopes": ["admin", "decide", "prompt", "read"]}
    assert app.http.get("/login").json() == mine
    assert server.admin().get("/login").json() == {**NOBODY, "operator": True}
    client = logged_in(server, app.token)
    assert client.get("/login").json() == mine
    assert client.post("/login", json={"token": ADMIN_TOKEN}).json() == {**NOBODY, "operator": True}
    assert client.get("/login").json() == {**mine, "operator": True}, "one browser may be both"


@pytest.mark.parametrize("body", [{}, {"token": "x", "code": "y"}, {"token": ""}, {"code": "x" * 513}])
def test_a_login_is_by_a_token_or_a_code(server: Server, body: dict[str, str]) -> None:
    assert browser(server).post("/login", json=body).status_code == 422


def test_a_code_logs_in_once(server: Server, app: App) -> None:
    code = code_of(app)
    assert app.token not in code
    client = browser(server)
    reply = client.post("/login", json={"code": code})
    assert (reply.status_code, reply.json()["app_name"]) == (200, app.name)
    assert client.get("/sessions").status_code == 200
    again = browser(server).post("/login", json={"code": code})
    assert again.status_code == 401
    assert "clawdforge open" in again.json()["error"]
    assert "set-cookie" not in again.headers
    assert server.client(code).get("/sessions").status_code == 401, "a code is no token"


def test_of_two_who_use_a_code_at_once_one_wins(server: Server, app: App) -> None:
    code, crowd = code_of(app), 8
    gate = threading.Barrier(crowd)

    def use(_: int) -> int:
        client = browser(server)
        client.get("/login")  # the connection is there when it counts
        gate.wait()
        return client.post("/login", json={"code": code}).status_code

    with ThreadPoolExecutor(crowd) as pool:
        assert sorted(pool.map(use, range(crowd))) == [200] + [401] * (crowd - 1)


def test_a_code_ends_with_its_token_and_with_the_server(start: Callable[..., Server]) -> None:
    server = start()
    app, kept = server.app(), server.app()
    revoked, lost = code_of(app), code_of(kept)
    server.admin().delete(f"/admin/tokens/{app.token_id}")
    assert browser(server).post("/login", json={"code": revoked}).status_code == 401
    server.stop()
    server.start()
    assert browser(server).post("/login", json={"code": lost}).status_code == 401


def test_a_code_opens_no_more_than_its_token(server: Server) -> None:
    narrow = server.app(scopes=["read"])
    client = browser(server)
    reply = client.post("/login", json={"code": code_of(narrow)})
    assert reply.json()["scopes"] == ["read"]
    assert client.get("/sessions").status_code == 200
    assert client.post("/sessions", json={}).status_code == 403
    assert server.admin().post("/login/codes").status_code == 403, "the operator logs in with the token"
    assert server.client().post("/login/codes").status_code == 401


def test_the_operators_cookie_is_short_and_apart(server: Server, app: App) -> None:
    reply = browser(server).post("/login", json={"token": ADMIN_TOKEN})
    said = reply.headers["set-cookie"]
    name, _, value = said.partition(";")[0].partition("=")
    assert name == f"clawdforge_operator_{server.url.rsplit(':', 1)[1]}"
    parts = {part.strip().lower() for part in said.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/", "max-age=3600"} <= parts
    assert ADMIN_TOKEN not in said
    client = server.client(Cookie=f"{name}={value}", **OWN)
    assert client.get("/admin/apps").status_code == 200
    assert client.get("/sessions").status_code == 403, "the operator is no app"
    as_app = name.replace("operator", "session")
    assert server.client(Cookie=f"{as_app}={value}", **OWN).get("/admin/apps").status_code == 401
    app_value = logged_in(server, app.token).cookies[as_app]
    assert server.client(Cookie=f"{name}={app_value}", **OWN).get("/admin/apps").status_code == 401


def test_both_cookies_serve_their_own_routes(server: Server, app: App) -> None:
    client = logged_in(server, app.token)
    assert client.get("/admin/apps").status_code == 403
    client.post("/login", json={"token": ADMIN_TOKEN})
    assert client.get("/admin/apps").status_code == 200
    assert client.get("/sessions").status_code == 200
    client.post("/logout")
    assert [client.get(path).status_code for path in ("/admin/apps", "/sessions")] == [401, 401]


def test_where_the_operator_is_served_on_the_socket_only_a_login_says_what_to_set(
    start: Callable[..., Server],
) -> None:
    server = start("--host", "0.0.0.0")  # noqa: S104 - asked over loopback
    refused = browser(server).post("/login", json={"token": ADMIN_TOKEN})
    assert refused.status_code == 403
    assert "CLAWDFORGE_ADMIN_BEYOND_LOOPBACK" in refused.json()["error"]
    assert "set-cookie" not in refused.headers
    assert server.admin().get("/login").json()["operator"] is False
    with operator(server) as client:
        assert client.get("/login").json()["operator"] is True


@pytest.mark.parametrize("site", ["none", "same-site", None])
def test_a_write_by_cookie_must_come_from_our_page(server: Server, app: App, site: str | None) -> None:
    """Who follows a link from a mail reads what is theirs; nothing is written by it."""
    held = logged_in(server, app.token).cookies
    client = server.client(**({"Sec-Fetch-Site": site} if site else {}))
    client.cookies.update(held)
    session_id = app.session()
    for method, path in [
        ("POST", "/sessions"),
        ("PATCH", f"/sessions/{session_id}"),
        ("DELETE", f"/sessions/{session_id}"),
        ("POST", "/login/codes"),
        ("GET", f"/api/chat/cancel?stream_id={session_id}:1"),
    ]:
        reply = client.request(method, path, json={"title": "x"} if method != "GET" else None)
        assert reply.status_code == 401, (method, path)
        assert "Sec-Fetch-Site" in reply.json()["error"]
    assert client.post("/logout", json={"everywhere": True}).status_code == 401
    assert logged_in(server, app.token).get(f"/sessions/{session_id}").json()["title"] == ""


@pytest.fixture
def lan(start: Callable[..., Server]) -> tuple[Server, App, str]:
    """A server that a phone knows by another name, an app of it, and its host and port there."""
    server = start(ALLOWED_HOSTS=LAN)
    return server, server.app(), f"{LAN}:{server.url.rsplit(':', 1)[1]}"


def test_a_phone_logs_in_over_plain_http_without_a_loop(lan: tuple[Server, App, str]) -> None:
    """Browsers send no Sec-Fetch-Site there: a login that answers 200 must also count."""
    server, app, host = lan
    phone = server.client(Host=host)
    own = {"Origin": f"http://{host}"}
    reply = phone.post("/login", json={"token": app.token}, headers=own)
    assert reply.status_code == 200
    phone.headers["Cookie"] = reply.headers["set-cookie"].partition(";")[0]
    assert phone.get("/login").json()["app_name"] == app.name
    made = phone.post("/sessions", json={"agent": "claude"}, headers=own)
    assert made.status_code == 200
    session_id = made.json()["session_id"]
    assert phone.get(f"/sessions/{session_id}").status_code == 200
    with phone.stream(
        "GET", f"/sessions/{session_id}/events", headers={"Accept": "text/event-stream"}
    ) as stream:
        assert stream.status_code == 200
    assert phone.post("/sessions", json={}).status_code == 401, "no browser writes without an Origin"
    assert phone.get(f"/api/chat/cancel?stream_id={session_id}:1").status_code == 401
    for origin in (f"http://{LAN}:1", f"http://localhost:{host.partition(':')[2]}", "null"):
        assert phone.post("/sessions", json={}, headers={"Origin": origin}).status_code in (401, 403), origin
    told = phone.post("/sessions", json={}, headers={**own, "Sec-Fetch-Site": "same-site"})
    assert told.status_code == 401, "what the browser says counts"


def test_a_cookie_is_for_https_only_where_the_page_is(lan: tuple[Server, App, str]) -> None:
    server, app, _ = lan
    body = {"token": app.token}
    plain = server.client(Host=LAN).post("/login", json=body, headers={"Origin": f"http://{LAN}"})
    proxied = server.client(Host=LAN).post("/login", json=body, headers={"Origin": f"https://{LAN}", **OWN})
    assert "secure" not in plain.headers["set-cookie"].lower()
    assert "secure" in proxied.headers["set-cookie"].lower()


def test_a_browser_whose_login_would_not_count_is_told_at_once(server: Server, app: App) -> None:
    reply = server.client(Origin=server.url).post("/login", json={"token": app.token})
    assert reply.status_code == 403
    assert "newer" in reply.json()["error"]


def test_logging_out_everywhere_ends_every_login_of_the_token(server: Server, app: App, other: App) -> None:
    here, there, foreign = (logged_in(server, one.token) for one in (app, app, other))
    code = code_of(app)
    session_id = app.session()
    sse = {"Accept": "text/event-stream"}
    with (
        there.stream("GET", f"/sessions/{session_id}/events", headers=sse) as theirs,
        app.http.stream("GET", f"/sessions/{session_id}/events", headers=sse) as by_token,
    ):
        assert here.post("/logout", json={"everywhere": True}).status_code == 200
        list(Stream(theirs))  # it ends
        app.turn(session_id, "echo on")
        assert Stream(by_token).upto("turn.ended"), "the token itself is good"
    assert [one.get("/sessions").status_code for one in (here, there, foreign)] == [401, 401, 200]
    assert browser(server).post("/login", json={"code": code}).status_code == 401
    assert logged_in(server, app.token).get("/sessions").status_code == 200


def test_a_login_that_was_ended_stays_ended_after_a_restart(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    client, boss = logged_in(server, app.token), logged_in(server, ADMIN_TOKEN)
    _, port = server.url.rsplit(":", 1)
    values = [client.cookies[f"clawdforge_session_{port}"], boss.cookies[f"clawdforge_operator_{port}"]]
    kept = logged_in(server, ADMIN_TOKEN)
    assert client.post("/logout", json={"everywhere": True}).status_code == 200
    assert boss.post("/logout", json={"everywhere": True}).status_code == 200
    assert kept.get("/admin/apps").status_code == 401
    fresh = logged_in(server, ADMIN_TOKEN).cookies[f"clawdforge_operator_{port}"]
    server.stop()
    server.start()
    _, port = server.url.rsplit(":", 1)
    cookies = f"clawdforge_session_{port}={values[0]}; clawdforge_operator_{port}={values[1]}"
    old = server.client(Cookie=cookies, **OWN)
    assert [old.get(path).status_code for path in ("/sessions", "/admin/apps")] == [401, 401]
    new = server.client(Cookie=f"clawdforge_operator_{port}={fresh}", **OWN)
    assert new.get("/admin/apps").status_code == 200


def test_nobody_is_logged_out_everywhere_by_a_guess(server: Server) -> None:
    reply = browser(server).post("/logout", json={"everywhere": True})
    assert reply.status_code == 401
    assert browser(server).post("/logout").status_code == 200


USE = (
    CALL
    + """
import json
own = {"Sec-Fetch-Site": "same-origin"}
def send(method, path, body=None, **headers):
    connection = http.client.HTTPConnection(host, port, timeout=20)
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, {"Content-Type": "application/json", **own, **headers})
    return connection.getresponse().status
print(*(send(*one) for one in DEEDS))
"""
)


@pytest.mark.parametrize("sandbox", LEVELS)
def test_no_agent_uses_a_login_that_its_page_was_sent(start: Callable[..., Server], sandbox: str) -> None:
    """A browser sends its cookies to every port of this host, so an agent that serves a page has them."""
    server = start(SANDBOX=sandbox)
    app = server.app()
    client = logged_in(server, app.token)
    client.post("/login", json={"token": ADMIN_TOKEN})
    held = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    deeds = [
        ("GET", "/sessions", None, {"Cookie": held}),
        ("GET", "/admin/apps", None, {"Cookie": held}),
        ("POST", "/login", {"token": ADMIN_TOKEN}, {}),
        ("POST", "/login", {"code": code_of(app)}, {}),
        ("POST", "/login", {"code": code_of(app)}, {}),
    ]
    source = USE.replace("send(*one) for one in DEEDS", f"send(*a, **h) for *a, h in {deeds!r}")
    assert as_agent(app, command(server, source)).split() == ["403"] * 5
    last = [*deeds[:-2], deeds[-1]]  # a code that was refused to an agent is good still
    source = USE.replace("send(*one) for one in DEEDS", f"send(*a, **h) for *a, h in {last!r}")
    assert as_neighbour(command(server, source)).split() == ["200"] * 4
