"""Bad input is a 4xx in the one shape, never a 500, and the server goes on."""

import concurrent.futures
import socket
from collections.abc import Iterator

import httpx2
import psutil
import pytest

from tests.api.harness import App, Server

JSON = {"Content-Type": "application/json"}


def refused(reply: httpx2.Response, status: int, code: str) -> None:
    body = reply.json()
    assert (reply.status_code, body["code"]) == (status, code), reply.text
    assert set(body) >= {"ok", "error", "detail", "code"}
    assert body["ok"] is False
    assert isinstance(body["detail"], str)
    assert body["error"] == body["detail"]
    assert "Traceback" not in reply.text
    assert "x-request-id" in reply.headers
    assert reply.headers["x-request-id"] not in reply.text


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"",
        b"nope",
        b'{"prompt":NaN}',
        b'{"prompt":"\\ud800"}',
        b'{"prompt":"\xff"}',
        b"[" * 100_000,
        b"\x00",
    ],
    ids=lambda raw: repr(raw[:10]),
)
def test_a_body_that_is_not_json(app: App, raw: bytes) -> None:
    path = f"/sessions/{app.session()}/turn"
    reply = app.http.post(path, content=raw, headers=JSON)
    refused(reply, *((400, "invalid_json") if raw else (422, "invalid_request")))


@pytest.mark.parametrize(
    "body",
    [
        [],
        None,
        "x",
        7,
        {},
        {"prompt": ""},
        {"prompt": 3},
        {"prompt": None},
        {"prompt": ["x"]},
        {"prompt": "x", "files": "ff_x"},
        {"prompt": "x", "files": [1]},
        {"prompt": "x", "timeout_secs": 0},
        {"prompt": "x", "timeout_secs": -1},
        {"prompt": "x", "timeout_secs": "soon"},
        {"prompt": "x", "timeout_secs": 1e300},
        {"prompt": "x", "if_busy": "maybe"},
        {"prompt": "x", "expected_head": -1},
    ],
    ids=str,
)
def test_wrong_types_on_a_turn_are_422_with_the_field_in_words(app: App, body: object) -> None:
    """X-03: `detail` is a string."""
    session_id = app.session()
    reply = app.http.post(f"/sessions/{session_id}/turn", json=body)
    refused(reply, 422, "invalid_request")
    assert ": " in reply.json()["detail"]
    assert app.http.get(f"/sessions/{session_id}").json()["turn_count"] == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"agent": 3}, 422),
        ({"agent": ""}, 422),
        ({"meta": []}, 422),
        ({"meta": "x"}, 422),
        ({"title": "x" * 501}, 422),
        ({"labels": ["x" * 65]}, 422),
        ({"labels": [""]}, 422),
        ({"retention": "for ever"}, 422),
        ({"permission_mode": "whatever"}, 422),
        ({"agent": "no such agent"}, 400),
        ({"agent": "a\x00b"}, 400),
        ({"agent": "../../etc"}, 400),
        ({"cwd": "relative"}, 400),
        ({"cwd": "/no/such/folder/anywhere"}, 400),
        ({"cwd": "/tmp/a\x00b"}, 400),
        ({"persona": "nobody"}, 404),
        ({"parent_session_id": "nobody"}, 404),
    ],
    ids=str,
)
def test_what_a_session_cannot_be_made_of(app: App, body: dict[str, object], status: int) -> None:
    reply = app.http.post("/sessions", json=body)
    refused(reply, status, reply.json()["code"])
    assert app.http.get("/sessions").json()["count"] == 0


def test_odd_but_valid_values_are_kept(app: App) -> None:
    title = "\x00 \u2028 \U0001f980 e\u0301 \u202e"
    meta = {"\x00": "\x00", "": {"deep": [[[[[]]]]]}, "n": -(2**63), "f": 1e308}
    session_id = app.session(title=title, meta=meta, labels=["'; drop table sessions; --"])
    state = app.http.get(f"/sessions/{session_id}").json()
    assert (state["title"], state["meta"]) == (title, meta)
    assert app.http.get("/sessions", params={"label": "'; drop table sessions; --"}).json()["count"] == 1


def test_an_integer_that_cannot_be_kept_is_422_and_not_another_number(app: App) -> None:
    for meta in ({"n": 2**64}, {"deep": [{"n": -(2**63) - 1}]}):
        reply = app.http.post("/sessions", json={"meta": meta})
        refused(reply, 422, "invalid_request")
        assert "more than 64 bits" in reply.json()["error"]
    session_id = app.session(meta={"n": 2**64 - 1, "text": str(2**64)})
    refused(app.http.patch(f"/sessions/{session_id}", json={"meta": {"n": 2**64}}), 422, "invalid_request")
    assert app.http.get(f"/sessions/{session_id}").json()["meta"] == {"n": 2**64 - 1, "text": str(2**64)}


