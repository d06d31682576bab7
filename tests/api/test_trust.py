"""What `--trust-loopback` trusts: programs on this machine, never an agent, and nothing through a proxy."""

import base64
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.api.harness import App, Server
from tests.needs import needs

LEVELS = [
    pytest.param("off", id="off"),
    pytest.param("auto", marks=needs("bwrap"), id="auto"),
    pytest.param("full", marks=needs("bwrap"), id="full"),
]
CALL = """
import http.client, sys
host, port = sys.argv[1], int(sys.argv[2])
def call(path="/api/sessions", **headers):
    connection = http.client.HTTPConnection(host, port, timeout=20)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return f"{answer.status} {answer.read().decode()}"
"""
PLAIN = CALL + "print(call())"
DETACHED = (
    CALL
    + """
import os, subprocess
if "again" in sys.argv:
    print(call(), flush=True)
    sys.exit()
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.dup2(writing, 1)
        os.execve(sys.executable, [sys.executable, "-c", SOURCE, *sys.argv[1:3], "again"], {})
    os._exit(0)
os.close(writing)
print(os.read(reading, 4096).decode())
"""
)
INHERITED = (
    CALL
    + """
import os, socket
end = socket.create_connection((host, port))
os.set_inheritable(end.fileno(), True)
code = '''
import socket, sys
end = socket.socket(fileno=int(sys.argv[1]))
lines = ("GET /api/sessions HTTP/1.1", "Host: localhost", "Connection: close", "", "")
end.sendall(bytes((13, 10)).join(line.encode() for line in lines))
print(end.makefile("rb").read().decode().partition(" ")[2])
'''
os.execve(sys.executable, [sys.executable, "-c", code, str(end.fileno())], {})
"""
)
DEEDS = {"plain": PLAIN, "detached": DETACHED, "inherited": INHERITED}


def command(server: Server, source: str) -> list[str]:
    host, _, port = server.url.removeprefix("http://").rpartition(":")
    packed = base64.b64encode(source.encode()).decode()
    code = f"import base64; SOURCE = base64.b64decode('{packed}').decode(); exec(SOURCE)"
    wrapped = f"import base64; SOURCE = {code!r}; exec(SOURCE)"
    return [sys.executable, "-c", wrapped, host.strip("[]"), port]


def as_agent(app: App, argv: list[str]) -> str:
    """What a program printed that an agent ran."""
    session_id = app.session()
    reply = app.turn(session_id, f"terminal {shlex.join(argv)}")
    assert reply.status_code == 200, reply.text
    return "".join(
        event["content"] for event in reply.json()["events"] if event.get("type") == "text"
    ).partition("\n")[2]


def as_neighbour(argv: list[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("sandbox", LEVELS)
def test_no_agent_is_trusted_however_it_calls(start: Callable[..., Server], sandbox: str) -> None:
    """X-08. The same program succeeds when somebody else on this machine runs it."""
    server = start("--trust-loopback", SANDBOX=sandbox)
    app = server.app()
    for name, source in DEEDS.items():
        argv = command(server, source)
        assert as_neighbour(argv).startswith("200 "), name
        said = as_agent(app, argv)
        assert said.startswith("401 "), (name, said)
        assert "agent" in said or "could not be found out" in said, (name, said)


def test_ipv6_is_told_apart_as_well(start: Callable[..., Server]) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    server = start("--trust-loopback", "--host", "::1")
    argv = command(server, PLAIN)
    assert as_neighbour(argv).startswith("200 ")
    assert as_agent(server.app(), argv).startswith("401 ")


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("trusting") / "data", {}, "--trust-loopback")
    yield found
    found.stop()


@pytest.mark.parametrize(
    "header",
    [
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Anything-New",
        "X-Real-IP",
        "Via",
        "CF-Connecting-IP",
        "CF-Ray",
        "True-Client-IP",
        "X-Client-IP",
        "X-Cluster-Client-IP",
        "X-Original-Forwarded-For",
        "X-Original-URL",
        "X-Originating-IP",
        "X-Remote-Addr",
        "Remote-User",
        "Client-IP",
        "Fastly-Client-IP",
        "WL-Proxy-Client-IP",
        "X-ProxyUser-Ip",
        "Proxy-Connection",
        "X-Envoy-External-Address",
        "X-Amzn-Trace-Id",
        "X-Azure-ClientIP",
        "Tailscale-User-Login",
        "CDN-Loop",
    ],
)
def test_a_header_that_tells_of_a_proxy_takes_the_trust_away(trusting: Server, header: str) -> None:
    reply = trusting.client(**{header: "127.0.0.1"}).get("/api/sessions")
    assert reply.status_code == 401
    assert "token" in reply.json()["error"]
    token = trusting.app().token
    assert trusting.client(token, **{header: "127.0.0.1"}).get("/api/sessions").status_code == 200


def test_headers_of_ordinary_clients_do_not_take_it_away(trusting: Server) -> None:
    ordinary = {
        "Accept": "*/*",
        "Accept-Language": "en",
        "Origin": trusting.url,
        "Referer": f"{trusting.url}/",
        "X-Requested-With": "XMLHttpRequest",
        "Sec-Fetch-Site": "same-origin",
        "User-Agent": "Mozilla/5.0",
        "DNT": "1",
        "Cookie": "a=b",
    }
    assert trusting.client(**ordinary).get("/api/sessions").status_code == 200


def test_a_trusted_connection_stays_trusted_and_is_asked_about_once(trusting: Server) -> None:
    with trusting.client() as client:
        assert [client.get("/api/sessions").status_code for _ in range(3)] == [200, 200, 200]
        assert client.get("/api/sessions", headers={"Via": "1.1 x"}).status_code == 401
        assert client.get("/api/sessions").status_code == 200
