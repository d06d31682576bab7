"""Host, Origin, Sec-Fetch-Site and loopback trust, on a real server (X-08, C8, C9)."""

from collections.abc import Callable

import pytest

from tests.api.harness import App, Server


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
@pytest.mark.parametrize("site", [None, "same-origin", "none"])
def test_loopback_names_are_served_on_any_port(app: App, host: str, site: str | None) -> None:
    fetch = {} if site is None else {"Sec-Fetch-Site": site}
    for name in (host, f"{host}:1234"):
        headers = {"Host": name, "Origin": f"http://{name}", **fetch}
        assert app.http.get("/sessions", headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "169.254.169.254"])
@pytest.mark.parametrize("path", ["/healthz", "/sessions", "/nope", "/openapi.json"])
def test_any_other_host_is_refused_before_routing(app: App, host: str, path: str) -> None:
    reply = app.http.get(path, headers={"Host": host})
    assert (reply.status_code, reply.json()["code"]) == (421, "host_refused")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
def test_a_foreign_page_is_refused(app: App, headers: dict[str, str], method: str) -> None:
    reply = app.http.request(method, "/sessions", headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (403, "origin_refused")


def test_more_hosts_can_be_allowed(start: Callable[..., Server]) -> None:
    server = start(ALLOWED_HOSTS="forge.example,other.example")
    assert server.client(Host="forge.example").get("/healthz").status_code == 200
    assert server.client(Host="other.example:8800").get("/healthz").status_code == 200
    assert server.client(Host="third.example").get("/healthz").status_code == 421


def test_loopback_trust_reaches_the_api_only_and_never_replaces_a_bad_token(
    start: Callable[..., Server],
) -> None:
    """X-08."""
    server = start("--trust-loopback")
    bare = server.client()
    assert bare.get("/healthz").json()["trust_loopback"] is True
    assert bare.get("/sessions").status_code == 401
    assert bare.post("/admin/tokens", json={"app_name": "x"}).status_code == 401
    routes = bare.get("/openapi.json").json()["paths"]
    api = [path for path, methods in routes.items() if path.startswith("/api/") and "get" in methods]
    for path in api:
        assert server.client().get(path).status_code != 401, path
        assert server.client("cf_wrong").get(path).status_code == 401, path
        assert server.client(Authorization="").get(path).status_code == 401, path


def test_callers_on_a_trusted_machine_keep_their_history_without_a_credential(
    start: Callable[..., Server],
) -> None:
    """S2-02."""
    bare = start("--trust-loopback").client()
    rows = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "reply"}]
    made = bare.post("/api/session/import", json={"messages": rows}).json()["session"]["session_id"]
    found = bare.get("/api/session", params={"session_id": made}).json()["session"]
    assert [message["content"] for message in found["messages"]] == ["first", "reply"]
    retried = bare.post("/api/session/retry", json={"session_id": made}).json()
    assert (retried["ok"], retried["last_user_text"]) == (True, "first")
