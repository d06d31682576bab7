"""Limits at the door of a real server: connections, time, headers, bodies, parts of a form."""

import contextlib
import json
import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clawdforge.http.connections.protocol import MAX_HEADERS
from clawdforge.http.requests.multipart import MAX_PARTS
from tests.api.harness import App, Server, until

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = HALF + b"\r\n"


@contextlib.contextmanager
def connected(
    server: Server, *first: bytes, rest: int = 0, peer: str = "127.0.0.1"
) -> Iterator[socket.socket]:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=40, source_address=(peer, 0)) as end:
        for data in (*first, b"x" * rest):
            end.sendall(data)
        yield end


def answer(end: socket.socket) -> tuple[int, dict[str, Any], bytes]:
    """Status, body and headers of all that comes until the server hangs up."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := end.recv(65536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    return (int(head.split()[1]), json.loads(body), head.lower()) if head else (0, {}, b"")


def is_turned_out(end: socket.socket) -> bool:
    """Whether the server has hung up, or has said why it does."""
    end.setblocking(False)
    try:
        return end.recv(9, socket.MSG_PEEK) in (b"", b"HTTP/1.1 ")
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_crowd_of_half_open_connections_keeps_nobody_out(start: Callable[..., Server]) -> None:
    server = start(MAX_CONNECTIONS="40", MAX_CONNECTIONS_PER_PEER="30", HEADER_TIMEOUT_SECS="600")
    app = server.app()
    with contextlib.ExitStack() as crowd:
        ends = [crowd.enter_context(connected(server, HALF)) for _ in range(100)]
        for _ in range(12):
            assert server.client(app.token).get("/sessions").status_code == 200
        until(lambda: sum(not is_turned_out(end) for end in ends) <= 30, "there is no room for more")
        assert not is_turned_out(ends[-1])
    assert server.log_text.count("\n") < 200


@pytest.mark.parametrize("in_all", [4, 40])
def test_connections_in_use_make_no_room_and_the_operator_still_gets_in(
    start: Callable[..., Server], in_all: int
) -> None:
    """At the limit of all and at that of one address, one below, one above, and after a restart."""
    server = start(MAX_CONNECTIONS=str(in_all), MAX_CONNECTIONS_PER_PEER="4")
    app = server.app()
    session = app.session()
    for _ in range(2):
        bearer = f"Authorization: Bearer {app.token}\r\n".encode()
        reads = b"GET /sessions/%s/events HTTP/1.1\r\nHost: localhost\r\n" % session.encode()
        reads += bearer + b"Accept: text/event-stream\r\n\r\n"
        with contextlib.ExitStack() as readers:
            for _ in range(3):
                assert readers.enter_context(connected(server, reads)).recv(12) == b"HTTP/1.1 200"
            with connected(server, WHOLE) as fourth:
                assert fourth.recv(12) == b"HTTP/1.1 200"
            assert readers.enter_context(connected(server, reads)).recv(12) == b"HTTP/1.1 200"
            with connected(server, WHOLE) as fifth:
                status, body, head = answer(fifth)
                assert (status, body["code"]) == (503, "server_busy")
                assert b"retry-after: 1" in head
            if in_all > 4:
                with connected(server, WHOLE, peer="127.0.0.2") as elsewhere:
                    assert elsewhere.recv(12) == b"HTTP/1.1 200"
            with socket.socket(socket.AF_UNIX) as operator:
                operator.connect(str(server.data_dir / "operator.sock"))
                operator.sendall(b"GET /admin/apps HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert operator.recv(12) == b"HTTP/1.1 200"
        server.stop()
        server.start()


@pytest.mark.parametrize(
    "sent", [HALF, b"", HALF + b"A: b\r\n"], ids=["half of the headers", "nothing", "a header at a time"]
)
def test_headers_have_to_come_in_time(start: Callable[..., Server], sent: bytes) -> None:
    server = start(HEADER_TIMEOUT_SECS="0.1")
    with connected(server, sent) as end:
        status, body, _ = answer(end)
    assert (status, body.get("code")) == ((408, "too_slow") if sent else (0, None))


def test_a_connection_is_kept_for_the_next_request_and_not_for_ever(start: Callable[..., Server]) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(start(KEEP_ALIVE_SECS="1")) as end:
        end.settimeout(20)
        for _ in range(3):
            end.sendall(request)
            assert end.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert end.recv(1) == b"", "nobody asks any more"


def test_a_body_has_to_come_on(start: Callable[..., Server]) -> None:
    server = start(BODY_TIMEOUT_SECS="0.1")
    app = server.app()
    headers = f"POST /sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {app.token}\r\n"
    headers += "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
    with connected(server, headers.encode(), rest=10) as end:
        status, body, _ = answer(end)
    assert (status, body["code"]) == (408, "too_slow")
    until(lambda: "POST /sessions " in server.log_text, "the request ended")
    assert '"level": "error"' not in server.log_text


def test_a_client_that_takes_nothing_is_dropped_and_can_resume(start: Callable[..., Server]) -> None:
    server = start(SEND_TIMEOUT_SECS="0.5")
    app = server.app()
    session = app.session()
    # Whoever asked for the whole answer at once would have to take it as fast.
    app.http.post(f"/sessions/{session}/turns", json={"prompt": "flood 4000 4000"}).raise_for_status()
    until(lambda: app.http.get(f"/sessions/{session}").json()["activity"] == "idle", "the turn ended")
    reads = f"GET /sessions/{session}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    request = f"{reads}Authorization: Bearer {app.token}\r\n\r\n".encode()
    with connected(server, request):
        # No buffer holds what it was to get, so its request can only end because it was dropped.
        until(lambda: "GET /sessions/{session_id}/events" in server.log_text, "it was dropped")
        assert "clawdforge_readers 0" in server.admin().get("/metrics").text
    last = app.http.get(f"/sessions/{session}").json()["head"]
    with app.stream(f"/sessions/{session}/events", headers={"Last-Event-ID": str(last - 1)}) as stream:
        assert next(iter(stream)).id == str(last)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"A: b\r\n" * (MAX_HEADERS - 1) + b"\r\n", 200),
        (b"A: b\r\n" * MAX_HEADERS + b"\r\n", 431),
        (b"A: " + b"b" * 400_000, 431),
        (b"\0\r\n\r\n", 400),
    ],
    ids=["as many as there may be", "one more", "too long", "no header"],
)
def test_headers_have_a_largest_size(server: Server, headers: bytes, status: int) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + headers
    with connected(server) as end:
        with contextlib.suppress(OSError):
            end.sendall(request)
        if status == 200:
            assert end.recv(12) == b"HTTP/1.1 200"
            return
        found, body, _ = answer(end)
    assert (found, body["ok"]) == (status, False)


@pytest.mark.parametrize("path", ["/login", "/sessions", "/files", "/admin/tokens", "/nowhere"])
def test_nobody_reads_the_large_body_of_a_stranger(server: Server, path: str) -> None:
    """It is answered although nothing of the body is ever sent."""
    request = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4097\r\n\r\n"
    with connected(server, request.encode()) as end:
        end.settimeout(20)
        status = int(end.recv(12).split()[1])
    assert status == {"/login": 413, "/nowhere": 404}.get(path, 401)


def test_a_login_fits(server: Server) -> None:
    for size, status in ((4095, 401), (4096, 401), (4097, 413)):
        body = json.dumps({"token": "x"}).ljust(size)
        reply = server.client().post("/login", content=body, headers={"Content-Type": "application/json"})
        assert reply.status_code == status


FREE, HALF_OF_IT = 64 * 1024, 2 * 1024 * 1024


def post(app: App, size: int) -> int:
    body = b'{"prompt": "' + b"x" * (size - 14) + b'"}'
    headers = {"Content-Type": "application/json"}
    return int(app.http.post("/sessions/none/turns", content=body, headers=headers).status_code)


def measures(server: Server) -> str:
    return server.admin().get("/metrics").text


def check_shared_memory(server: Server, app: App, other: App) -> None:
    assert post(app, FREE + HALF_OF_IT + 1) == 429
    assert post(app, FREE + HALF_OF_IT) == 404
    head = f"POST /sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {app.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {FREE + HALF_OF_IT}\r\n\r\n"
    with connected(server, head.encode(), rest=FREE + HALF_OF_IT - 1):
        # Before that, another body of the app might get the last byte of its half, and this one be refused.
        until(lambda: f"clawdforge_body_bytes {HALF_OF_IT - 1}\n" in measures(server), "its half is taken")
        assert post(app, FREE + 2) == 429
        assert post(app, FREE) == 404
        assert post(other, FREE + HALF_OF_IT) == 404
    until(lambda: post(app, FREE + HALF_OF_IT) == 404, "what was taken is given back")


def test_bodies_share_the_memory_for_them(start: Callable[..., Server]) -> None:
    """At the limit, one above, and after a restart; a small body always gets in."""
    server = start(MAX_BODIES_BYTES="4MiB")
    check_shared_memory(server, server.app(), server.app())
    server.stop()
    server.start()
    check_shared_memory(server, server.app(), server.app())


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_answer_comes_before_what_is_said_of_the_next_request(server: Server, method: str) -> None:
    """Also one without a body, whose head nothing follows."""
    asked = f"{method} /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    with connected(server, f"{asked}GARBAGE\r\n\r\n".encode()) as end:
        received = b""
        while piece := end.recv(65536):
            received += piece
    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.count(b"HTTP/1.1 400 ") == 1


@pytest.mark.parametrize(("parts", "status"), [(MAX_PARTS - 1, 200), (MAX_PARTS, 200), (MAX_PARTS + 1, 413)])
def test_a_form_has_few_parts(app: App, parts: int, status: int) -> None:
    fields = {f"field{number}": "x" for number in range(parts - 1)}
    reply = app.http.post("/files", data=fields, files={"file": ("a.txt", b"abc")})
    assert reply.status_code == status


@pytest.mark.parametrize(("size", "status"), [(65_536, 200), (65_537, 413)])
def test_a_form_holds_little_but_its_file(app: App, size: int, status: int) -> None:
    reply = app.http.post("/files", data={"other": "x" * size}, files={"file": ("a.txt", b"abc")})
    assert reply.status_code == status


def test_the_limit_of_descriptors_is_raised(start: Callable[..., Server]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = 200 + len(list(Path("/proc/self/fd").iterdir()))  # we need some ourselves
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        server = start(cold=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    found = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    assert found == (min(hard, 65_536), hard)


def test_a_server_without_descriptors_says_so_a_few_times_and_recovers(start: Callable[..., Server]) -> None:
    server = start(MAX_CONNECTIONS="2000", MAX_CONNECTIONS_PER_PEER="2000", HEADER_TIMEOUT_SECS="600")
    app = server.app()
    few = 40 + len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (few, few))
    with contextlib.ExitStack() as crowd:
        for _ in range(100):
            crowd.enter_context(connected(server, HALF))
        until(lambda: "no connection can be taken" in server.log_text, "descriptors ran out")
        for _ in range(20):
            crowd.enter_context(connected(server, HALF))
    until(lambda: server.client(app.token).get("/sessions").status_code == 200, "it recovered")
    assert server.log_text.count("no connection can be taken") <= 200
