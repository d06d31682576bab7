"""Servers for the tests: one for all that keep to their own app, and fresh ones on demand."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.api.harness import App, Server
from tests.databases import USUAL, Store, databases, run_on_both
from tests.postgres import Postgres, run_postgres

pytest_generate_tests = run_on_both


@pytest.fixture(scope="session")
def store(request: pytest.FixtureRequest) -> Store:
    """Where the servers of a test keep their rows."""
    found: Store = getattr(request, "param", USUAL)
    if found == "postgres":
        databases()
    return found


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Store], Server]]:
    """One of each kind at most. Both last: tests of the two kinds may come in any order."""
    with ExitStack() as stack:

        @cache
        def find(store: Store) -> Server:
            found = Server(tmp_path_factory.mktemp("forge") / "data", cold=True, store=store)
            stack.callback(found.stop)
            return found

        yield find


@pytest.fixture(scope="session")
def server(servers: Callable[[Store], Server], store: Store) -> Server:
    """One server for all tests that keep to apps of their own."""
    return servers(store)


@pytest.fixture
def app(server: Server) -> Iterator[App]:
    """An app that nobody else knows."""
    with server.closing_clients():
        yield server.app()


@pytest.fixture
def other(server: Server) -> Iterator[App]:
    with server.closing_clients():
        yield server.app()


@pytest.fixture
def start(tmp_path: Path, store: Store) -> Iterator[Callable[..., Server]]:
    """Servers with settings of their own: `start("--trust-loopback", MAX_LIVE_SESSIONS="2")`."""
    started: list[Server] = []

    def begin(*flags: str, cold: bool = False, **settings: str) -> Server:
        env = {f"CLAWDFORGE_{name}": value for name, value in settings.items()}
        started.append(Server(tmp_path / f"data{len(started)}", env, *flags, cold=cold, store=store))
        return started[-1]

    yield begin
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A Postgres for the servers of one module."""
    with run_postgres() as server:
        yield server
