"""Retries, timeouts, options, uploads: what happens when the wire is bad, and what is never done twice."""

import asyncio
import io
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from clawdforge import AsyncForge, Forge, ForgeAPIError, ForgeConnectionError, ForgeTimeout
from clawdforge.client import NoServerKnown, UnexpectedReply
from clawdforge.client._async import connection as async_connection
from clawdforge.client._local import find_server
from clawdforge.client._retry import LONGEST_WAIT_SECS, Retry, seconds
from clawdforge.client.errors import BY_CODE, AgentFailed, Conflict, TurnInterrupted, error_from
from clawdforge.wire.error_codes import ErrorCode
from tests.unit.client_stub import DROP, Answer, Asked, answers, serving

TURN = {"ok": True, "session_id": "s", "turn_index": 1, "stop_reason": "end_turn", "events": []}
BUSY = Answer({"detail": "later", "code": "store_unavailable"}, 503, {"Retry-After": "0"})


def client(url: str, **options: Any) -> Forge:
    return Forge(base_url=url, token="t", **options)


def test_a_dropped_connection_is_tried_again_with_the_same_key() -> None:
    with serving(answers(DROP, BUSY, Answer(TURN))) as stub, client(stub.url) as forge:
        assert forge.attach("s").turn("hi").turn_index == 1
        keys = [asked.headers["idempotency-key"] for asked in stub.asked]
        assert len(keys) == 3
        assert len(set(keys)) == 1
        forge.attach("s").turn("hi")
        forge.attach("s").turn("hi", idempotency_key="mine")
        assert [asked.headers["idempotency-key"] for asked in stub.asked[3:]][1] == "mine"
        assert stub.asked[3].headers["idempotency-key"] not in (keys[0], "mine")


def test_what_has_no_key_and_is_not_safe_is_sent_once() -> None:
    with serving(answers(DROP)) as stub, client(stub.url) as forge:
        with pytest.raises(ForgeConnectionError):
            forge.create_session()
        assert len(stub.asked) == 1
        with pytest.raises(ForgeConnectionError):
            forge.get_session("x")
        assert len(stub.asked) == 4


def test_retries_end_and_can_be_set() -> None:
    with serving(answers(BUSY)) as stub, client(stub.url) as forge:
        with pytest.raises(ForgeAPIError, match="later"):
            forge.with_options(retries=1).get_session("x")
        assert len(stub.asked) == 2


def test_a_turn_that_was_interrupted_is_not_asked_for_again() -> None:
    gone = Answer({"detail": "cut off", "code": "turn_interrupted"}, 503)
    with serving(answers(gone)) as stub, client(stub.url) as forge:
        with pytest.raises(TurnInterrupted):
            forge.attach("s").turn("hi")
        assert len(stub.asked) == 1


def test_a_server_that_is_not_there_says_so() -> None:
    with (
        client("http://127.0.0.1:9", retries=0) as forge,
        pytest.raises(ForgeConnectionError, match="running"),
    ):
        forge.create_session()


def test_an_answer_that_is_late_is_a_timeout_and_is_not_repeated() -> None:
    """S1-05: the limit of one call, and the one for all of them."""
    release = threading.Event()

    def script(_: Asked) -> Answer:
        release.wait(10)
        return Answer({})

    with (
        serving(script) as stub,
        client(stub.url) as forge,
        Forge(base_url=stub.url, token="t", default_timeout_secs=0.2) as hasty,
    ):
        for impatient in (forge.with_options(timeout=0.2), hasty):
            with pytest.raises(ForgeTimeout):
                impatient.get_session("x")
        release.set()
        assert len(stub.asked) == 2


def test_an_answer_that_cannot_be_read_is_named() -> None:
    page = answers(Answer(b"<html>"))
    unread = pytest.raises(UnexpectedReply, match="GET /healthz")
    with serving(page) as stub, client(stub.url) as forge, unread:
        forge.healthz()


def test_an_answer_that_breaks_off_is_a_lost_connection() -> None:
    short = Answer(b"not gzip", headers={"Content-Encoding": "gzip"})
    with serving(answers(short)) as stub, client(stub.url, retries=0) as forge:
        with pytest.raises(ForgeConnectionError):
            forge.get_session("x")
        with pytest.raises(ForgeConnectionError):
            next(forge.with_options(reconnect_secs=0).attach("x").events())


def test_a_server_that_is_not_ready_says_so_without_an_exception() -> None:
    with serving(answers(Answer({"ok": False, "store": "sqlite", "reason": "full"}, 503))) as stub:
        with client(stub.url) as forge:
            ready = forge.readyz()
        assert (ready.ok, ready.reason, len(stub.asked)) == (False, "full", 1)


