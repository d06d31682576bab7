"""A command whose server lost the race for a folder waits for the winner to say where it listens."""

import fcntl
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clawdforge.client import _background as background
from clawdforge.client.errors import ServerNotStarted
from clawdforge.wire.local import LOCK_FILE


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        pass


class Winner:
    """The server of another command: it takes the folder at once, and says where it listens when told to."""

    def __init__(self, folder: Path) -> None:
        self._handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Ready)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def announce(self) -> None:
        os.pwrite(self._handle, json.dumps({"url": self.url, "pid": os.getpid()}).encode(), 0)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        os.close(self._handle)


@contextmanager
def winner_in(folder: Path) -> Iterator[Winner]:
    winner = Winner(folder)
    try:
        yield winner
    finally:
        winner.close()


@pytest.fixture
def loser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What is started in the background gives up when somebody holds the folder, as a server does."""
    folder = tmp_path / "data"
    folder.mkdir()
    program = tmp_path / "loser"
    program.write_text(f"#!/bin/sh\nwhile [ ! -e {folder / LOCK_FILE} ]; do sleep 0.01; done\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return folder


def test_a_winner_that_has_not_said_where_it_listens_is_waited_for(
    loser: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause = time.sleep
    looks: list[float] = []
    with winner_in(loser) as winner:

        def look(seconds: float) -> None:
            looks.append(seconds)
            if len(looks) == 40:  # by then the other one has ended long ago
                winner.announce()
            pause(0.005)

        monkeypatch.setattr(time, "sleep", look)
        assert background.start_server(loser, print) == winner.url


def test_a_winner_that_came_between_two_looks_is_waited_for(
    loser: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Winner] = []
    read = background.read_holder

    def read_late(folder: Path) -> dict[str, object] | None:
        """Nobody held the folder at this look. The one that takes it next is what makes ours give up."""
        if not found:
            found.append(Winner(folder))
            time.sleep(0.3)  # time enough for ours to end
            return None
        found[0].announce()
        return read(folder)

    monkeypatch.setattr(background, "read_holder", read_late)
    try:
        assert background.start_server(loser, print) == found[0].url
    finally:
        for winner in found:
            winner.close()


def test_a_server_that_did_not_start_is_told_at_once(loser: Path) -> None:
    (loser / LOCK_FILE).touch()
    with pytest.raises(ServerNotStarted, match="did not start: it said nothing"):
        background.start_server(loser, print)