def test_a_body_nested_too_deeply_is_400(app: App) -> None:
    raw = b'{"meta":' + b'{"a":' * 240 + b"1" + b"}" * 241
    refused(app.http.post("/sessions", content=raw, headers=JSON), 400, "invalid_json")
    fine = b'{"meta":' + b'{"a":' * 100 + b"1" + b"}" * 101
    reply = app.http.post("/sessions", content=fine, headers=JSON)
    assert reply.status_code == 200
    assert app.http.get("/sessions").json()["count"] == 1


def test_a_title_of_twenty_megabytes_is_refused(app: App) -> None:
    refused(app.http.post("/sessions", json={"title": "x" * 20_000_000}), 422, "invalid_request")


def test_a_body_over_the_limit_is_413_also_in_chunks_of_unknown_number(app: App, server: Server) -> None:
    """C6."""

    def endless() -> Iterator[bytes]:
        yield b'{"title":"'
        for _ in range(640):
            yield b"x" * 100_000

    rss = psutil.Process(server.process.pid).memory_info().rss
    refused(app.http.post("/sessions", content=b"x" * 30_000_000, headers=JSON), 413, "body_too_large")
    refused(app.http.post("/sessions", content=endless(), headers=JSON), 413, "body_too_large")
    grown = psutil.Process(server.process.pid).memory_info().rss - rss
    assert grown < 120_000_000
    assert app.http.get("/sessions").status_code == 200


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json"],
)
def test_a_body_that_is_not_called_json_is_415(app: App, kind: str | None) -> None:
    """X-08."""
    headers = {} if kind is None else {"Content-Type": kind}
    for path in ("/sessions", f"/sessions/{app.session()}/reopen"):
        reply = app.http.post(path, content=b"{}", headers=headers)
        refused(reply, 415, "unsupported_media_type")
    fine = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert app.http.post("/sessions", content=b"{}", headers=fine).status_code == 200


def test_unknown_routes_and_methods_have_the_shape_and_no_redirects(app: App) -> None:
    for path in ("/nope", "/sessions/", "/api", "//", "/sessions//turn", "/%00", "/docs", "/redoc"):
        refused(app.http.get(path), 404, "route_not_found")
    reply = app.http.put("/sessions")
    refused(reply, 405, "method_not_allowed")
    assert reply.headers["allow"] == "GET, HEAD, POST"
    refused(app.http.request("PROPFIND", "/sessions"), 405, "method_not_allowed")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=1e3", "after=-1", "after=9999999999999999999"]
)
def test_paging_parameters_are_bounded(app: App, query: str) -> None:
    refused(app.http.get(f"/sessions/{app.session()}/events?{query}"), 422, "invalid_request")


def test_every_answer_carries_the_security_headers_and_none_of_cors(app: App, server: Server) -> None:
    """C9, C10."""
    for reply in (
        app.http.get("/sessions"),
        app.http.get("/nope"),
        server.client().get("/sessions"),
        server.client(Host="evil.example").get("/healthz"),
        app.http.options("/sessions", headers={"Access-Control-Request-Method": "POST"}),
    ):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert reply.headers["cache-control"] == "no-store"
        assert not [name for name in reply.headers if name.startswith("access-control-")]


def test_bytes_that_are_not_http_do_no_harm(server: Server, app: App) -> None:
    host, port = server.url.removeprefix("http://").rsplit(":", 1)
    for raw in (
        b"\x00\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"POST /sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65536)
            assert b" 500 " not in answer.split(b"\r\n")[0], (raw, answer)
    assert app.http.get("/sessions").status_code == 200


def test_bad_requests_in_parallel_leave_the_server_well(app: App, server: Server) -> None:
    session_id = app.session()
    bodies = [b"{", b"[]", b'{"prompt":1}', b'{"prompt":""}', b"\xff" * 1000]

    def send(number: int) -> int:
        content = bodies[number % len(bodies)]
        return app.http.post(f"/sessions/{session_id}/turn", content=content, headers=JSON).status_code

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = set(pool.map(send, range(100)))
    assert statuses <= {400, 422}
    assert app.turn(session_id, "echo well").status_code == 200
    assert "Traceback" not in server.log_text