def test_the_policy_is_bounded_and_honours_retry_after() -> None:
    retry = Retry(2, jitter=lambda: 0.0)
    assert [retry.pause(n) for n in range(8)] == [0.25, 0.5, 1, 2, 4, 8, 8, 8]
    assert Retry(jitter=lambda: 1.0).pause(0) == pytest.approx(0.1875)
    assert retry.after_answer(0, 503, safe=True, retry_after="3") == 3.0
    assert retry.after_answer(0, 503, safe=True, retry_after="soon") == 0.25
    assert retry.after_answer(0, 503, safe=True, retry_after=str(LONGEST_WAIT_SECS + 1)) is None
    for status in (200, 400, 404, 409, 500, 502, 504):
        assert retry.after_answer(0, status, safe=True) is None
    assert retry.after_answer(0, 429, safe=False) is None
    assert retry.after_answer(2, 429, safe=True) is None
    assert retry.after_failure(0, sent=True, safe=False) is None
    assert retry.after_failure(0, sent=False, safe=False) == 0.25
    assert seconds("-1") is None
    assert seconds("nan") is None


def test_options_make_a_copy_that_shares_the_pool() -> None:
    with (
        serving(answers(Answer({"session_id": "s"}))) as stub,
        client(stub.url, headers={"X-A": "1"}) as forge,
    ):
        copy = forge.with_options(headers={"X-B": "2"}, timeout=None)
        copy.get_session("x")
        assert (stub.asked[0].headers["x-a"], stub.asked[0].headers["x-b"]) == ("1", "2")
        assert copy.transport.pool is forge.transport.pool
        assert copy.transport.options.timeout_secs is None
        copy.close()
        forge.get_session("x")
        assert "x-b" not in stub.asked[1].headers


def test_first_calls_at_once_make_one_pool() -> None:
    """S1-03, S1-06: it belongs to the Forge, whose block closes it."""

    def script(_: Asked) -> Answer:
        return Answer({"session_id": "s"})

    with serving(script) as stub, client(stub.url) as forge:
        made: list[Any] = []

        def call() -> None:
            forge.get_session("x")
            made.append(forge.transport.pool.open(stub.url))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert len(made) == 8
    assert len({id(pool) for pool in made}) == 1
    assert made[0].is_closed


@pytest.mark.parametrize("used", [False, True])
def test_a_client_that_was_closed_sends_nothing_more(used: bool) -> None:
    """S1-03: nor does a session, which has no connection of its own."""
    with serving(answers(Answer({"session_id": "s"}))) as stub:
        forge = client(stub.url)
        if used:
            forge.get_session("x")
        forge.close()
        forge.close()
        for call in (forge.get_session, forge.attach("s").turn):
            with pytest.raises(RuntimeError, match="has been closed"):
                call("x")
        assert len(stub.asked) == used


def test_raw_answers_are_not_raised() -> None:
    refusal = answers(Answer({"detail": "no"}, 409, {"X-Request-Id": "r"}))
    with serving(refusal) as stub, client(stub.url) as forge:
        answer = forge.raw.get("/anything", params={"a": "b"})
        assert isinstance(answer, httpx2.Response)
        assert (answer.status_code, answer.headers["x-request-id"]) == (409, "r")
        assert forge.raw.post("/x", json={"a": 1}).status_code == 409
        assert stub.asked[1].json == {"a": 1}


def test_ids_cannot_leave_their_place_in_the_path() -> None:
    with serving(answers(Answer({"session_id": "s"}))) as stub, client(stub.url) as forge:
        for odd in ("a/b", "..", "a?b", "ä"):
            forge.get_session(odd)
        expected = ["/sessions/a%2Fb", "/sessions/%2E%2E", "/sessions/a%3Fb", "/sessions/%C3%A4"]
        assert [asked.path for asked in stub.asked] == expected


def test_an_upload_is_multipart_and_tells_its_progress(tmp_path: Path) -> None:
    data = os.urandom(300_000)
    path = tmp_path / "notes.bin"
    path.write_bytes(data)
    reply = Answer({"ok": True, "file_token": "ff_1", "name": "notes.bin", "size": len(data)})
    with serving(answers(reply)) as stub, client(stub.url) as forge:
        told: list[tuple[int, int | None]] = []
        assert forge.upload(path, progress=lambda sent, size: told.append((sent, size))).file_token == "ff_1"
        assert told[-1] == (len(data), len(data))
        assert len(told) > 2
        assert sorted(told) == told
        body = stub.asked[0].raw
        assert data in body
        assert b'name="file"; filename="notes.bin"' in body
        forge.upload(io.BytesIO(b"hello"), name="a.txt")
        assert b'filename="a.txt"' in stub.asked[1].raw
        read, write = os.pipe()
        os.write(write, b"piped")
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            forge.upload(pipe, name="p", progress=lambda sent, size: told.append((sent, size)))
        assert told[-1:] == [(5, None)]
        assert b"piped" in stub.asked[2].raw


def test_a_download_goes_into_memory_or_into_a_file(tmp_path: Path) -> None:
    with serving(answers(Answer(b"x" * 70_000))) as stub, client(stub.url) as forge:
        assert forge.download("ff_1") == b"x" * 70_000
        assert forge.download_to("ff_1", tmp_path / "out") == 70_000
        assert (tmp_path / "out").read_bytes() == b"x" * 70_000


