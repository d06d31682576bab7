"""The list of hosts that an agent may reach, and what its entries mean."""

from ipaddress import ip_address

import pytest

from clawdforge.wire.hosts import AllowedHosts, BadHost, Entry, is_public

LIST = AllowedHosts.read(
    [
        "api.example.com",
        "*.example.org:8443",
        "10.0.0.5",
        "10.1.0.0/16:8080",
        "[fd00::1]:80",
        "Upper.Example.",
    ]
)


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("api.example.com", 443, True),
        ("API.example.com.", 80, True),
        ("api.example.com", 22, False),
        ("example.com", 443, False),
        ("xapi.example.com", 443, False),
        ("api.example.com.evil.net", 443, False),
        ("a.example.org", 8443, True),
        ("a.b.example.org", 8443, True),
        ("example.org", 8443, False),
        ("evilexample.org", 8443, False),
        ("a.example.org", 443, False),
        ("upper.example", 443, True),
        ("10.0.0.5", 80, True),
        ("10.0.0.6", 80, False),
        ("10.1.2.3", 8080, True),
        ("10.1.2.3", 80, False),
        ("fd00::1", 80, True),
        ("fd00:0::1", 80, True),
        ("fd00::2", 80, False),
        ("8.8.8.8", 443, False),  # no address unless it is listed, public or not
        ("127.1", 80, False),
        ("0x7f000001", 80, False),
        ("2130706433", 80, False),
        ("api.example.com\n", 443, False),
        ("api.example.com\0", 443, False),
        ("", 443, False),
        ("-" * 300, 443, False),
    ],
)
def test_what_may_be_asked_for(host: str, port: int, allowed: bool) -> None:
    assert LIST.allows(host, port) is allowed


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "*.", "a b", "http://a", "a/b", "a:b", "[::1", "::1", "a..b", "*.*.a", "1.2.3.4/33"),
        *("a:99999", "10.0.0.5:99999", "10.0.0.0/8:65536", "[::1]:70000", "a:0", "10.0.0.5:0"),
    ],
)
def test_an_entry_without_a_meaning_is_refused(text: str) -> None:
    with pytest.raises(BadHost):
        Entry.read(text)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("2002:7f00:1::", False),  # 6to4 of 127.0.0.1
        ("64:ff9b::7f00:1", False),  # NAT64 of it
        ("64:ff9b::5db8:d822", True),
        ("64:ff9b:1::a9fe:a9fe", False),  # NAT64 with a prefix of one's own
        ("::7f00:1", False),
        ("::ffff:0:7f00:1", False),
        ("fec0::1", False),
        ("192.0.0.192", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public


def test_an_address_that_is_not_public_must_be_listed_itself() -> None:
    assert LIST.allows_address(ip_address("93.184.216.34"), 443)
    assert not LIST.allows_address(ip_address("127.0.0.1"), 443)
    assert LIST.allows_address(ip_address("10.0.0.5"), 443)
    assert not LIST.allows_address(ip_address("10.0.0.5"), 22)
