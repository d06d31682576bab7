"""Which Host, Origin and Sec-Fetch-Site are let in."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawdforge.http.access.guard import Guard, split_authority
from clawdforge.http.head import Head
from clawdforge.wire.errors import HostRefused, OriginRefused

GOOD_HOSTS = ("localhost:8800", "127.0.0.1:8800", "[::1]:8800", "forge.example:8800", "LocalHost:8800")
BAD_HOSTS = (
    "evil.example:8800",
    "localhost.evil.example",
    "",
    "localhost:8800:1",
    "a@localhost",
    "::1",
    "[::1",
)
GOOD_ORIGINS = (None, "http://localhost:8800", "http://127.0.0.1:8800", "http://forge.example:8800")
BAD_ORIGINS = (
    "null",
    "",
    "http://evil.example",
    "http://localhost:3000",
    "http://localhost",
    "file://",
    "http://localhost:8800.evil.example",
    "http://localhost:8800@evil.example",
)
SITES = (None, "none", "same-origin", "same-site")


def headers(
    host: str | None, origin: str | None = None, site: str | None = None
) -> list[tuple[bytes, bytes]]:
    given_ = {"host": host, "origin": origin, "sec-fetch-site": site}
    return [(name.encode(), value.encode()) for name, value in given_.items() if value is not None]


def guard(*allowed: str) -> Guard:
    return Guard("127.0.0.1", ("forge.example", *allowed))


@pytest.mark.parametrize(("host", "origin", "site"), list(product(GOOD_HOSTS, GOOD_ORIGINS, SITES)))
def test_a_known_host_with_its_own_origin_is_served(host: str, origin: str | None, site: str | None) -> None:
    assert guard().refusal(Head(headers(host, origin, site))) is None


@pytest.mark.parametrize(("host", "origin"), list(product(BAD_HOSTS, (None, "http://localhost:8800"))))
def test_an_unknown_host_is_refused_whatever_the_origin(host: str, origin: str | None) -> None:
    assert isinstance(guard().refusal(Head(headers(host, origin))), HostRefused)


@pytest.mark.parametrize(("host", "origin"), list(product(GOOD_HOSTS, BAD_ORIGINS)))
def test_a_foreign_origin_is_refused_another_port_included(host: str, origin: str) -> None:
    assert isinstance(guard().refusal(Head(headers(host, origin))), OriginRefused)


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_a_cross_site_fetch_is_refused(host: str) -> None:
    assert isinstance(guard().refusal(Head(headers(host, None, "cross-site"))), OriginRefused)


def test_no_host_and_two_hosts_are_refused() -> None:
    assert isinstance(guard().refusal(Head([])), HostRefused)
    assert isinstance(guard().refusal(Head(headers("localhost") * 2)), HostRefused)


def test_a_star_serves_any_host_but_still_no_foreign_origin() -> None:
    assert guard("*").refusal(Head(headers("any.example"))) is None
    assert guard("*").refusal(Head(headers("any.example", "https://any.example"))) is None
    assert isinstance(guard("*").refusal(Head(headers("any.example", "http://evil.example"))), OriginRefused)


def test_behind_tls_the_default_port_may_be_named_or_not() -> None:
    assert guard().refusal(Head(headers("forge.example", "https://forge.example:443"))) is None
    assert guard().refusal(Head(headers("forge.example:443", "https://forge.example"))) is None


def test_a_bind_address_of_version_six_is_served_in_brackets() -> None:
    assert Guard("fd00::1", ()).refusal(Head(headers("[fd00::1]:8800"))) is None


@given(st.text(alphabet="abz019.:[]/@-%* ", max_size=30))
def test_an_authority_is_a_plain_name_and_a_number_or_nothing(text: str) -> None:
    parts = split_authority(text)
    if parts is not None:
        name, port = parts
        assert name
        assert not set(name) & set("/@ ")
        assert port == "" or port.isdecimal()


@pytest.mark.parametrize(
    ("path", "mode", "origin", "is_let_in"),
    [
        ("/ui/", b"navigate", None, True),
        ("/ui/shared", b"navigate", None, True),
        ("/ui/", b"no-cors", None, False),
        ("/ui/", b"navigate", b"http://evil.example", False),
        ("/sessions", b"navigate", None, False),
        ("/api/chat/cancel", b"navigate", None, False),
        ("/uix", b"navigate", None, False),
    ],
)
def test_a_link_elsewhere_may_lead_to_our_page_and_to_nothing_else(
    path: str, mode: bytes, origin: bytes | None, *, is_let_in: bool
) -> None:
    sent = [(b"host", b"localhost:8800"), (b"sec-fetch-site", b"cross-site"), (b"sec-fetch-mode", mode)]
    sent += [] if origin is None else [(b"origin", origin)]
    refusal = Guard("127.0.0.1", ()).refusal(Head(sent), path)
    assert (refusal is None) is is_let_in
