"""The part of the hostile agent that wants out by the network, around the proxy or through it.

Standard library only, as `hostile.py`. `listener` in the facts is the port that it wants to reach.
"""

import os
import socket
import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

NAMES: Final = (
    *("localhost", "127.1", "0.0.0.0", "2130706433"),  # noqa: S104 - nobody binds to it
    *("0x7f000001", "[::ffff:127.0.0.1]", "127.0.0.1"),
)
SECONDS: Final = 10


class Networks:
    """Each method is one attempt; what it returns is the loot. `client` is the other end of the pipes."""

    client: Any
    facts: dict[str, Any]

    def loopback_network(self) -> str:
        with socket.create_connection(("127.0.0.1", self.facts["listener"]), SECONDS):
            return "connected"

    def loopback_by_datagrams(self) -> str:
        """Whoever gets an answer has reached somebody."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
            end.settimeout(SECONDS)
            end.connect(("127.0.0.1", self.facts["datagrams"]))
            end.send(b"hello")
            return end.recv(100).decode()

    def loopback_from_a_terminal(self) -> str:
        script = Path.cwd() / "connect.py"
        port = self.facts["listener"]
        script.write_text(f"import socket; socket.create_connection(('127.0.0.1', {port}), 9)")
        name = self.client.request("terminal/create", command=f"{sys.executable} -I connect.py")["terminalId"]
        end = self.client.request("terminal/wait_for_exit", terminalId=name)
        self.client.request("terminal/release", terminalId=name)
        return "connected" if end.get("exitCode") == 0 else ""

    def addresses_of_the_machine(self) -> str:
        """Interfaces other than loopback, from which one could go on."""
        return " ".join(name for _, name in socket.if_nameindex() if name != "lo")

    def tunnel_to_a_listed_place(self) -> str:
        return self._ask(f"CONNECT 127.0.0.1:{self.facts['listed']} HTTP/1.1\r\n\r\n")

    def tunnel_through_the_proxy(self) -> str:
        return self._ask(f"CONNECT 127.0.0.1:{self.facts['listener']} HTTP/1.1\r\n\r\n")

    def tunnel_by_another_name(self) -> str:
        port = self.facts["listener"]
        found = (self._ask(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}\r\n\r\n") for name in NAMES)
        return next(filter(None, found), "")

    def ask_the_proxy_for_a_page(self) -> str:
        port = self.facts["listener"]
        return self._ask(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")

    def name_a_listed_host_and_mean_another(self) -> str:
        """The line says one place and the header another."""
        port, listed = self.facts["listener"], self.facts["listed"]
        return self._ask(f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{listed}\r\n\r\n")

    def reach_the_server_through_the_proxy(self) -> str:
        port = self.facts.get("aim", urlsplit(self.facts["url"]).port)
        return self._ask(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n")

    def _ask(self, request: str) -> str:
        """The first line of a good answer of the proxy."""
        proxy = urlsplit(os.environ.get("HTTP_PROXY", ""))
        if proxy.hostname is None or proxy.port is None:
            raise ConnectionError("it knows no proxy")
        with socket.create_connection((proxy.hostname, proxy.port), SECONDS) as end:
            end.sendall(request.encode())
            line = end.recv(1000).decode(errors="replace").partition("\r\n")[0]
        return line if " 200" in line[:14] else ""
