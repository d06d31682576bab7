"""Uploads over HTTP: whole or not at all, per app, never more than allowed, and readable by the agent."""

import json
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clawdforge import Forge
from tests.api.harness import App, Server, until
from tests.support.folders import files_below

MIB = 1024 * 1024
BOUNDARY = "frontier"
END = f"\r\n--{BOUNDARY}--\r\n".encode()


def part(name: str = "file", filename: str | None = "a.txt") -> bytes:
    named = f'; filename="{filename}"' if filename is not None else ""
    return f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode()


def send(app: App, body: Any, kind: str = f"multipart/form-data; boundary={BOUNDARY}") -> Any:
    return app.http.post("/files", content=body, headers={"Content-Type": kind})


def upload(app: App, content: bytes = b"hello", name: str = "a.txt") -> str:
    reply = app.http.post("/files", files={"file": (name, content)})
    assert reply.status_code == 200, reply.text
    return str(reply.json()["file_token"])


def say(app: App, session: str, prompt: str, **body: Any) -> str:
    """What the agent says to a prompt."""
    events = app.turn(session, prompt, **body).json()["events"]
    return "".join(event["content"] for event in events if event["type"] == "text")


def stored(server: Server) -> list[str]:
    """Every file below `files`, settled or not."""
    folder = server.data_dir / "files"
    return sorted(path.name for path in files_below(folder))


