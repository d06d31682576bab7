"""A server for all, and what a person's editor has in its environment."""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from clawdforge.wire.local import LOCK_FILE, TOKEN_FILE
from tests.api.harness import AGENTS, App, Server
from tests.cli.kit import environment


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("faces") / "data")
    yield found
    found.stop()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def env(server: Server, tmp_path: Path) -> dict[str, str]:
    """The person of the data folder."""
    return environment(server.data_dir, tmp_path)


@pytest.fixture
def local(server: Server) -> App:
    """The same person over HTTP."""
    token = (server.data_dir / TOKEN_FILE).read_text().strip()
    return App("local", token, "", server.client(token))


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment without any server; what is started in it is ended."""
    folder = tmp_path / "alone"
    yield environment(folder, tmp_path, **AGENTS)
    with contextlib.suppress(OSError, ValueError, KeyError, psutil.NoSuchProcess):
        pid = json.loads((folder / LOCK_FILE).read_text())["pid"]
        process = psutil.Process(pid)
        os.kill(pid, signal.SIGTERM)
        try:
            process.wait(20)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(20)
