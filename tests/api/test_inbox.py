"""What agents ask for in all sessions of an app: one list, oldest first, of this app only."""

import time
from collections.abc import Callable
from typing import Any

from clawdforge import Forge
from tests.api.harness import App, Server, until
from tests.api.talk import state


def inbox(app: App, **params: Any) -> Any:
    reply = app.http.get("/permissions", params=params)
    assert reply.status_code == 200, reply.text
    page = reply.json()
    assert page["count"] == len(page["permissions"])
    return page


def ask(app: App, what: str) -> str:
    sid = app.session(permission_mode="ask", title=f"to {what}")
    before = len(inbox(app)["permissions"])
    app.http.post(f"/sessions/{sid}/turns", json={"prompt": f"ask {what}"})
    until(lambda: len(inbox(app)["permissions"]) > before, "the question")
    return sid


def test_all_questions_of_an_app_are_in_one_list(app: App, other: App) -> None:
    assert inbox(app) == {"ok": True, "permissions": [], "count": 0, "next": None}
    began = int(time.time())
    asked = [ask(app, what) for what in ("read", "write", "run")]
    page = inbox(app, state="pending")
    assert [row["session_id"] for row in page["permissions"]] == asked
    assert [row["title"] for row in page["permissions"]] == ["to read", "to write", "to run"]
    first = page["permissions"][0]
    assert (first["agent"], first["state"], first["turn_index"]) == ("claude", "pending", 1)
    assert began + 600 <= first["expires_at"] == first["requested_at"] + 600
    (alone,) = app.http.get(f"/sessions/{asked[0]}/permissions").json()["permissions"]
    assert {name: first[name] for name in alone} == alone
    assert inbox(other)["permissions"] == []
    found, cursor = [], None
    while True:
        page = inbox(app, limit=1, **({} if cursor is None else {"cursor": cursor}))
        found += [row["session_id"] for row in page["permissions"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == asked
    path = f"/sessions/{asked[1]}/permissions/{inbox(app)['permissions'][1]['permission_id']}"
    assert app.http.post(path, json={"decision": "reject"}).status_code == 200
    app.http.post(f"/sessions/{asked[0]}/cancel", json={})
    until(lambda: state(app, asked[0])["activity"] == "idle", "the end of the first")
    assert [row["session_id"] for row in inbox(app)["permissions"]] == [asked[2]]
    assert app.http.post(f"/sessions/{asked[2]}/purge").status_code == 200
    assert inbox(app)["permissions"] == []


def test_odd_parameters_are_refused(app: App) -> None:
    for params in ({"state": "decided"}, {"limit": 0}, {"limit": 1001}, {"cursor": "x"}, {"session_id": "s"}):
        assert app.http.get("/permissions", params=params).status_code == 422, params


def test_a_question_ends_with_its_time(start: Callable[..., Server]) -> None:
    server = start(PERMISSION_TIMEOUT_SECS="1.5")
    app = server.app()
    sid = ask(app, "wait")
    (row,) = inbox(app)["permissions"]
    assert row["expires_at"] - row["requested_at"] in (1, 2)
    until(lambda: not inbox(app)["permissions"], "the end of its time")
    until(lambda: state(app, sid)["activity"] == "idle", "the end of the turn")


def test_the_sdk_lists_them(server: Server, app: App) -> None:
    sids = [ask(app, "a"), ask(app, "b")]
    with Forge(base_url=server.url, token=app.token) as forge:
        found = list(forge.pending_permissions(page_size=1))
        assert [one.session_id for one in found] == sids
        assert found[0].title == "to a"
        forge.attach(sids[0]).decide(found[0].permission_id, "reject")
        assert [one.session_id for one in forge.pending_permissions()] == sids[1:]
