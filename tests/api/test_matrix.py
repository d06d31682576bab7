"""Every route with every kind of id and bad credential, and with every Host, Origin and Sec-Fetch-Site."""

from itertools import product

import pytest

from tests.api.harness import ADMIN_TOKEN, App, Server, until
from tests.api.test_tenancy import REPEATABLE, UNKNOWN, Operation, operations

GOOD_HOSTS = ("localhost", "127.0.0.1:8800", "[::1]:1")
BAD_HOSTS = (
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.nip.example:8800",
    "10.0.0.1",
    "a@localhost",
)
SITES = (None, "same-origin", "none", "same-site", "cross-site")
FOREIGN = ("http://evil.example", "null", "https://localhost:9", "file://", "http://localhost@evil.example")


@pytest.fixture(scope="module")
def every(server: Server) -> list[Operation]:
    return list(operations(server.client().get("/openapi.json").json()))


def test_a_bad_credential_answers_the_same_bytes_whatever_is_asked(
    every: list[Operation], server: Server, app: App
) -> None:
    """Not even who asks for what can be told apart: one body for all."""
    foreign = app.session()
    revoked, expired = server.app(), server.app(expires_in_secs=1)
    server.admin().delete(f"/admin/tokens/{revoked.token_id}")
    until(lambda: expired.http.get("/sessions").status_code == 401, "the token's expiry", 5)
    clients = {
        "no": server.client(),
        "wrong": server.client("cf_wrong"),
        "revoked": revoked.http,
        "expired": expired.http,
        "almost": server.client(app.token[:-1]),
    }
    ids = {"foreign": foreign, **UNKNOWN}
    bodies = set()
    count = 0
    for operation, (who, client), (kind, session_id) in product(every, clients.items(), ids.items()):
        if operation.path.startswith("/shared"):  # no credential opens it but a link, which is found or not
            continue
        if operation.secured and (operation.names_a_session or kind == "unknown"):
            reply = operation.call(client, session_id)
            assert reply.status_code == 401, (operation, who, kind, reply.text)
            bodies.add((reply.content, reply.headers["content-type"], reply.headers["www-authenticate"]))
            count += 1
    assert len(bodies) == 1
    assert count > 500


def test_an_unknown_id_answers_the_same_for_every_app(every: list[Operation], app: App, other: App) -> None:
    theirs = other.session()
    for operation in every:
        if operation.names_a_session:
            replies = [operation.call(app.http, one) for one in (theirs, *UNKNOWN.values())]
            status = 200 if operation.path in REPEATABLE else 404
            assert {reply.status_code for reply in replies} == {status}, operation
            assert len({reply.content for reply in replies}) == 1, operation


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_a_foreign_host_is_refused_on_every_route(
    every: list[Operation], server: Server, app: App, host: str
) -> None:
    bodies = set()
    for token, site in product((None, app.token, ADMIN_TOKEN), (None, "same-origin")):
        fetch = {} if site is None else {"Sec-Fetch-Site": site}
        with server.client(token, Host=host, **fetch) as client:
            for operation in every:
                reply = operation.call(client, UNKNOWN["unknown"])
                assert reply.status_code == 421, (operation, token, site)
                bodies.add(reply.content)
    assert len(bodies) == 1


@pytest.mark.parametrize("host", GOOD_HOSTS)
def test_a_foreign_page_is_refused_on_every_route(
    every: list[Operation], server: Server, app: App, host: str
) -> None:
    """A page of another origin is refused with a good token too; our own is not."""
    own = f"http://{host}"
    cases = [*product((None, own), SITES), *product(FOREIGN, (None, "same-origin"))]
    for origin, site in cases:
        sent = {"Host": host, "Origin": origin, "Sec-Fetch-Site": site}
        headers = {name: value for name, value in sent.items() if value is not None}
        refused = origin in FOREIGN or site == "cross-site"
        with server.client(app.token, **headers) as client:
            for operation in every:
                reply = operation.call(client, UNKNOWN["unknown"])
                told = (reply.status_code, reply.json()["code"]) if reply.status_code >= 400 else (200, "")
                assert (told == (403, "origin_refused")) is refused, (operation, headers, told)
                assert "access-control-allow-origin" not in reply.headers
