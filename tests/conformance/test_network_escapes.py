"""An agent of a real server tries to get out by the network, in each mode of it; its table is true."""

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.api.harness import App, Server
from tests.conformance.escapes import NETWORKS, WAYS_OUT, WayOut
from tests.conformance.scene import copy_program, read_report
from tests.needs import needs

pytestmark = [needs("bwrap"), pytest.mark.slow]
PROXIED = [way for way in WAYS_OUT if (way.open, way.proxy) == ("no", "no")]
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


class Page(BaseHTTPRequestHandler):
    """Somebody who answers."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@dataclass
class Outside:
    """A session in each mode, a place that is listed, and one that is not."""

    app: App
    sessions: dict[str, str]
    facts: dict[str, Any]

    def attempt(self, network: str, probe: str, **facts: Any) -> dict[str, str]:
        order = json.dumps({"probe": probe, "facts": self.facts | facts})
        return read_report(self.app.turn(self.sessions[network], order))


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    root = tmp_path_factory.mktemp("outside")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:  # a proxy of this machine is none of ours
            patch.delenv(name, raising=False)
        ports = []
        for _ in range(2):
            pages = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Page))
            threading.Thread(target=pages.serve_forever, daemon=True).start()
            stack.callback(pages.shutdown)
            ports.append(pages.server_address[1])
        echo = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        echo.bind(("127.0.0.1", 0))
        threading.Thread(target=answer, args=(echo,), daemon=True).start()
        command = json.dumps(f"{sys.executable} -I {copy_program(stack)}")
        config = root / "clawdforge.toml"
        tables = (
            f'[agents.{name}]\ncommand = {command}\nsandbox = "auto"\nnetwork = "{name}"\n'
            for name in NETWORKS
        )
        config.write_text("".join(tables) + f'hosts = ["127.0.0.1:{ports[0]}"]\n')  # of the last, `proxy`
        server = Server(root / "data", {}, "--config", str(config), cold=True)
        stack.callback(server.stop)
        app = server.app()
        facts = {"listed": ports[0], "listener": ports[1], "datagrams": echo.getsockname()[1]}
        facts |= {"data": str(server.data_dir), "server": server.process.pid, "victim": 1, "url": server.url}
        yield Outside(app, {name: app.session(agent=name) for name in NETWORKS}, facts)


def answer(echo: socket.socket) -> None:
    try:
        while True:
            echo.sendto(b"heard", echo.recvfrom(100)[1])
    except OSError:  # it was closed
        return


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("way", WAYS_OUT, ids=lambda way: way.probe)
def test_the_table_of_networks_is_true(outside: Outside, network: str, way: WayOut) -> None:
    found = outside.attempt(network, way.probe)
    expected = {"yes": True, "no": False, "perhaps": None}[getattr(way, network)]
    assert expected is None or bool(found["loot"]) is expected, found


@pytest.mark.parametrize("way", PROXIED, ids=lambda way: way.probe)
def test_the_same_request_gets_through_to_a_listed_place(outside: Outside, way: WayOut) -> None:
    """The twin of what the proxy refuses."""
    listed = outside.facts["listed"]
    found = outside.attempt("proxy", way.probe, listener=listed, aim=listed)
    assert found["loot"], found
