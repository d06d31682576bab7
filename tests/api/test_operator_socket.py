"""The operator's socket: no token, known by the kernel's word, and closed to agents."""

import os
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from clawdforge.wire.local import OPERATOR_SOCKET
from tests.api.harness import ADMIN_TOKEN, Server
from tests.api.test_trust import LEVELS, as_agent, as_neighbour, command

NOBODY = 65534
CALL = """
import socket, sys
end = socket.socket(socket.AF_UNIX)
try:
    end.connect(sys.argv[3])
except OSError as error:
    print(type(error).__name__)
    sys.exit()
lines = ("GET /admin/apps HTTP/1.1", "Host: localhost", "Connection: close", "", "")
end.sendall(bytes((13, 10)).join(line.encode() for line in lines))
print(end.makefile("rb").read().decode().partition(" ")[2])
"""


@contextmanager
def operator(server: Server, token: str | None = None) -> Iterator[httpx2.Client]:
    """A client on the socket, by a path that is short enough."""
    folder = os.open(server.data_dir, os.O_PATH)
    transport = httpx2.HTTPTransport(uds=f"/proc/self/fd/{folder}/{OPERATOR_SOCKET}", verify=False)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with httpx2.Client(transport=transport, base_url="http://localhost", headers=headers) as client:
            yield client
    finally:
        os.close(folder)


def test_the_servers_user_is_the_operator_without_a_token(server: Server) -> None:
    path = server.data_dir / OPERATOR_SOCKET
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(server.data_dir.stat().st_mode) == 0o700
    with operator(server) as client:
        made = client.post("/admin/tokens", json={"app_name": "by-socket"})
        assert made.status_code == 200
        assert client.get("/metrics").status_code == 200
        refused = client.get("/sessions")
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), "it is no app"
        assert client.get("/api/sessions").status_code == 403
    with operator(server, made.json()["token"]) as client:
        assert client.get("/sessions").status_code == 200
        assert client.get("/admin/apps").status_code == 403, "a token that was sent counts"
    with operator(server, "cf_wrong") as client:
        assert client.get("/admin/apps").status_code == 401, "and is never replaced by the socket"


@pytest.mark.parametrize("sandbox", LEVELS)
def test_an_agent_is_not_the_operator(start: Callable[..., Server], sandbox: str) -> None:
    """Where it sees the data folder at all. The same program succeeds when the operator runs it."""
    server = start(SANDBOX=sandbox)
    argv = [*command(server, CALL), str(server.data_dir / OPERATOR_SOCKET)]
    assert as_neighbour(argv).startswith("200 ")
    said = as_agent(server.app(), argv)
    if sandbox == "off":
        assert said.startswith("401 "), said
        assert "this is an agent" in said
    else:
        assert said.strip() == "FileNotFoundError"


STOLEN = """
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=20)
connection.request("GET", "/admin/apps", headers={"Authorization": "Bearer " + sys.argv[3]})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""


@pytest.mark.parametrize("sandbox", LEVELS)
def test_an_agent_has_no_use_for_the_operators_token(start: Callable[..., Server], sandbox: str) -> None:
    """However it came to it. The same program succeeds when the operator runs it."""
    server = start(SANDBOX=sandbox)
    argv = [*command(server, STOLEN), ADMIN_TOKEN]
    assert as_neighbour(argv).startswith("200 ")
    said = as_agent(server.app(), argv)
    assert said.startswith("403 "), said
    assert "an agent cannot act as the operator" in said


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_is_not_the_operator(start: Callable[..., Server]) -> None:
    """Even if somebody opened the folder to all."""
    server = start()
    argv = [*command(server, f"import os, socket, sys, codecs; os.setuid({NOBODY}){CALL}"), OPERATOR_SOCKET]
    server.data_dir.chmod(0o711)
    (server.data_dir / OPERATOR_SOCKET).chmod(0o666)
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=server.data_dir, timeout=60)
    assert done.stdout.startswith("401 "), done.stdout
    assert "another user" in done.stdout


def test_a_stop_removes_it_and_a_kill_does_no_harm(start: Callable[..., Server]) -> None:
    server = start()
    path = server.data_dir / OPERATOR_SOCKET
    assert server.stop(signal.SIGKILL) != 0
    assert path.is_socket()
    server.start()
    with operator(server) as client:
        assert client.get("/admin/apps").status_code == 200
        assert server.stop() == 0, "with this connection still open"
    assert not path.exists()


def test_a_data_folder_may_have_a_long_path(tmp_path: Path) -> None:
    server = Server(tmp_path / ("long" * 40))
    try:
        with operator(server) as client:
            assert client.get("/admin/apps").status_code == 200
    finally:
        server.stop()


def test_a_folder_that_cannot_hold_a_socket_leaves_the_token(tmp_path: Path) -> None:
    (tmp_path / "data" / OPERATOR_SOCKET).mkdir(parents=True)
    server = Server(tmp_path / "data")
    try:
        assert server.admin().get("/admin/apps").status_code == 200
        assert "use the operator's token instead" in server.log_text
    finally:
        server.stop()


def test_beyond_loopback_the_operator_is_served_on_the_socket_only(start: Callable[..., Server]) -> None:
    server = start("--host", "0.0.0.0")  # noqa: S104 - asked over loopback
    refused = server.admin().get("/admin/apps")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "CLAWDFORGE_ADMIN_BEYOND_LOOPBACK" in refused.json()["error"]
    assert server.client("cfa_wrong").get("/admin/apps").status_code == 401
    with operator(server) as client:
        token = client.post("/admin/tokens", json={"app_name": "far"}).json()["token"]
    with operator(server, ADMIN_TOKEN) as client:
        assert client.get("/admin/apps").status_code == 200
    assert server.client(token).get("/sessions").status_code == 200


def test_an_operator_may_allow_it(start: Callable[..., Server]) -> None:
    server = start("--host", "0.0.0.0", ADMIN_BEYOND_LOOPBACK="1")  # noqa: S104 - asked over loopback
    assert server.admin().get("/admin/apps").status_code == 200
