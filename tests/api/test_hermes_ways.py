"""What the page of hermes-webui needs besides chat: files, a way in, and a transcript to keep."""

import re
from typing import Any

import httpx2
import pytest

from tests.api.harness import ADMIN_TOKEN, App, Server
from tests.api.test_hermes_chat import frames, new, session, start, started, text

pytestmark = pytest.mark.on_both

OWN = {"Sec-Fetch-Site": "same-origin"}


def upload(app: App, session_id: str | None, name: str, content: bytes = b"hi") -> httpx2.Response:
    form = {} if session_id is None else {"session_id": session_id}
    return app.http.post("/api/upload", data=form, files={"file": (name, content)})


def test_an_attached_file_is_where_the_agent_can_read_it(app: App) -> None:
    """By its name, as the page of April sends it, and as an object with one, as that of August does."""
    session_id = new(app)
    for content, is_object in ((b"first", False), (b"second", True)):
        reply = upload(app, session_id, "notes.txt", content)
        assert reply.status_code == 200, reply.text
        sent = reply.json()
        assert re.fullmatch(r"notes-ff_[\w-]{8}\.txt", sent["filename"])
        assert (sent["size"], sent["mime"], sent["is_image"]) == (len(content), "text/plain", False)
        attached = {**sent, "name": sent["filename"]} if is_object else sent["filename"]
        stream_id = started(app, session_id, "recall", attachments=[attached])
        frames(app, stream_id)
        told = text(frames(app, started(app, session_id, "recall")))
        (path,) = set(re.findall(rf"/[\w./-]*/{sent['filename']}", told))
        assert text(frames(app, started(app, session_id, f"read {path}"))) == content.decode()


def test_two_files_of_one_name_are_two(app: App) -> None:
    session_id = new(app)
    names = [upload(app, session_id, "a.png").json()["filename"] for _ in range(2)]
    assert len(set(names)) == 2
    assert start(app, session_id, "echo x", attachments=names).status_code == 200


@pytest.mark.parametrize(
    "name", ["nothing.txt", "notes-ff_AAAAAAAA.txt", "ff_" + "A" * 43, "", "x" * 1025, "../../etc/passwd"]
)
def test_a_file_that_was_not_sent_is_not_attached(app: App, name: str) -> None:
    session_id = new(app)
    for attached in (name, {"name": name}):
        assert start(app, session_id, "echo x", attachments=[attached]).status_code == 400
    assert session(app, session_id)["message_count"] == 0


def test_a_file_is_its_apps_alone(app: App, other: App) -> None:
    mine, theirs = new(app), new(other)
    foreign = upload(other, mine, "a.txt")
    unknown = upload(other, "nothing", "a.txt")
    assert (foreign.status_code, foreign.json()["error"]) == (404, unknown.json()["error"])
    name = upload(app, mine, "a.txt").json()["filename"]
    refused = start(other, theirs, "echo x", attachments=[name])
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_file")
    assert start(app, mine, "echo x", attachments=[name]).status_code == 200


def test_a_form_needs_a_session_and_a_file(app: App) -> None:
    assert upload(app, None, "a.txt").status_code == 400
    assert (
        app.http.post("/api/upload", data={"session_id": new(app)}, files={"b": ("b", b"")}).status_code
        == 400
    )
    assert app.http.post("/api/upload", json={"session_id": new(app)}).status_code == 415


def test_a_long_name_keeps_its_ending_and_its_mark(app: App) -> None:
    session_id = new(app)
    name = upload(app, session_id, "é" * 300 + ".md").json()["filename"]
    assert len(name.encode()) <= 255
    assert re.search(r"-ff_[\w-]{8}\.md$", name)
    assert start(app, session_id, "echo x", attachments=[name]).status_code == 200


def log_in(server: Server, password: Any) -> httpx2.Client:
    client = server.client(**OWN)
    client.post("/api/auth/login", json={"password": password})
    return client


def test_a_token_is_the_password_of_the_page(server: Server, app: App) -> None:
    client = log_in(server, app.token)
    made = client.post("/api/session/new", json={})
    assert made.status_code == 200, made.text
    session_id = made.json()["session"]["session_id"]
    assert session(app, session_id)["session_id"] == session_id
    assert client.post("/api/auth/logout", json={}).json()["ok"] is True
    assert client.get("/api/session", params={"session_id": session_id}).status_code == 401


@pytest.mark.parametrize("password", ["wrong", "cf_wrong", ADMIN_TOKEN])
def test_another_password_is_none(server: Server, password: str) -> None:
    client = server.client(**OWN)
    reply = client.post("/api/auth/login", json={"password": password})
    assert (reply.status_code, reply.json()["ok"]) == (401, False)
    assert "set-cookie" not in reply.headers
    assert client.post("/api/session/new", json={}).status_code == 401


@pytest.mark.parametrize("body", [{}, {"password": ""}, {"password": None}, {"password": "x" * 513}])
def test_a_body_without_a_password_is_refused(server: Server, body: dict[str, Any]) -> None:
    assert server.client(**OWN).post("/api/auth/login", json=body).status_code == 400


def test_a_session_is_exported_as_a_page_that_runs_nothing(app: App) -> None:
    session_id = new(app)
    frames(app, started(app, session_id, "echo <script>alert(1)</script> & \u202e"))
    app.http.post("/api/session/rename", json={"session_id": session_id, "title": "<b>bold</b>"})
    query = {"session_id": session_id, "format": "html", "theme": "dark", "palette": "e30="}
    reply = app.http.get("/api/session/export", params=query)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-disposition"] == f'attachment; filename="hermes-{session_id}.html"'
    assert "<script" not in reply.text
    assert "<b>" not in reply.text
    assert "<h1>&lt;b&gt;bold&lt;/b&gt;</h1>" in reply.text
    assert reply.text.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp;") == 2
    assert app.http.get("/api/session/export", params={**query, "format": "pdf"}).status_code == 400


def test_a_long_session_is_exported_whole(app: App) -> None:
    rows = [{"role": "user" if i % 2 == 0 else "assistant", "content": f"row {i}."} for i in range(2000)]
    made = app.http.post("/api/session/import", json={"messages": rows}).json()["session"]["session_id"]
    reply = app.http.get("/api/session/export", params={"session_id": made, "format": "html"})
    assert [f"row {i}." for i in range(2000)] == re.findall(r"<pre>(row \d+\.)</pre>", reply.text)
