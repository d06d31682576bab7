"""The event log over HTTP: pages, streams, resuming, and every reason why a stream ends (X-29)."""

import concurrent.futures
import json
import signal
import socket
from collections.abc import Callable

import psutil
import pytest

from clawdforge.wire.event_forms import is_from_agent, nest
from clawdforge.wire.sse import Frame
from tests.api.harness import App, Server, until

pytestmark = pytest.mark.on_both


def seqs(frames: list[Frame]) -> list[int]:
    return [int(frame.id) for frame in frames]


def test_pages_are_gapless_and_next_is_the_cursor(app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "chunks 20")
    path, after, seen = f"/sessions/{session_id}/events", 0, []
    while True:
        page = app.http.get(path, params={"after": after, "limit": 7}).json()
        if not page["events"]:
            break
        seen += page["events"]
        after = page["next"]
    head = app.http.get(f"/sessions/{session_id}").json()["head"]
    assert [event["seq"] for event in seen] == list(range(1, head + 1))
    assert (page["ok"], page["next"]) == (True, head)
    assert {"ts", "turn", "type"} <= set(seen[0])


def test_a_stream_shows_the_same_bytes_as_a_page_and_goes_on_live(app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "chunks 5")
    path = f"/sessions/{session_id}/events"
    with app.stream(path) as stream:
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        frames = stream.upto("turn.ended")
        app.turn(session_id, "echo live")
        frames += stream.upto("turn.ended")
    page = app.http.get(path, params={"limit": 1000}).json()["events"]
    assert [json.loads(frame.data) for frame in frames] == page
    assert [frame.event for frame in frames] == [event["type"] for event in page]
    assert seqs(frames) == list(range(1, len(page) + 1))


KINDS = "think hm\ntool look 5\nplan read|write\nother sparkle\nunicode\necho done"


def test_every_route_that_gives_events_knows_both_forms(app: App) -> None:
    session_id = app.session()
    path = f"/sessions/{session_id}"
    nested = app.turn(session_id, KINDS).json()["events"]
    log = app.http.get(f"{path}/events", params={"limit": 1000}).json()["events"]
    short = app.http.get(f"{path}/events", params={"limit": 1000, "form": "compact"}).json()["events"]
    explicit = app.http.get(f"{path}/events", params={"limit": 1000, "form": "nested"}).json()["events"]
    assert explicit == log
    assert [nest(event) for event in short] == log
    assert [event for event in log if event["seq"] in {one["seq"] for one in nested}] == nested
    assert all({"jsonrpc"} <= set(event) for event in nested)
    assert not any({"jsonrpc", "params", "method"} & set(event) for event in short)
    for form, expected in (("nested", log), ("compact", short)):
        with app.stream(f"{path}/events", params={"form": form}) as stream:
            assert [json.loads(frame.data) for frame in stream.upto("turn.ended")] == expected
    exported = app.http.get(f"{path}/export", params={"events": True}).json()
    assert exported["events"] == log


def test_a_turn_is_answered_and_streamed_in_the_form_that_was_asked_for(app: App) -> None:
    session_id = app.session()
    path = f"/sessions/{session_id}/turn"
    reply = app.http.post(path, params={"form": "compact"}, json={"prompt": KINDS})
    answered = reply.json()["events"]
    assert [event["type"] for event in answered][-2:] == ["text", "response"]
    assert answered[-2].keys() == {"seq", "ts", "turn", "type", "agent_session_id", "content"}
    for form in ("compact", "nested"):
        with app.stream(path, "POST", params={"form": form}, json={"prompt": KINDS}) as stream:
            streamed = [json.loads(frame.data) for frame in stream.upto("turn.ended")]
        by_agent = [event for event in streamed if is_from_agent(event["type"])]
        assert [event["type"] for event in by_agent] == [event["type"] for event in answered]
        assert any("jsonrpc" in event for event in by_agent) == (form == "nested")


@pytest.mark.parametrize("value", ["", "flat", "Compact", "nested,compact"])
def test_a_form_that_there_is_not_is_refused_in_words(app: App, value: str) -> None:
    reply = app.http.get(f"/sessions/{app.session()}/events", params={"form": value})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
    assert "form" in reply.json()["error"]


def test_a_reader_resumes_after_the_id_and_the_header_wins_over_the_address(app: App) -> None:
    session_id = app.session()
    app.turn(session_id, "chunks 30")
    path = f"/sessions/{session_id}/events"
    with app.stream(path) as stream:
        first = [frame for frame, _ in zip(stream, range(9), strict=False)]
    resumed = {"Last-Event-ID": first[-1].id}
    with app.stream(path, headers=resumed, params={"after": 1}) as stream:
        rest = stream.upto("turn.ended")
    head = app.http.get(f"/sessions/{session_id}").json()["head"]
    assert seqs(first) + seqs(rest) == list(range(1, head + 1))
    with app.stream(path, params={"after": head - 1}) as stream:
        assert seqs(stream.upto("turn.ended")) == [head]


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "1" * 40, "٣"])
def test_a_malformed_cursor_is_refused_in_words(app: App, value: str) -> None:
    path = f"/sessions/{app.session()}/events"
    reply = app.http.get(path, params={"after": value}, headers={"Accept": "text/event-stream"})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request"), reply.text
    assert reply.json()["detail"].startswith("after: ")
    header = {"Accept": "text/event-stream", "Last-Event-ID": value.encode("utf-8")}
    reply = app.http.get(path, headers=header)  # type: ignore[arg-type]
    assert reply.status_code == 422
    assert reply.json()["detail"].startswith("Last-Event-ID: ")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_cursor_beyond_the_end_is_refused(app: App, accept: str) -> None:
    path = f"/sessions/{app.session()}/events"
    reply = app.http.get(path, params={"after": 1000}, headers={"Accept": accept})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")


