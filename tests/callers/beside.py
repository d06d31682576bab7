"""Serves a front end's files beside our server, as the proxy of somebody who moves here would.

`/api/…` and `/health` go to the server under its prefix for the dialect, with the Host that the browser sent.
Everything else is a file of the front end.
"""

import http.client
import mimetypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from tests.callers.front_end import FrontEnd

PREFIX: Final = "/hermes"
"""What the server's `CLAWDFORGE_HERMES_PREFIX` must be: its list of sessions is served only there."""

OURS: Final = ("/api/", "/health")
HOP: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "proxy-connection"})
PIECE: Final = 65_536
SECONDS: Final = 60


@contextmanager
def served(front_end: FrontEnd, upstream: Callable[[], str], port: int = 0) -> Iterator[str]:
    """The address of the page; `upstream` says where our server is at the moment."""

    class Handler(Proxy):
        pass

    Handler.front_end = front_end
    Handler.upstream = staticmethod(upstream)
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Proxy(BaseHTTPRequestHandler):
    """One request for each connection: what ends an answer is then the same for a file and for a stream."""

    front_end: FrontEnd
    upstream: Callable[[], str]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path.startswith(OURS):
            self._pass_on()
        elif path in ("/", "/index.html") or (path.startswith("/session/") and "." not in path):
            self._send(self.front_end.index().encode(), "text/html; charset=utf-8")
        elif path == "/login":
            self._send(self.front_end.login.encode(), "text/html; charset=utf-8")
        else:
            self._send_file(path)

    def do_POST(self) -> None:
        self._pass_on()

    do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 - their names in the standard library

    def log_message(self, *_: Any) -> None:
        """The journeys tell what happened."""

    def _send_file(self, path: str) -> None:
        name = path.removeprefix("/session/").removeprefix("/").removeprefix("static/")
        static = self.front_end.static.resolve()
        file = (static / name).resolve()
        if not file.is_relative_to(static) or not file.is_file():
            self.send_error(404)
            return
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        self._send(file.read_bytes(), f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def _pass_on(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        there = urlsplit(self.upstream())
        connection = http.client.HTTPConnection(there.hostname or "", there.port, timeout=SECONDS)
        try:
            connection.putrequest(self.command, PREFIX + self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP:
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            self._answer(connection.getresponse())
        except (OSError, http.client.HTTPException):
            return  # the browser sees that the server is gone
        finally:
            connection.close()

    def _answer(self, reply: http.client.HTTPResponse) -> None:
        """Tests of hermes-webui look for names of headers as its server spells them, letter by letter."""
        self.send_response_only(reply.status, reply.reason)
        for name, value in reply.getheaders():
            if name.lower() not in HOP:
                self.send_header(name.title(), value)
        self.send_header("Connection", "close")
        self.end_headers()
        while piece := reply.read1(PIECE):
            self.wfile.write(piece)
            self.wfile.flush()
