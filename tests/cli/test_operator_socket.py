"""Operators' commands on the server's own machine: over its socket, and by the token where there is none."""

import os
import socketserver
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from clawdforge.cli.target.operator_socket import SOCKET_URL, open_socket
from clawdforge.wire.local import OPERATOR_SOCKET
from tests.api.harness import ADMIN_TOKEN, Server
from tests.api.test_trust import as_agent
from tests.cli.kit import Cli


def test_a_command_needs_no_token_where_the_socket_is(tmp_path: Path, make: Callable[..., Cli]) -> None:
    server = Server(tmp_path / ("long" * 40), {}, "--host", "0.0.0.0")  # noqa: S104 - asked over loopback
    try:
        cli = make(server.data_dir)
        assert not (server.data_dir / "admin.token").exists()
        said = cli("app", "limit", "near", "--verbose")
        assert OPERATOR_SOCKET in said.stderr
        assert "near" in cli("app", "list").stdout
        cli("app", "list", "--server", server.url, code=6)
    finally:
        server.stop()


def test_it_falls_back_to_the_token(tmp_path: Path, make: Callable[..., Cli]) -> None:
    (tmp_path / "data" / OPERATOR_SOCKET).mkdir(parents=True)
    server = Server(tmp_path / "data", {"CLAWDFORGE_ADMIN_TOKEN": ""})
    try:
        said = make(server.data_dir)("app", "list", "--verbose")
        assert OPERATOR_SOCKET not in said.stderr
        assert "local" in said.stdout
    finally:
        server.stop()


class Unsure(BaseHTTPRequestHandler):
    """A server that cannot tell who connects."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200 if self.headers["Authorization"] == "Bearer cfa_right" else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "a unix socket"


@pytest.mark.parametrize(("token", "status"), [("cfa_right", 200), ("cfa_wrong", 401), (None, 401)])
def test_a_socket_that_does_not_know_us_gets_a_token(tmp_path: Path, token: str | None, status: int) -> None:
    folder = os.open(tmp_path, os.O_PATH)
    try:
        with socketserver.UnixStreamServer(f"/proc/self/fd/{folder}/{OPERATOR_SOCKET}", Unsure) as server:
            serving = threading.Thread(target=server.serve_forever)
            serving.start()
            try:
                with open_socket(tmp_path, lambda: token) as client:
                    assert client is not None
                    reply = client.post(SOCKET_URL, content=b"all of it")
                    assert (reply.status_code, reply.content) == (status, b"all of it")
            finally:
                server.shutdown()
                serving.join()
    finally:
        os.close(folder)


def test_the_token_of_the_folder_is_the_one_that_is_sent(tmp_path: Path) -> None:
    """An agent is not known on the socket, so its command sends the token, which does not help it."""
    server = Server(tmp_path / "data", {"CLAWDFORGE_SANDBOX": "off"})
    (server.data_dir / "admin.token").write_text(ADMIN_TOKEN)
    argv = [sys.executable, "-m", "clawdforge", "app", "list", "--data-dir", str(server.data_dir)]
    try:
        app = server.app()
        assert "whatever token it has" in as_agent(app, argv)
        (server.data_dir / "admin.token").unlink()
        assert "this is an agent; send a token" in as_agent(app, argv)
    finally:
        server.stop()