def test_a_quiet_stream_beats_without_an_id(app: App) -> None:
    session_id = app.session()
    head = app.http.get(f"/sessions/{session_id}").json()["head"]
    with app.stream(f"/sessions/{session_id}/events", params={"after": head}) as stream:
        raw = b""
        for chunk in stream.response.iter_raw():
            raw += chunk
            if raw.count(b":") >= 2:
                break
    assert raw.replace(b": \n\n", b"") == b""
    assert app.http.get(f"/sessions/{session_id}").json()["head"] == head


def test_a_turn_can_be_streamed_and_the_stream_ends_with_it(app: App) -> None:
    session_id = app.session()
    path = f"/sessions/{session_id}/turn"
    with app.stream(path, "POST", json={"prompt": "chunks 3"}) as stream:
        kinds = [frame.event for frame in stream]
    assert kinds[:2] == ["turn.queued", "turn.started"]
    assert kinds[-2:] == ["response", "turn.ended"]
    assert kinds.count("text") == 3
    keyed = {"Idempotency-Key": "again"}
    with app.stream(path, "POST", json={"prompt": "echo x"}, headers=keyed) as stream:
        first = list(stream)
    with app.stream(path, "POST", json={"prompt": "echo x"}, headers=keyed) as stream:
        again = list(stream)
    assert again == first[1:]


def test_a_streamed_turn_that_waits_in_the_queue_shows_only_itself(app: App) -> None:
    session_id = app.session()
    app.http.post(f"/sessions/{session_id}/turns", json={"prompt": "chunks 5 8 50"})
    with app.stream(f"/sessions/{session_id}/turn", "POST", json={"prompt": "echo second"}) as stream:
        turns = {json.loads(frame.data)["turn"] for frame in stream}
    assert turns == {2}


def test_revoking_a_token_ends_its_streams(server: Server) -> None:
    app = server.app()
    session_id = app.session()
    with app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("session.created")
        assert server.admin().delete(f"/admin/tokens/{app.token_id}").json()["ok"] is True
        assert list(stream) == []
    assert app.http.get(f"/sessions/{session_id}").status_code == 401


def test_a_stream_ends_when_its_token_expires(server: Server) -> None:
    app = server.app(expires_in_secs=2)
    session_id = app.session()
    with app.stream(f"/sessions/{session_id}/events") as stream:
        assert [frame.event for frame in stream] == ["session.created"]
    assert app.http.get(f"/sessions/{session_id}").status_code == 401


def test_a_stream_ends_when_its_session_is_deleted(app: App) -> None:
    session_id = app.session()
    with app.stream(f"/sessions/{session_id}/events") as stream:
        stream.upto("session.created")
        assert app.http.post(f"/sessions/{session_id}/purge").status_code == 200
        assert [frame.event for frame in stream] in ([], ["session.closed"])
    assert app.http.get(f"/sessions/{session_id}").status_code == 404


def test_a_stopping_server_ends_its_streams_at_once(start: Callable[..., Server]) -> None:
    server = start()
    app = server.app()
    session_id = app.session()
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        app.stream(f"/sessions/{session_id}/events") as stream,
    ):
        stream.upto("session.created")
        rest = pool.submit(list, stream)
        server.process.send_signal(signal.SIGTERM)
        assert rest.result(40) == []
        assert server.process.wait(40) == 0


def test_a_client_that_never_reads_costs_a_bounded_amount(start: Callable[..., Server]) -> None:
    server = start(cold=True)
    app = server.app()
    session_id = app.session()
    host, port = server.url.removeprefix("http://").rsplit(":", 1)
    request = (
        f"GET /sessions/{session_id}/events HTTP/1.1\r\nHost: {host}:{port}\r\n"
        f"Authorization: Bearer {app.token}\r\nAccept: text/event-stream\r\n\r\n"
    )
    readers = [socket.create_connection((host, int(port))) for _ in range(20)]
    try:
        for reader in readers:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.sendall(request.encode())
        app.turn(session_id, "echo warm")
        before = psutil.Process(server.process.pid).memory_info().rss
        assert app.turn(session_id, "flood 400 100000").status_code == 200
        grown = psutil.Process(server.process.pid).memory_info().rss - before
    finally:
        for reader in readers:
            reader.close()
    assert grown < 200 * 1024 * 1024, f"{grown / 1e6:.0f} MB for 40 MB of events and 20 readers"


def test_many_readers_see_the_same(app: App) -> None:
    session_id = app.session()
    path = f"/sessions/{session_id}/events"

    def read(_: int) -> list[int]:
        with app.stream(path) as stream:
            return seqs(stream.upto("turn.ended"))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read, number) for number in range(8)]
        app.turn(session_id, "chunks 200")
        seen = [reader.result(20) for reader in readers]
    assert seen == [list(range(1, len(seen[0]) + 1))] * 8


def test_a_follower_that_hung_up_is_let_go(app: App, server: Server) -> None:
    session_id = app.session()
    process = psutil.Process(server.process.pid)
    before = process.num_fds()
    for _ in range(20):
        client = server.client(app.token)
        with client.stream(
            "GET", f"/sessions/{session_id}/events", headers={"Accept": "text/event-stream"}
        ) as response:
            next(response.iter_raw())
        client.close()
    until(lambda: process.num_fds() <= before + 5, "the end of the connections", 5)
