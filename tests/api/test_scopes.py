"""What a token of each scope may do, on every route there is, and how an app rules over its own tokens."""

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, get_args

import httpx2
import pytest

from clawdforge.http.dialects.hermes.quiet import QUIET
from clawdforge.http.dialects.hermes.unserved import UNSERVED
from clawdforge.http.scopes import SCOPES
from clawdforge.settings.kinds import Face
from clawdforge.wire.admin import TokenInfo
from clawdforge.wire.scopes import Scope
from tests.api.harness import App, Server
from tests.api.test_browser import EVENT_SOURCE, OWN, cookie
from tests.api.test_tenancy import UNKNOWN, operations


def narrow(server: Server, app: App, *scopes: str, **body: Any) -> App:
    """Another token of the same app."""
    return server.app(app.name, scopes=list(scopes), **body)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with every door open."""
    doors = ",".join(get_args(Face))
    found = Server(tmp_path_factory.mktemp("wide") / "data", {"CLAWDFORGE_FACES": doors})
    yield found
    found.stop()


@pytest.mark.parametrize("scope", list(Scope))
def test_a_token_opens_the_routes_of_its_scopes_and_no_other(wide: Server, scope: Scope) -> None:
    """Whatever id is named: one that exists, a foreign one and an unknown one are refused alike."""
    app = wide.app()
    mine, foreign = app.session(), wide.app().session()
    holder = narrow(wide, app, scope)
    walked = set()
    for operation in operations(wide.client().get("/openapi.json").json()):
        needed = SCOPES.get(f"{operation.method} {operation.path}")
        if needed is None:
            continue
        walked.add(f"{operation.method} {operation.path}")
        if needed is scope:
            reply = operation.call(holder.http, UNKNOWN["unknown"])
            assert reply.status_code != 403, (operation, reply.text)
            continue
        replies = [operation.call(holder.http, one) for one in (mine, foreign, UNKNOWN["unknown"])]
        assert {reply.status_code for reply in replies} == {403}, operation
        assert len({reply.content for reply in replies}) == 1, operation
        assert replies[0].json()["code"] == "forbidden"
        assert f"scope {needed}" in replies[0].json()["detail"]
    assert walked == set(SCOPES) - set(UNSERVED) - set(QUIET)


def test_a_route_that_is_not_served_says_so_to_readers_only(server: Server, app: App) -> None:
    assert narrow(server, app, "read").http.get("/api/memory").status_code == 501
    assert narrow(server, app, "prompt").http.get("/api/memory").status_code == 403


def test_a_token_without_a_word_may_do_everything(server: Server, app: App) -> None:
    (row,) = server.admin().get("/admin/tokens", params={"app_name": app.name}).json()["tokens"]
    assert row["scopes"] == ["read", "prompt", "decide", "admin"]


def test_the_mode_of_permissions_is_for_those_who_decide(server: Server, app: App) -> None:
    session_id = app.session(permission_mode="ask")
    prompter = narrow(server, app, "read", "prompt")
    reply = prompter.http.patch(f"/sessions/{session_id}", json={"permission_mode": "approve_all"})
    assert (reply.status_code, reply.json()["code"]) == (403, "forbidden")
    assert prompter.http.patch(f"/sessions/{session_id}", json={"title": "new"}).status_code == 200
    decider = narrow(server, app, "prompt", "decide")
    reply = decider.http.patch(f"/sessions/{session_id}", json={"permission_mode": "approve_all"})
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("path", ["/sessions", "/api/session/new"])
def test_nothing_is_approved_in_advance_for_a_token_that_may_not_decide(
    server: Server, app: App, path: str
) -> None:
    prompter, decider = narrow(server, app, "read", "prompt"), narrow(server, app, "read", "prompt", "decide")
    for mode in ("approve_all", "approve_reads"):
        refused = prompter.http.post(path, json={"permission_mode": mode})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
        assert "scope decide" in refused.json()["error"]
        assert decider.http.post(path, json={"permission_mode": mode}).status_code == 200
    assert app.http.get("/sessions", params={"state": "active"}).json()["count"] == 2, "those of the decider"
    for named, mode in ((None, "ask"), ("ask", "ask"), ("deny_all", "deny_all")):
        assert mode_of(app, prompter.http.post(path, json={"permission_mode": named})) == mode
    assert mode_of(app, decider.http.post(path, json={})) == "approve_all"


def mode_of(app: App, made: httpx2.Response) -> str:
    """Of the session that was made, in whichever dialect."""
    assert made.status_code in (200, 201), made.text
    body = made.json()
    session_id = body.get("session", body)["session_id"]
    return str(app.http.get(f"/sessions/{session_id}").json()["permission_mode"])


def put_persona(app: App, name: str, mode: str | None) -> httpx2.Response:
    return app.http.put(f"/personas/{name}", json={"agent": "claude", "permission_mode": mode})


def test_a_persona_may_approve_what_its_user_may_not(server: Server, app: App) -> None:
    prompter = narrow(server, app, "read", "prompt")
    for name, mode in (("bold", "approve_all"), ("careful", "ask")):
        assert put_persona(app, name, mode).status_code == 200
    for body in ({"persona": "bold"}, {"persona": "bold", "permission_mode": "approve_all"}):
        assert mode_of(app, prompter.http.post("/sessions", json=body)) == "approve_all"
    refused = prompter.http.post("/sessions", json={"persona": "careful", "permission_mode": "approve_all"})
    assert refused.status_code == 403
    for name, mode in (("bold", "approve_all"), ("careful", "ask"), ("default-interactive", "ask")):
        assert mode_of(app, prompter.http.post("/api/sessions", json={"persona_name": name})) == mode


def test_a_persona_that_approves_is_made_by_those_who_decide(server: Server, app: App) -> None:
    admin, both = narrow(server, app, "admin"), narrow(server, app, "admin", "decide")
    refused = put_persona(admin, "bold", "approve_all")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert app.http.get("/personas/bold").status_code == 404
    for mode in ("ask", None):
        assert put_persona(admin, "shy", mode).status_code == 200
    assert put_persona(both, "bold", "approve_all").status_code == 200


def test_an_import_asks_unless_its_caller_may_decide(server: Server, app: App) -> None:
    prompter, decider = narrow(server, app, "read", "prompt"), narrow(server, app, "prompt", "decide")
    for mode, kept in (("approve_all", "ask"), ("approve_reads", "ask"), ("deny_all", "deny_all")):
        session_id = app.session(permission_mode=mode)
        document = app.http.get(f"/sessions/{session_id}/export").json()
        for holder, expected in ((prompter, kept), (decider, mode)):
            made = holder.http.post("/sessions/import", json={"format": "clawdforge", "export": document})
            assert mode_of(app, made) == expected
    rows = [{"role": "user", "content": "hello"}]
    for path in ("/sessions/import", "/api/session/import"):
        assert mode_of(app, prompter.http.post(path, json={"messages": rows})) == "ask"


def test_a_cookie_and_its_streams_have_the_scopes_of_the_token(server: Server, app: App) -> None:
    session_id = app.session()
    reader = server.client(Cookie=cookie(server, narrow(server, app, "read")), **OWN)
    with reader.stream("GET", f"/api/sessions/{session_id}/stream", headers=EVENT_SOURCE) as response:
        assert response.status_code == 200
    assert reader.post(f"/sessions/{session_id}/turn", json={"prompt": "echo x"}).status_code == 403
    prompter = server.client(Cookie=cookie(server, narrow(server, app, "prompt")), **OWN)
    with prompter.stream("GET", f"/api/sessions/{session_id}/stream", headers=EVENT_SOURCE) as response:
        assert response.status_code == 403


def test_an_app_makes_tokens_that_can_do_no_more_than_its_own(server: Server, app: App) -> None:
    maker = narrow(server, app, "read", "admin")
    made = maker.http.post("/tokens", json={"scopes": ["read"], "note": "for a page"})
    assert made.status_code == 200, made.text
    assert (made.json()["app_name"], made.json()["scopes"]) == (app.name, ["read"])
    assert server.client(made.json()["token"]).get("/sessions").status_code == 200
    assert maker.http.post("/tokens", json={}).json()["scopes"] == ["read", "admin"]
    refused = maker.http.post("/tokens", json={"scopes": ["read", "prompt", "decide"]})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "decide, prompt" in refused.json()["error"]
    assert server.client(made.json()["token"]).post("/tokens", json={}).status_code == 403


def test_a_token_that_an_app_makes_does_not_outlive_the_one_it_was_made_with(
    server: Server, app: App
) -> None:
    maker = narrow(server, app, "admin", expires_in_secs=3600)
    ends = next(row for row in listed(app) if row.token_id == maker.token_id).expires_at
    assert maker.http.post("/tokens", json={}).json()["expires_at"] == ends
    assert maker.http.post("/tokens", json={"expires_in_secs": 10**6}).json()["expires_at"] == ends
    assert maker.http.post("/tokens", json={"expires_in_secs": 60}).json()["expires_at"] < ends
    assert app.http.post("/tokens", json={}).json()["expires_at"] is None


def listed(app: App) -> list[TokenInfo]:
    return [TokenInfo.model_validate(row) for row in app.http.get("/tokens").json()["tokens"]]


def test_an_app_revokes_its_own_tokens_that_can_do_no_more(server: Server, app: App, other: App) -> None:
    maker, reader = narrow(server, app, "read", "admin"), narrow(server, app, "read")
    assert {row.app_name for row in listed(app)} == {app.name}
    assert maker.http.delete(f"/tokens/{app.token_id}").status_code == 403
    assert app.http.get("/sessions").status_code == 200
    foreign, unknown = maker.http.delete(f"/tokens/{other.token_id}"), maker.http.delete("/tokens/nobody")
    assert (foreign.status_code, foreign.content) == (404, unknown.content)
    assert other.http.get("/sessions").status_code == 200
    assert maker.http.delete(f"/tokens/{reader.token_id}").status_code == 200
    assert reader.http.get("/sessions").status_code == 401


@pytest.mark.parametrize("path", ["/tokens", "/admin/tokens"])
@pytest.mark.parametrize(
    ("field", "value"),
    [("scope", "read"), ("admin", True), ("expires_in", 60), ("scopes", []), ("scopes", ["all"])],
)
def test_a_body_that_means_something_else_is_refused_by_name(
    server: Server, app: App, path: str, field: str, value: object
) -> None:
    """A mistyped limit must not make a token without one."""
    client = app.http if path == "/tokens" else server.admin()
    body = {field: value} if path == "/tokens" else {"app_name": app.name, field: value}
    before = len(listed(app))
    reply = client.post(path, json=body)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
    assert field in reply.json()["error"]
    assert len(listed(app)) == before


def test_the_last_use_is_listed_and_kept(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app(f"seen-{uuid.uuid4().hex[:6]}")

    def last_use() -> int | None:
        page = server.admin().get("/admin/tokens", params={"app_name": app.name}).json()
        found: int | None = page["tokens"][0]["last_used_at"]
        return found

    assert last_use() is None
    began = int(time.time())
    app.http.get("/sessions")
    seen = last_use()
    assert seen is not None
    assert began <= seen <= time.time()
    server.stop()
    server.start()
    assert last_use() == seen
