"""A server for all, and a command line with a project for each test."""

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from clawdforge.wire.local import LOCK_FILE, TOKEN_FILE
from tests.api.harness import AGENTS, App, Server, until
from tests.cli.kit import Cli, environment


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("cli") / "data")
    yield found
    found.stop()


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    """One for all tests; a turn that one of them leaves running is ended, lest the next one sees it."""
    yield shared_server
    with shared_server.closing_clients():
        admin = shared_server.admin()

        def left() -> set[str]:
            found = admin.get("/admin/stuck", params={"secs": 0}).json()["sessions"]
            return {str(one["app_name"]) for one in found}

        def end() -> bool:
            """Those that run, and then those that waited for them."""
            found = left()
            for app in found:
                assert admin.post("/admin/pause", json={"app_name": app, "stop": True}).status_code == 200
                assert admin.post("/admin/resume", json={"app_name": app}).status_code == 200
            return not found

        until(end, "the end of the turns that a test left running")


@pytest.fixture
def make(tmp_path: Path, home: Path) -> Iterator[Callable[..., Cli]]:
    """Command lines on a data folder: `make(folder, NAME="value")`."""
    made: list[Cli] = []

    def begin(data_dir: Path, **env: str) -> Cli:
        project = tmp_path / f"project{len(made)}"
        project.mkdir()
        made.append(Cli(data_dir, project, environment(data_dir, home, **env), []))
        return made[-1]

    yield begin
    for cli in made:
        cli.close()


@pytest.fixture
def cli(server: Server, make: Callable[..., Cli]) -> Cli:
    """A person's command line beside a running server."""
    return make(server.data_dir)


@pytest.fixture
def local(server: Server) -> App:
    """The same person over HTTP."""
    token = (server.data_dir / TOKEN_FILE).read_text().strip()
    return App("local", token, "", server.client(token))


@pytest.fixture
def alone(tmp_path: Path, make: Callable[..., Cli]) -> Iterator[Cli]:
    """A command line without any server; what it starts is ended."""
    folder = tmp_path / "alone"
    yield make(folder, **AGENTS)
    with contextlib.suppress(OSError, ValueError, KeyError, psutil.NoSuchProcess):
        pid = json.loads((folder / LOCK_FILE).read_text())["pid"]
        process = psutil.Process(pid)
        try:
            os.kill(pid, signal.SIGTERM)
            process.wait(20)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(20)
