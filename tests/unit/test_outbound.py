"""Where webhooks may go, and what becomes of receivers that misbehave."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from clawdforge import outbound
from clawdforge.core.ports.webhooks import Undelivered
from clawdforge.core.services.courier import PLACES, PLACES_OF_APP
from clawdforge.outbound import Outbound, open_outbound
from clawdforge.wire.webhooks import read_place
from tests.support.receiver import OK, Receiver, answer, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture
def reached(receiver: Receiver) -> Iterator[Outbound]:
    """A way out that may reach the receiver."""
    with open_outbound([receiver.host, f"hook.test:{receiver.port}"]) as found:
        yield found


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Each call of the resolver answers with the next address."""
    left = list(addresses)

    def find(_host: str, port: int, **_: Any) -> list[Any]:
        address = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", find)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "//example.com/",
        "https://",
        "https://user:word@example.com/",
        "https://example.com/#part",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://exa mple.com/",
        "https://example.com/\r\nx: y",
        "https://exämple.com/",
        "https://[::1%25lo]/",
        "https://example.com\\@127.0.0.1/",
    ],
)
def test_a_url_that_is_none_of_ours_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        read_place(url)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - refused
        "224.0.0.1",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[fc00::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
    ],
)
async def test_an_address_that_is_not_public_is_refused_in_every_disguise(host: str) -> None:
    with open_outbound([]) as way:
        with pytest.raises(Undelivered, match="not a public address"):
            way.check(f"https://{host}/")
        with pytest.raises(Undelivered, match="not a public address"):
            await way.post(f"https://{host}/", {}, b"{}")


async def test_plain_http_goes_only_where_the_operator_says(receiver: Receiver, reached: Outbound) -> None:
    with open_outbound([]) as way, pytest.raises(Undelivered, match="use https"):
        way.check("http://example.com/")
    assert (await reached.post(receiver.url("/a?b=c"), {"x-a": "b"}, b"{}")).status == 204
    assert [(one.path, one.headers["x-a"], one.body) for one in receiver.got] == [("/a?b=c", "b", b"{}")]
    assert receiver.got[0].headers["host"] == receiver.host


@pytest.mark.parametrize("host", ["hook.test", "2130706433"])
async def test_a_name_that_leads_inside_is_refused_at_the_connection(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Also a number that the resolver takes for an address."""
    resolve_to(monkeypatch, "127.0.0.1")
    with open_outbound([f"hook.test:{receiver.port}"]) as way:
        url = f"https://{host}:{receiver.port}/"
        way.check(url)
        with pytest.raises(Undelivered, match="not a public address"):
            await way.post(url, {}, b"{}")
    assert not receiver.got


async def test_a_name_is_resolved_once_and_that_very_address_is_connected_to(
    receiver: Receiver, reached: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebinding: a second look would find another address."""
    resolve_to(monkeypatch, "127.0.0.1", "10.0.0.1")
    assert (await reached.post(f"http://hook.test:{receiver.port}/", {}, b"{}")).status == 204
    with pytest.raises(Undelivered, match="not a public address"):
        await reached.post(f"http://hook.test:{receiver.port}/", {}, b"{}")
    assert len(receiver.got) == 1


async def test_names_that_are_looked_up_for_long_keep_nobody_else_from_being_told(
    receiver: Receiver, reached: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An app has so many deliveries under way at most; each takes a thread, and none once it is over."""
    over, looks = threading.Event(), threading.Semaphore(0)

    def find(host: str, port: int, **_: Any) -> list[Any]:
        looks.release()
        if host != "hook.test":
            over.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", find)
    slow = [asyncio.ensure_future(reached.post("https://slow.test/", {}, b"")) for _ in range(PLACES_OF_APP)]
    try:
        for _ in slow:
            assert await asyncio.to_thread(looks.acquire, timeout=30)
        assert (await reached.post(f"http://hook.test:{receiver.port}/", {}, b"{}")).status == 204
        assert not any(one.done() for one in slow)
    finally:
        over.set()
        await asyncio.gather(*slow, return_exceptions=True)
    assert outbound.RESOLVERS >= PLACES  # a thread for each delivery that is under way


async def test_a_redirect_is_an_answer_and_nothing_more(receiver: Receiver, reached: Outbound) -> None:
    receiver.answers = [answer(307, f"location: {receiver.url('/elsewhere')}")]
    assert (await reached.post(receiver.url(), {}, b"{}")).status == 307
    assert not receiver.of("/elsewhere")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "did not answer"),
        (b"", "closed the connection"),
        (b"HTTP/1.1 200 OK\r\nhalf", "closed the connection"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, "not HTTP"),
        (b"HTTP/1.1 700 No\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * outbound.MOST_HEADS + OK, "again and again"),
    ],
)
async def test_a_receiver_that_misbehaves_costs_a_bounded_time(
    receiver: Receiver,
    reached: Outbound,
    monkeypatch: pytest.MonkeyPatch,
    given: bytes | None,
    said: str,
) -> None:
    if given is None:
        monkeypatch.setattr(outbound, "ALL_SECS", 0.2)
    receiver.answers = [given]
    with pytest.raises(Undelivered, match=said):
        await reached.post(receiver.url(), {}, b"{}")


async def test_of_an_answer_without_end_only_the_status_is_kept(
    receiver: Receiver, reached: Outbound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "MAX_REST", 1000)
    receiver.answers = [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" + b"x" * 5_000_000]
    assert (await reached.post(receiver.url(), {}, b"{}")).status == 200


@pytest.mark.parametrize(
    ("line", "asked"),
    [("Retry-After: 120", 120), ("retry-after:7", 7), ("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", None)],
)
async def test_when_to_come_again_is_kept(
    receiver: Receiver, reached: Outbound, line: str, asked: int | None
) -> None:
    receiver.answers = [f"HTTP/1.1 503 x\r\n{line}\r\n\r\n".encode()]
    assert await reached.post(receiver.url(), {}, b"{}") == (503, asked)


async def test_an_answer_may_be_announced_a_few_times(receiver: Receiver, reached: Outbound) -> None:
    receiver.answers = [b"HTTP/1.1 103 Early Hints\r\n\r\n" * (outbound.MOST_HEADS - 1) + OK]
    assert (await reached.post(receiver.url(), {}, b"{}")).status == 204


async def test_nobody_who_listens_is_a_failure_that_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with open_outbound([f"127.0.0.1:{port}"]) as way, pytest.raises(Undelivered, match="cannot be reached"):
        await way.post(f"http://127.0.0.1:{port}/", {}, b"{}")


async def test_a_receiver_without_tls_is_not_told_in_plain(receiver: Receiver, reached: Outbound) -> None:
    with pytest.raises(Undelivered, match="cannot be reached"):
        await reached.post(f"https://{receiver.host}/", {}, b"{}")