def test_lists_are_read_page_by_page() -> None:
    def script(asked: Asked) -> Answer:
        if asked.path == "/search":
            return Answer({"hits": [], "count": 0})
        at = asked.query.get("cursor", ["0"])[0]
        following = None if at == "2" else str(int(at) + 1)
        return Answer({"ok": True, "sessions": [{"session_id": at}], "count": 1, "next": following})

    with serving(script) as stub, client(stub.url) as forge:
        assert [row["session_id"] for row in forge.list_sessions()] == ["0", "1", "2"]
        rows = forge.sessions(page_size=1)
        assert next(rows)["session_id"] == "0"
        assert len(stub.asked) == 4
        assert stub.asked[3].query == {"limit": ["1"]}
        assert list(forge.search("word")) == []


async def test_the_awaiting_client_does_the_same() -> None:
    with serving(answers(DROP, Answer(TURN))) as stub:
        async with AsyncForge(stub.url, "t") as forge:
            result = await forge.attach("s").turn("hi")
            assert result.turn_index == 1
        assert len({asked.headers["idempotency-key"] for asked in stub.asked}) == 1


def test_one_client_serves_sixteen_threads() -> None:
    def script(asked: Asked) -> Answer:
        return Answer({**TURN, "session_id": asked.path.split("/")[2], "prompt": asked.json["prompt"]})

    def work(number: int) -> None:
        session = forge.attach(f"s{number}")
        for turn in range(20):
            result = session.turn(f"{number}.{turn}")
            assert result.session_id == f"s{number}"
            assert result.body["prompt"] == f"{number}.{turn}"

    with serving(script) as stub, client(stub.url) as forge, ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
        assert len(stub.asked) == 320
        assert len({asked.headers["idempotency-key"] for asked in stub.asked}) == 320


def test_every_code_has_one_class() -> None:
    assert set(BY_CODE) == {code.value for code in ErrorCode}
    for code, kind in BY_CODE.items():
        error = error_from(499, {"code": code, "detail": "d"}, "r", "")
        assert type(error) is kind
        assert error.code == code
    assert type(error_from(409, {"code": "brand_new"}, None, "x")) is Conflict
    assert type(error_from(418, "teapot", None, "x")) is ForgeAPIError


def test_errors_can_be_sent_to_another_process() -> None:
    error = error_from(502, {"code": "agent_failed", "detail": "boom", "stderr": "x"}, "r", "")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert isinstance(copy, AgentFailed)
    assert (copy.message, copy.body["stderr"], copy.request_id) == ("boom", "x", "r")


def test_where_the_server_is(tmp_path: Path) -> None:
    env = {"CLAWDFORGE_DATA_DIR": str(tmp_path)}
    with pytest.raises(NoServerKnown, match="clawdforge serve"):
        find_server(None, None, env)
    (tmp_path / "server.lock").write_text('{"url": "http://127.0.0.1:9999", "pid": 1}')
    with pytest.raises(NoServerKnown, match="CLAWDFORGE_TOKEN"):
        find_server(None, None, env)
    (tmp_path / "local.token").write_text("cf_local\n")
    assert find_server(None, None, env) == ("http://127.0.0.1:9999", "cf_local")
    assert find_server("http://localhost:1/", None, env) == ("http://localhost:1", "cf_local")
    assert find_server(None, "cf_x", {}) == ("http://127.0.0.1:8800", "cf_x")
    named = {**env, "CLAWDFORGE_URL": "https://forge.example", "CLAWDFORGE_TOKEN": "cf_env"}
    assert find_server(None, None, named) == ("https://forge.example", "cf_env")
    assert find_server("http://h", "cf_arg", named) == ("http://h", "cf_arg")
    for odd in ("localhost:8800", "ftp://h", "http://"):
        with pytest.raises(NoServerKnown, match="http://"):
            find_server(odd, "t", env)
    with pytest.raises(NoServerKnown, match="this machine only"):
        find_server("https://forge.example", None, env)


async def test_a_loop_goes_on_while_a_server_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes a client cannot await: the first call, or entering the block, finds the server, once."""
    started, goes_on = [], threading.Event()

    def start(*_args: object, **_options: object) -> tuple[str, str]:
        started.append(goes_on.wait(20))  # nobody would set it on a loop that stands still
        return stub.url, "t"

    for name in ("CLAWDFORGE_URL", "CLAWDFORGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(async_connection, "find_server", start)
    with serving(answers(Answer({"sessions": []}))) as stub:
        forge = AsyncForge()
        assert (forge.base_url, started) == ("", [])
        asyncio.get_running_loop().call_soon(goes_on.set)
        await asyncio.gather(*(forge.list_sessions() for _ in range(3)))
        assert (forge.base_url, started) == (stub.url, [True])
        await forge.close()
        async with AsyncForge() as other:
            assert other.base_url == stub.url