def raw(server: Server, app: App, body: bytes, length: int) -> socket.socket:
    """A request whose body is said to have `length` bytes."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    head = (
        f"POST /files HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {app.token}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {length}\r\n\r\n"
    )
    connection = socket.create_connection((host, int(port)))
    connection.sendall(head.encode() + body)
    return connection


def test_a_file_comes_back_as_it_was_sent(server: Server, app: App) -> None:
    """S0-105."""
    content = bytes(range(256)) * 5000 + b"\r\n--frontier\r\n"
    reply = app.http.post("/files", files={"file": ("réport \u202e.pdf", content)})
    body = reply.json()
    assert set(body) == {"ok", "file_token", "name", "size"}
    assert body["file_token"].startswith("ff_")
    assert (body["ok"], body["name"], body["size"]) == (True, "réport .pdf", len(content))
    got = app.http.get(f"/files/{body['file_token']}")
    assert got.content == content
    assert got.headers["content-type"] == "application/octet-stream"
    assert got.headers["content-disposition"] == "attachment; filename*=UTF-8''r%C3%A9port%20.pdf"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["content-length"] == str(len(content))
    path = server.data_dir / "files" / app.name / body["file_token"]
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert app.http.delete(f"/files/{body['file_token']}").json() == {"ok": True}
    assert not path.exists()
    assert app.http.get(f"/files/{body['file_token']}").json()["code"] == "file_not_found"
    assert app.http.delete(f"/files/{body['file_token']}").status_code == 404


def test_another_apps_file_is_an_unknown_one(app: App, other: App) -> None:
    token, session = upload(app, b"mine"), other.session()
    for method in ("GET", "DELETE"):
        unknown = other.http.request(method, "/files/ff_nothing")
        foreign = other.http.request(method, f"/files/{token}")
        assert (foreign.status_code, foreign.content) == (404, unknown.content)
    unknown = other.turn(session, "x", files=["ff_nothing"])
    foreign = other.turn(session, "x", files=[token])
    assert (foreign.status_code, foreign.content) == (400, unknown.content)
    assert foreign.json()["code"] == "unknown_file"
    assert other.http.get(f"/sessions/{session}").json()["turn_count"] == 0
    assert app.http.get(f"/files/{token}").content == b"mine"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "missing_parameter"),
        (END, 400, "missing_parameter"),
        (part("other") + b"x" + END, 400, "missing_parameter"),
        (part() + b"x" + END.replace(b"\r\n--f", b"\r\n--f", 1)[:-4], 422, "invalid_request"),
        (part() + b"never ended", 422, "invalid_request"),
        (part() + b"x\r\n" + part() + b"y" + END, 422, "invalid_request"),
        (b"--nonsense\r\n\r\n", 422, "invalid_request"),
        (b"--" + BOUNDARY.encode() + b"\r\n" + b"A: b\r\n" * 5000, 422, "invalid_request"),
    ],
    ids=["empty", "no parts", "no file", "half an end", "cut off", "two files", "no form", "many headers"],
)
def test_a_form_that_is_not_right_leaves_nothing(
    server: Server, app: App, body: bytes, status: int, code: str
) -> None:
    before = stored(server)
    reply = send(app, body)
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text
    assert stored(server) == before


@pytest.mark.parametrize(
    "kind", ["application/json", "", "text/plain", "multipart/mixed; boundary=x", "application/octet-stream"]
)
def test_what_is_no_form_is_refused(app: App, kind: str) -> None:
    reply = send(app, b"{}", kind)
    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported_media_type")


def test_a_form_without_a_boundary_is_refused(app: App) -> None:
    assert send(app, b"x", "multipart/form-data").status_code == 422
    assert send(app, b"x", "multipart/form-data; boundary=" + "b" * 500).status_code == 422


def test_other_fields_are_passed_over(app: App) -> None:
    body = part("purpose", None) + b"assistants\r\n" + part() + b"x" + b"\r\n" + part("z", None) + b"1" + END
    reply = send(app, body)
    assert (reply.status_code, reply.json()["size"]) == (200, 1)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../../etc/cron.d/x", "x"),
        ("..", "file"),
        ("a\\b\\c.txt", "c.txt"),
        ("x" * 3000 + ".txt", "x" * 251 + ".txt"),
        ("name\x01\x02.txt", "name.txt"),
        ("", "file"),
    ],
)
def test_a_hostile_name_is_only_a_name(server: Server, app: App, name: str, kept: str) -> None:
    body = send(app, part(filename=name) + b"x" + END).json()
    assert body["name"] == kept
    assert (server.data_dir / "files" / app.name / body["file_token"]).read_bytes() == b"x"


def test_no_more_than_the_limit_is_taken(start: Callable[..., Server]) -> None:
    server = start(MAX_FILE_BYTES="1MiB")
    app = server.app()
    assert len(app.http.get(f"/files/{upload(app, b'x' * MIB)}").content) == MIB
    before = stored(server)

    def chunks(size: int) -> Iterator[bytes]:
        yield part()
        for _ in range(size // 4096):
            yield b"x" * 4096
        yield END

    for body in (part() + b"x" * (MIB + 1) + END, part() + b"x" * 9 * MIB + END, chunks(MIB + 4096)):
        reply = send(app, body)
        assert (reply.status_code, reply.json()["code"]) == (413, "body_too_large")
        assert "CLAWDFORGE_MAX_FILE_BYTES" in reply.json()["error"]
        assert stored(server) == before


def test_a_body_shorter_than_it_says_leaves_nothing(server: Server, app: App) -> None:
    before = stored(server)
    with raw(server, app, part() + b"x" * MIB, 10 * MIB):
        until(lambda: len(stored(server)) > len(before), "the upload's start")
    until(lambda: stored(server) == before, "the end of what was left")


def test_a_killed_server_leaves_no_half_file(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    token = upload(app, b"whole")
    with raw(server, app, part() + b"x" * MIB, 10 * MIB):
        until(lambda: len(stored(server)) == 2, "the upload's start")
        server.stop(signal.SIGKILL)
    assert len(stored(server)) == 2
    server.start()
    assert stored(server) == [token]
    assert server.sql("SELECT file_token FROM files") == [(token,)]
    assert server.client(app.token).get(f"/files/{token}").content == b"whole"


def test_an_app_stores_no_more_than_it_may(server: Server, app: App, other: App) -> None:
    limits = {"app_name": app.name, "limits": {"max_bytes": 1000}}
    assert server.admin().post("/admin/apps", json=limits).status_code == 200
    token = upload(app, b"x" * 600)
    before = stored(server)
    refused = app.http.post("/files", files={"file": ("b", b"x" * 401)})
    assert (refused.status_code, refused.json()["code"]) == (429, "limit_exceeded")
    assert int(refused.headers["retry-after"]) >= 1
    assert stored(server) == before
    upload(other, b"x" * 5000)
    upload(app, b"x" * 400)
    assert app.http.post("/files", files={"file": ("b", b"x")}).status_code == 429
    app.http.delete(f"/files/{token}")
    upload(app, b"x" * 600)


def test_a_large_file_is_never_in_memory(server: Server, app: App) -> None:
    def peak() -> int:
        text = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) * 1024

    def body() -> Iterator[bytes]:
        yield part()
        for _ in range(200):
            yield b"\r\n--fronti" * (MIB // 10)
        yield END

    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
    before = peak()
    reply = send(app, body())
    assert reply.status_code == 200, reply.text
    with app.http.stream("GET", f"/files/{reply.json()['file_token']}") as got:
        assert sum(len(chunk) for chunk in got.iter_raw()) == reply.json()["size"] > 200 * 1_000_000
    assert peak() - before < 40 * MIB


def test_the_agent_reads_what_was_attached(server: Server, app: App) -> None:
    """S0-37, S0-38, S0-39: a header with absolute paths first, the caller's prompt last."""
    session = app.session()
    one, two = upload(app, b"first file", "one.txt"), upload(app, b"second", "../two.txt")
    said = say(app, session, "look at these", files=[one, two])
    assert said.startswith("[Attached files]\n- /")
    assert said.endswith("\n\nlook at these")
    paths = [line[2:] for line in said.splitlines() if line.startswith("- ")]
    assert [Path(path).name for path in paths] == ["one.txt", "two.txt"]
    app.http.delete(f"/files/{one}")  # the session keeps its own
    for command in ("read", "fs-read"):
        got = [say(app, session, f"{command} {path}") for path in paths]
        assert got == ["first file", "second"], command
    assert say(app, session, "plain") == "plain"
    where = server.data_dir / "files" / app.name / two
    for command in ("read", "fs-read"):
        assert say(app, session, f"{command} {where}").startswith("error"), command


def test_a_turn_whose_file_was_deleted_in_the_queue_says_so(app: App) -> None:
    session, token = app.session(), upload(app)
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "sleep 30"})
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "echo x", "files": [token]})
    app.http.delete(f"/files/{token}")
    app.http.post(f"/sessions/{session}/cancel")

    def ended() -> Any:
        turn = app.http.get(f"/sessions/{session}/turns").json()["turns"][1]
        return turn if turn["state"] == "ended" else None

    turn = until(ended, "the end of the second turn")
    assert turn["outcome"] == "failed"
    assert "upload it again" in json.dumps(turn)


def test_the_sdk_uploads_and_downloads(server: Server, app: App, tmp_path: Path) -> None:
    source = tmp_path / "source.bin"
    source.write_bytes(b"\x00\xff" * 100_000)
    with Forge(base_url=server.url, token=app.token) as forge:
        reply = forge.upload(source)
        assert (reply.name, reply.size) == ("source.bin", 200_000)
        assert forge.download(reply.file_token) == source.read_bytes()
        assert forge.download_to(reply.file_token, tmp_path / "copy.bin") == 200_000
        forge.delete_file(reply.file_token)
    assert (tmp_path / "copy.bin").read_bytes() == source.read_bytes()
