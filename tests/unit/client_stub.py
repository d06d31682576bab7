"""A real HTTP server on loopback that answers what a test tells it to, and remembers what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    raw: bytes

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def json(self) -> Any:
        return json.loads(self.raw) if self.raw else None


@dataclass(frozen=True)
class Answer:
    """`body` is JSON, `chunks` are sent one by one; `drop` closes the connection instead of answering."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    chunks: tuple[bytes, ...] | None = None
    drop: bool = False


DROP = Answer(drop=True)


class Stub:
    """Answers with `script`, a function of the request."""

    def __init__(self, script: Callable[[Asked], Answer]) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.url = ""
        self._lock = threading.Lock()

    @property
    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    def answer(self, asked: Asked) -> Answer:
        with self._lock:
            self.asked.append(asked)
        return self.script(asked)


def answers(*script: Answer) -> Callable[[Asked], Answer]:
    """One after another; the last one stays."""
    left = list(script)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def serving(script: Callable[[Asked], Answer]) -> Iterator[Stub]:
    stub = Stub(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            url = urlsplit(self.path)
            answer = stub.answer(
                Asked(
                    self.command,
                    url.path,
                    parse_qs(url.query),
                    {name.lower(): value for name, value in self.headers.items()},
                    self._body(),
                )
            )
            if answer.drop:
                self.close_connection = True
                return
            # A caller may have given up by now.
            with suppress(BrokenPipeError, ConnectionResetError):
                self._reply(answer)

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("content-length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _reply(self, answer: Answer) -> None:
            raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.chunks is None:
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
                return
            self.close_connection = True
            self.end_headers()
            for chunk in answer.chunks:
                self.wfile.write(chunk)
                self.wfile.flush()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the names http.server looks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that is overridden
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
