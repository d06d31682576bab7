"""A server whose database is in trouble says so, with 503 and when to try again, and goes on afterwards."""

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import httpx2
import pytest

from clawdforge.stores.postgres.link import Link
from tests.api.harness import App, Server, until
from tests.api.test_postgres import answer, ask, name_of
from tests.needs import needs
from tests.postgres import Postgres, run_postgres

pytestmark = needs("postgres")


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.make_database()


def check_refused(reply: httpx2.Response, why: str) -> None:
    assert reply.status_code == 503, reply.text
    assert int(reply.headers["Retry-After"]) >= 1
    found = reply.json()
    assert found["code"] == "store_unavailable"
    assert any(words in found["error"] for words in (why, "try again", "retry with")), found


def end_connections(postgres: Postgres, url: str) -> None:
    ask(
        postgres,
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name_of(url)}'",  # noqa: S608
    )


def refused_while(app: App, session: str, why: str) -> None:
    until(lambda: app.turn(session, "echo lost").status_code == 503, "a prompt that is refused")
    check_refused(app.turn(session, "echo lost"), why)
    assert app.http.get(f"/sessions/{session}").status_code in (200, 503)


def said(http: httpx2.Client, session: str) -> list[str]:
    found = http.get(f"/sessions/{session}/messages").json()["messages"]
    return [one["content"] for one in found if one["role"] == "user"]


def test_one_that_can_only_be_read_after_a_failover(
    start: Callable[..., Server], postgres: Postgres, url: str
) -> None:
    server = start(DATABASE_URL=url)
    app = server.app()
    session = app.session()
    assert answer(app.http, session, "one") == "one"
    ask(postgres, f"ALTER DATABASE {name_of(url)} SET default_transaction_read_only = on")
    end_connections(postgres, url)
    refused_while(app, session, "read-only transaction")
    assert server.client().get("/healthz").status_code == 200
    ask(postgres, f"ALTER DATABASE {name_of(url)} RESET default_transaction_read_only")
    end_connections(postgres, url)
    until(lambda: app.turn(session, "echo two").status_code == 200, "the store's return")
    assert said(app.http, session) == ["echo one", "echo two"]


def test_a_right_that_was_taken_away(start: Callable[..., Server], postgres: Postgres, url: str) -> None:
    ask(postgres, "CREATE ROLE fallen LOGIN")
    with contextlib.closing(Link(url)) as link:
        link.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO fallen")
        server = start(DATABASE_URL=url.replace("//postgres@", "//fallen@"))
        app = server.app()
        session = app.session()
        assert answer(app.http, session, "one") == "one"
        link.run("REVOKE INSERT ON turns FROM fallen")
        refused_while(app, session, "permission denied for table turns")
        link.run("REVOKE SELECT ON messages FROM fallen")
        check_refused(app.http.get(f"/sessions/{session}/messages"), "permission denied for table messages")
        link.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO fallen")
        until(lambda: app.turn(session, "echo two").status_code == 200, "the right's return")
    assert said(app.http, session) == ["echo one", "echo two"]


@pytest.fixture(scope="module")
def tight() -> Iterator[Postgres]:
    """A Postgres with a small file system beside its own."""
    with run_postgres(small_mib=40) as server:
        ask(server, f"CREATE TABLESPACE tight LOCATION '{server.small}'")
        yield server


@needs("tmpfs")
def test_a_full_disk(start: Callable[..., Server], tight: Postgres) -> None:
    url = tight.make_database()
    ask(tight, f"ALTER DATABASE {name_of(url)} SET TABLESPACE tight")
    server = start(DATABASE_URL=url)
    app = server.app()
    session = app.session()
    assert answer(app.http, session, "one") == "one"
    with contextlib.closing(Link(url)) as link:
        fill(link)
        long = f"echo {secrets.token_hex(200_000)}"
        until(lambda: app.turn(session, long).status_code == 503, "a prompt that does not fit")
        check_refused(app.turn(session, long), "No space left on device")
        assert server.client().get("/healthz").status_code == 200
        assert said(app.http, session)[0] == "echo one"
        link.run("DROP TABLE filler")
    until(lambda: app.turn(session, long).status_code == 200, "room")
    assert answer(app.http, session, "two") == "two"
    assert said(app.http, session)[0] == "echo one"
    assert said(app.http, session)[-2:] == [long, "echo two"]


def fill(link: Link) -> None:
    link.run("CREATE TABLE filler (content bytea STORAGE EXTERNAL)")
    size = 1 << 22
    while size > 4096:
        try:
            link.run("INSERT INTO filler VALUES ($1)", (secrets.token_bytes(size),))
        except asyncpg.DiskFullError:
            size //= 2


@pytest.fixture
def both(tmp_path: Path, url: str) -> Iterator[list[App]]:
    """One app on a file, and one on Postgres."""
    servers = [
        Server(tmp_path / "file", store="sqlite"),
        Server(tmp_path / "rows", {"CLAWDFORGE_DATABASE_URL": url}),
    ]
    yield [server.app("odd") for server in servers]
    for server in servers:
        server.stop()


ODD = [
    "a\0b",
    "\0",
    "\ufdd0",
    "\ufdd00\0",
    "\ud800",
    "a\udfffb",
    "\ud83d\ude00",
    "\u2028\x85\x1b",
    "é\u0301",
    "",
]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_odd_characters_are_answered_alike(both: list[App], text: str) -> None:
    found = []
    for app in both:
        session = app.session()
        replies = [
            post(app, f"/sessions/{session}/turn", {"prompt": f"echo {text}"}),
            post(app, "/sessions", {"agent": "claude", "title": text, "meta": {"key": text}}),
            post(app, "/sessions/import", {"messages": [{"role": "user", "content": f"so {text}"}]}),
            app.http.get("/search", params={"q": text.encode(errors="replace").decode()}),
            app.http.get(f"/sessions/{session}/messages"),
        ]
        assert all(reply.status_code < 500 for reply in replies)
        heard = [one["content"] for one in replies[-1].json()["messages"]]
        found.append(([reply.status_code for reply in replies], heard, replies[0].json().get("error")))
    assert found[0] == found[1]


def post(app: App, path: str, body: object) -> httpx2.Response:
    """As JSON that says every odd character by its number."""
    return app.http.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})


def test_a_line_of_32_mib_is_kept_whole(both: list[App]) -> None:
    """Its words are several events, and more than one page."""
    size = (32 << 20) - 4096
    for app in both:
        session = app.session()
        reply = app.turn(session, f"bytes {size}")
        assert reply.status_code == 200, reply.text[:500]
        head = app.http.get(f"/sessions/{session}").json()["head"]
        said = after = 0
        while after < head:
            page = app.http.get(f"/sessions/{session}/events", params={"after": after})
            assert page.status_code == 200, page.text[:500]
            said += sum(len(one["content"]) for one in page.json()["events"] if one["type"] == "text")
            after = page.json()["next"]
        assert said == size
        assert app.turn(session, "echo on").status_code == 200
