"""Share links read one session up to a turn, and are a way to nothing else."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from clawdforge import Forge
from clawdforge.client.errors import ShareNotFound
from tests.api.harness import App, Server, until
from tests.api.test_tenancy import operations

GONE = {"code": "share_not_found"}


def share(app: App, session_id: str, **body: Any) -> dict[str, Any]:
    reply = app.http.post(f"/sessions/{session_id}/shares", json=body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


def texts(reader: httpx2.Client, **params: Any) -> list[str]:
    reply = reader.get("/shared/messages", params=params)
    assert reply.status_code == 200, reply.text
    return [message["content"] for message in reply.json()["messages"]]


def said(app: App, *words: str, **body: Any) -> str:
    session_id = app.session(**body)
    for word in words:
        app.turn(session_id, f"echo {word}")
    return session_id


def test_a_link_shows_what_was_there_and_nothing_later(server: Server, app: App) -> None:
    session_id = said(app, "one", "two", title="a talk")
    made = share(app, session_id)
    assert made["path"] == f"ui/shared#{made['token']}"
    assert made["up_to_turn"] == 2
    reader = server.client(made["token"])
    shown = reader.get("/shared").json()
    assert (shown["title"], shown["agent"], shown["up_to_turn"]) == ("a talk", "claude", 2)
    assert shown["expires_at"] == made["expires_at"]
    app.turn(session_id, "echo three")
    app.http.post(f"/api/sessions/{session_id}/messages", json={"content": "posted"})
    assert texts(reader) == ["echo one", "one", "echo two", "two"]
    assert texts(reader, tail=1, limit=1) == ["two"]
    assert texts(reader, after=4) == []
    assert reader.get("/shared/messages", params={"after": 2, "limit": 2}).json()["next"] is None
    assert texts(reader, before=10**6, limit=2) == ["echo two", "two"]


def test_pages_lead_from_one_end_to_the_other(server: Server, app: App) -> None:
    session_id = said(app, "a", "b", "c")
    reader = server.client(share(app, session_id, up_to_turn=2)["token"])
    page = reader.get("/shared/messages", params={"limit": 3}).json()
    assert [page["previous"], page["next"], page["count"]] == [None, 3, 3]
    last = reader.get("/shared/messages", params={"after": 3}).json()
    assert ([one["content"] for one in last["messages"]], last["next"]) == (["b"], None)
    end = reader.get("/shared/messages", params={"tail": 1, "limit": 3}).json()
    assert [one["content"] for one in end["messages"]] == ["a", "echo b", "b"]
    assert (end["previous"], end["next"]) == (2, None)


def count_said(app: App, session_id: str) -> int:
    """How often an agent has said something, also in a turn that runs."""
    events = app.http.get(f"/sessions/{session_id}/events").json()["events"]
    return sum(event["type"] == "text" for event in events)


def test_a_named_turn_is_the_last_and_its_answer_may_come_later(server: Server, app: App) -> None:
    session_id = said(app, "one")
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "echo said\nhang"})
    until(lambda: app.http.get(f"/sessions/{session_id}").json()["running_turn"] == 2, "the turn's start")
    first = server.client(share(app, session_id, up_to_turn=1)["token"])
    both = server.client(share(app, session_id)["token"])
    assert texts(first) == ["echo one", "one"]
    assert texts(both)[2:] == ["echo said\nhang"]
    until(lambda: count_said(app, session_id) == 2, "the agent's word")
    app.http.post(f"/sessions/{session_id}/cancel")
    until(lambda: texts(both)[3:] == ["said"], "the rest of the turn")
    app.turn(session_id, "echo after")
    assert len(texts(both)) == 4
    assert app.http.post(f"/sessions/{session_id}/shares", json={"up_to_turn": 9}).status_code == 404


def test_what_was_taken_back_is_not_shown(server: Server, app: App) -> None:
    session_id = said(app, "one", "two")
    reader = server.client(share(app, session_id)["token"])
    app.http.post(f"/sessions/{session_id}/undo")
    assert texts(reader) == ["echo one", "one"]
    app.turn(session_id, "echo other")
    assert texts(reader) == ["echo one", "one"]
    refused = app.http.post(f"/sessions/{session_id}/shares", json={"up_to_turn": 2})
    assert refused.status_code == 422


def test_the_workspace_is_not_named(server: Server, app: App) -> None:
    session_id = app.session(title="in a folder")
    cwd = app.http.get(f"/sessions/{session_id}").json()["cwd"]
    app.turn(session_id, f"cwd\necho {cwd}/notes.md and {cwd}x\nthink in {cwd}\ntool {cwd}/a")
    app.http.patch(f"/sessions/{session_id}", json={"title": f"work in {cwd}"})
    reader = server.client(share(app, session_id)["token"])
    body = reader.get("/shared/messages").text
    assert cwd in app.http.get(f"/sessions/{session_id}/messages").text
    assert cwd not in body.replace(f"{cwd}x", "")
    assert "…/notes.md" in body
    assert reader.get("/shared").json()["title"] == "work in …"


def test_a_link_opens_nothing_else(server: Server, app: App) -> None:
    """The whole route table with its token: nothing but the two routes that are for it."""
    session_id = said(app, "one")
    made = share(app, session_id)
    reader = server.client(made["token"])
    walked = 0
    for operation in operations(server.client().get("/openapi.json").json()):
        if operation.path in ("/shared", "/shared/messages") or not operation.secured:
            continue
        walked += 1
        assert operation.call(reader, session_id).status_code in (401, 404), operation
    assert walked > 60
    assert reader.post("/login", json={"token": made["token"]}).status_code == 401
    assert reader.get("/login").json()["app_name"] is None
    same = server.client(Cookie=f"clawdforge_session_{server.url.rsplit(':', 1)[1]}={made['token']}")
    assert same.get("/sessions", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 401


def test_whatever_is_wrong_with_a_link_is_the_same_404(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    session_id, purged = said(app, "one"), said(app, "two")
    revoked, lost = share(app, session_id), share(app, purged)
    expired = share(app, session_id, expires_in_secs=1)
    kept = share(app, session_id)
    assert app.http.delete(f"/sessions/{session_id}/shares/{revoked['share_id']}").status_code == 200
    assert app.http.post(f"/sessions/{purged}/purge").status_code == 200
    until(lambda: server.client(expired["token"]).get("/shared").status_code == 404, "the link's end", 10)
    listed = app.http.get(f"/sessions/{session_id}/shares").json()
    assert [one["share_id"] for one in listed["shares"]] == [kept["share_id"]]
    assert kept["token"] not in str(listed)
    tokens = ["cfv_wrong", app.token, revoked["token"], lost["token"], expired["token"], None]
    for path in ("/shared", "/shared/messages"):
        replies = [server.client(token).get(path) for token in tokens]
        assert {(one.status_code, one.content) for one in replies} == {(404, replies[0].content)}
        assert replies[0].json()["code"] == GONE["code"]
    server.stop()
    server.start()
    assert server.client(kept["token"]).get("/shared").status_code == 200
    stored = server.database.read_bytes()
    assert kept["token"].encode() not in stored


def test_sharing_needs_the_right_to_hand_out_tokens_and_is_audited(server: Server, app: App) -> None:
    session_id = said(app, "one")
    reply = app.http.post("/tokens", json={"scopes": ["read", "prompt", "decide"]}).json()
    narrow = server.client(reply["token"])
    assert narrow.post(f"/sessions/{session_id}/shares", json={}).status_code == 403
    assert narrow.get(f"/sessions/{session_id}/shares").status_code == 200
    made = share(app, session_id)
    app.http.delete(f"/sessions/{session_id}/shares/{made['share_id']}")
    entries = server.admin().get("/admin/audit", params={"app_name": app.name}).json()["entries"]
    told = [entry for entry in entries if entry["event"] in ("shared", "share revoked")]
    assert [entry["details"]["share_id"] for entry in told] == [made["share_id"]] * 2
    assert made["token"] not in str(entries)


def test_a_link_of_another_app_cannot_be_revoked(app: App, other: App) -> None:
    session_id = said(app, "one")
    made = share(app, session_id)
    own = said(other, "mine")
    assert other.http.delete(f"/sessions/{own}/shares/{made['share_id']}").status_code == 404
    assert len(app.http.get(f"/sessions/{session_id}/shares").json()["shares"]) == 1


@pytest.mark.parametrize(
    "body", [{"expires_in_secs": 0}, {"expires_in_secs": 10**9}, {"up_to_turn": 0}, {"up_to_turn": "x"}]
)
def test_a_share_is_checked(app: App, body: dict[str, Any]) -> None:
    assert app.http.post(f"/sessions/{app.session()}/shares", json=body).status_code == 422


def test_the_sdk_shares_and_reads(server: Server, app: App) -> None:
    with Forge(server.url, app.token) as forge, forge.session() as session:
        session.turn("echo hi")
        made = session.share(expires_in_secs=60)
        with Forge(server.url, made.token) as reader:
            assert reader.shared().up_to_turn == 1
            assert [one.content for one in reader.shared_messages(tail=True).messages] == ["echo hi", "hi"]
            assert [one.share_id for one in session.shares()] == [made.share_id]
            session.revoke_share(made.share_id)
            with pytest.raises(ShareNotFound):
                reader.shared()
