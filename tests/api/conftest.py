"""Servers for the tests: one for all that keep to their own app, and fresh ones on demand."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.api.harness import App, Server
from tests.postgres import Postgres, run_postgres


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that keep to apps of their own."""
    found = Server(tmp_path_factory.mktemp("forge") / "data", cold=True)
    yield found
    found.stop()


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
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Servers with settings of their own: `start("--trust-loopback", MAX_LIVE_SESSIONS="2")`."""
    started: list[Server] = []

    def begin(*flags: str, cold: bool = False, **settings: str) -> Server:
        env = {f"CLAWDFORGE_{name}": value for name, value in settings.items()}
        started.append(Server(tmp_path / f"data{len(started)}", env, *flags, cold=cold))
        return started[-1]

    yield begin
    for server in started:
        server.stop()


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """A Postgres for the servers of one module."""
    with run_postgres() as server:
        yield server
