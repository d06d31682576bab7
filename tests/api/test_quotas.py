"""What an app may store, through the routes: at the limit, below, above, after a restart, and freed again."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.harness import App, Server


def limit(server: Server, app: App, **limits: int) -> None:
    reply = server.admin().post("/admin/apps", json={"app_name": app.name, "limits": limits})
    assert reply.status_code == 200, reply.text


def stored(app: App) -> int:
    return int(app.http.get("/limits").json()["bytes_stored"])


TRANSCRIPT = {"format": "messages", "messages": [{"role": "user", "content": "imported"}]}
GROWING: dict[str, Callable[[App, str], Any]] = {
    "a turn": lambda app, sid: app.turn(sid, "echo more"),
    "a queued turn": lambda app, sid: app.http.post(f"/sessions/{sid}/turns", json={"prompt": "echo more"}),
    "a retry": lambda app, sid: app.http.post(f"/sessions/{sid}/retry", json={"run": True}),
    "an upload": lambda app, _: app.http.post("/files", files={"file": ("a", b"12345")}),
    "an import": lambda app, _: app.http.post("/sessions/import", json=TRANSCRIPT),
    "a fork": lambda app, sid: app.http.post(f"/sessions/{sid}/fork", json={}),
    "a run": lambda app, _: app.http.post("/run", json={"prompt": "hello"}),
}
FREEING: dict[str, Callable[[App, str], Any]] = {
    "an undo": lambda app, sid: app.http.post(f"/sessions/{sid}/undo", json={}),
    "a redo": lambda app, sid: app.http.post(f"/sessions/{sid}/redo", json={}),
    "a clear": lambda app, sid: app.http.post(f"/sessions/{sid}/clear", json={}),
    "an end": lambda app, sid: app.http.delete(f"/sessions/{sid}"),
    "a purge": lambda app, sid: app.http.post(f"/sessions/{sid}/purge"),
}


def test_an_app_that_is_full_may_not_grow_but_shrink(server: Server, app: App) -> None:
    session = app.session()
    assert app.turn(session, "echo hello").status_code == 200
    limit(server, app, max_bytes=1)
    for what, grow in GROWING.items():
        refused = grow(app, session)
        assert (refused.status_code, refused.json().get("code")) == (429, "limit_exceeded"), (
            what,
            refused.text,
        )
        assert "clawdforge sessions delete ID" in refused.json()["error"], what
        assert refused.headers["Retry-After"] == "60"
    for what, shrink in FREEING.items():
        assert shrink(app, session).status_code == 200, what
    server.admin().post("/admin/sweep").raise_for_status()
    assert stored(app) == 0
    session = app.session()  # its first event fills what it may have
    limit(server, app, max_bytes=stored(app) + 1)
    assert app.turn(session, "echo hello").status_code == 200


def test_the_limit_itself_is_still_free(server: Server, app: App) -> None:
    limit(server, app, max_bytes=10)
    for size, status in ((11, 429), (9, 200), (2, 429), (1, 200), (1, 429)):
        assert app.http.post("/files", files={"file": ("a", b"x" * size)}).status_code == status, size
    assert stored(app) == 10


def test_the_setting_holds_for_all_apps_but_the_operators_own(start: Callable[..., Server]) -> None:
    server = start(APP_BYTES="10")
    app, free = server.app(), server.app()
    limit(server, free, max_bytes=1000)
    assert app.http.get("/limits").json()["max_bytes"] == 10
    local = server.client((server.data_dir / "local.token").read_text().strip())
    assert local.get("/limits").json()["max_bytes"] is None
    for _ in range(2):
        for http, status in ((app.http, 429), (free.http, 200), (local, 200)):
            assert http.post("/files", files={"file": ("a", b"x" * 11)}).status_code == status
        server.stop()
        server.start()
        app = App(app.name, app.token, app.token_id, server.client(app.token))
        free = App(free.name, free.token, free.token_id, server.client(free.token))
        local = server.client((server.data_dir / "local.token").read_text().strip())
    assert free.http.get("/limits").json()["bytes_by_form"]["uploads"] == 22


def test_no_setting_is_no_limit(start: Callable[..., Server]) -> None:
    assert start(APP_BYTES="0").app().http.get("/limits").json()["max_bytes"] is None


def test_an_import_that_does_not_fit_leaves_nothing(server: Server, app: App) -> None:
    messages = [{"role": "user", "content": "x" * 1000} for _ in range(300)]
    limit(server, app, max_bytes=200_000)
    refused = app.http.post("/sessions/import", json={"format": "messages", "messages": messages})
    assert (refused.status_code, refused.json()["code"]) == (429, "limit_exceeded")
    assert app.http.get("/sessions").json()["sessions"] == []
    server.admin().post("/admin/sweep").raise_for_status()
    assert stored(app) == 0
    limit(server, app, max_bytes=2_000_000)
    assert (
        app.http.post("/sessions/import", json={"format": "messages", "messages": messages}).status_code
        == 200
    )


def test_a_fork_that_does_not_fit_leaves_nothing(server: Server, app: App) -> None:
    messages = [{"role": "user", "content": "x" * 1000} for _ in range(300)]
    reply = app.http.post("/sessions/import", json={"format": "messages", "messages": messages})
    session, before = reply.json()["session_id"], stored(app)
    limit(server, app, max_bytes=before + before // 2)
    refused = app.http.post(f"/sessions/{session}/fork", json={})
    assert (refused.status_code, refused.json()["code"]) == (429, "limit_exceeded")
    assert stored(app) == before


@pytest.mark.parametrize("name", ["max_bytes", "max_agents"])
def test_quotas_are_whole_numbers(server: Server, app: App, name: str) -> None:
    for bad in (-1, 1.5, "many", 2**60):
        body = {"app_name": app.name, "limits": {name: bad}}
        assert server.admin().post("/admin/apps", json=body).status_code == 422
