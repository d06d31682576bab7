"""What an app may store, through the routes: at the limit, below, above, after a restart, and freed again."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.harness import App, Server, until


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
    session = app.session()
    limit(server, app, max_bytes=stored(app) + 100_000)
    assert app.turn(session, "echo hello").json()["outcome"] == "completed"


def test_a_turn_is_refused_at_the_limit_and_not_one_below(server: Server, app: App) -> None:
    session = app.session()
    most = stored(app)
    limit(server, app, max_bytes=most)
    assert app.turn(session, "echo hello").status_code == 429
    limit(server, app, max_bytes=most + 1)  # it is recorded, and finds no room for an answer
    assert app.turn(session, "echo hello").json()["stopped_by"] == "max_bytes"


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


def fill(server: Server, app: App, prompt: str, room: int) -> tuple[dict[str, Any], int]:
    """A turn that finds so much room; how it ended, and by how much the app is beyond its limit then."""
    session = app.session()
    most = stored(app) + room
    limit(server, app, max_bytes=most)
    reply = app.turn(session, prompt)
    assert reply.status_code == 200, reply.text
    turn = app.http.get(f"/sessions/{session}/turns").json()["turns"][0]
    return {**turn, "session_id": session}, stored(app) - most


FLOODS = ["flood 100000 1000", "bytes 20000000", "tools 100000 0", "flood 100 1000000"]


@pytest.mark.parametrize("prompt", FLOODS)
def test_a_turn_that_floods_is_stopped_soon(server: Server, app: App, prompt: str) -> None:
    turn, over = fill(server, app, prompt, 3_000_000)
    assert (turn["outcome"], turn["stop_reason"]) == ("cancelled", "stopped_by_limit")
    assert turn["stopped_by"] == "max_bytes"
    assert "clawdforge sessions delete ID" in turn["error"]
    assert over < 1 << 20


def test_what_was_said_before_it_was_stopped_is_kept(server: Server, app: App) -> None:
    turn, _ = fill(server, app, "echo hello\nflood 100000 1000", 1_000_000)
    session = turn["session_id"]
    messages = app.http.get(f"/sessions/{session}/messages").json()["messages"]
    assert messages[-1]["content"].startswith("hello")
    assert len(messages[-1]["content"]) > 100_000
    kinds = [one["type"] for one in app.http.get(f"/sessions/{session}/events?limit=1000").json()["events"]]
    assert kinds.count("output.truncated") <= 1


def test_a_turn_that_just_fits_is_not_stopped(server: Server, app: App) -> None:
    turn, over = fill(server, app, "flood 1000 1000", 8_000_000)
    assert (turn["outcome"], turn["stopped_by"]) == ("completed", None)
    assert over < 0


def test_a_queued_turn_that_finds_no_room_does_not_begin(server: Server, app: App) -> None:
    session = app.session()
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "sleep 60"}).raise_for_status()
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "echo hello"}).raise_for_status()
    limit(server, app, max_bytes=1)
    app.http.post(f"/sessions/{session}/cancel", json={}).raise_for_status()

    def last() -> Any:
        return app.http.get(f"/sessions/{session}/turns").json()["turns"][-1]

    until(lambda: last()["outcome"], "the end of the turn")
    assert (last()["outcome"], last()["stopped_by"]) == ("cancelled", "max_bytes")
    messages = app.http.get(f"/sessions/{session}/messages").json()["messages"]
    assert "hello" not in [one["content"] for one in messages]
    limit(server, app, max_bytes=10**9)
    remembered = app.turn(session, "recall").text
    assert "echo hello" not in remembered, "the agent was given the prompt of a turn that did not begin"


def forms(app: App) -> dict[str, int]:
    found: dict[str, int] = app.http.get("/limits").json()["bytes_by_form"]
    return found


def test_what_an_agent_writes_is_counted_after_its_turn(server: Server, app: App) -> None:
    session = app.session()
    app.turn(session, f"write big.txt {'x' * 300_000}").raise_for_status()
    until(lambda: forms(app)["workspaces"] > 300_000, "the workspace is measured")
    until(lambda: forms(app)["homes"] and forms(app)["home_copies"], "the home is measured")
    fork = app.http.post(f"/sessions/{session}/fork", json={}).json()["session_id"]
    before = forms(app)
    until(lambda: forms(app)["homes"] > before["homes"] // 2, "the fork's home is measured")
    limit(server, app, max_bytes=300_000)
    refused = app.turn(session, "echo more")
    assert refused.status_code == 429
    assert "most of it" in refused.json()["error"]
    for each in (session, fork):
        app.http.post(f"/sessions/{each}/purge").raise_for_status()
    server.admin().post("/admin/sweep").raise_for_status()
    assert stored(app) == 0


def states(app: App, sessions: list[str]) -> list[str]:
    """Of the first turn of each session."""
    return [app.http.get(f"/sessions/{one}/turns").json()["turns"][0]["state"] for one in sessions]


@pytest.mark.parametrize("own", [None, 2])
def test_an_app_has_so_many_agents(start: Callable[..., Server], own: int | None) -> None:
    server, most = start(APP_AGENTS="1"), own or 1
    app = server.app()
    if own is not None:
        limit(server, app, max_agents=own)
    sessions = [app.session() for _ in range(3)]
    for session in sessions:
        app.http.post(f"/sessions/{session}/turns", json={"prompt": "sleep 600"}).raise_for_status()
    until(lambda: states(app, sessions).count("running") == most, "as many as may run")
    assert states(app, sessions).count("queued") == 3 - most
    first = states(app, sessions).index("running")
    app.http.post(f"/sessions/{sessions[first]}/cancel", json={}).raise_for_status()
    until(lambda: states(app, sessions).count("running") == most, "the next one runs")
    limit(server, app, max_agents=3)
    until(lambda: states(app, sessions).count("running") == 2, "a limit that is raised lets the others run")
    assert app.turn(sessions[first], "echo hello").json()["outcome"] == "completed"


def test_an_app_without_agents_is_told_so(server: Server, app: App) -> None:
    limit(server, app, max_agents=0)
    refused = app.turn(app.session(), "echo hello")
    assert (refused.status_code, refused.json()["code"]) == (429, "limit_exceeded")
    assert "max_agents" in refused.json()["error"]
