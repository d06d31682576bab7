"""The head of a request says the same, looked through once, as its headers one by one."""

from clawdforge.http.head import Head, head_of

SENT = [(b"host", b"a"), (b"cookie", b"1"), (b"accept", b"x"), (b"cookie", b"2")]


def test_all_that_was_said_is_found_in_its_order() -> None:
    for headers in (SENT, SENT[:3], []):
        head = Head(headers)
        for name in (b"host", b"cookie", b"accept", b"origin"):
            said = [value for known, value in headers if known == name]
            assert head.list(name) == said
            assert head.first(name) == (said[0] if said else None)
            assert (name in head) is bool(said)
            assert head.is_without(frozenset({name, b"x"})) is not bool(said)


def test_a_scope_is_looked_through_once() -> None:
    scope = {"headers": SENT}
    assert head_of(scope) is head_of(scope)
