"""The endpoint over HTTP: which protocol a path speaks, the stream on the wire, and the log of requests.

`GET /requests` lists what was asked so far; `DELETE /requests` empties the list.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.model import anthropic, chat, gemini, responses
from tests.support.model.conversation import Conversation
from tests.support.model.script import MARK, Plan, Script

Frames = Callable[[Plan, str, int], Iterator[tuple[str | None, Any]]]
MAX_BODY: Final = 64 << 20
HELD: Final = 1 << 20
"""How much of what a request held is noted, in characters."""

MODELS: Final = ("fake-model", "claude-opus-5-5", "gpt-5")


@dataclass(frozen=True, slots=True)
class Protocol:
    """How one family of models is spoken to."""

    name: str
    read: Callable[[dict[str, Any], str], Conversation]
    whole: Callable[[Plan, str, int], dict[str, Any]]
    frames: Frames
    failure: Callable[[Plan], dict[str, Any]]


MESSAGES: Final = Protocol("messages", anthropic.read, anthropic.whole, anthropic.frames, anthropic.failure)
CHAT: Final = Protocol("chat", chat.read, chat.whole, chat.frames, chat.failure)
RESPONSES: Final = Protocol("responses", responses.read, responses.whole, responses.frames, responses.failure)
GEMINI: Final = Protocol("gemini", gemini.read, gemini.whole, gemini.frames, gemini.failure)


def protocol_of(path: str) -> Protocol | None:
    if "enerateContent" in path:
        return GEMINI
    for ending, protocol in (("/messages", MESSAGES), ("/chat/completions", CHAT), ("/responses", RESPONSES)):
        if path.endswith(ending):
            return protocol
    return None


class Endpoint:
    """Listens on loopback; `url` is its address. Requests are served in threads until `close`."""

    def __init__(self, port: int = 0) -> None:
        self.script = Script()
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[dict[str, Any]] = []
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.endpoint = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def requests(self) -> list[dict[str, Any]]:
        with self._lock:
            return list(self._requests)

    def note(self, protocol: Protocol, asked: Conversation, plan: Plan) -> int:
        turns = asked.turns
        with self._lock:
            number = len(self._requests) + 1
            self._requests.append(
                {
                    "number": number,
                    "protocol": protocol.name,
                    "model": asked.model,
                    "stream": asked.stream,
                    "aside": asked.aside,
                    "turn": len(turns),
                    "marks": [mark for turn in turns for mark in MARK.findall(turn)],
                    "last": turns[-1] if turns else "",
                    "result": asked.result,
                    "held": "\n".join(one.text for one in asked.said)[-HELD:],
                    "tools": [tool.name for tool in asked.tools],
                    "status": plan.status,
                    "input_tokens": plan.usage.taken,
                    "output_tokens": plan.usage.given,
                    "cached_tokens": plan.usage.cached,
                }
            )
        return number

    def forget(self) -> None:
        with self._lock:
            self._requests.clear()

    def wait(self) -> None:
        self._thread.join()

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def running(port: int = 0) -> Iterator[Endpoint]:
    endpoint = Endpoint(port)
    try:
        yield endpoint
    finally:
        endpoint.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    endpoint: Endpoint


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/requests":
            self._json(200, {"requests": self.server.endpoint.requests()})
        elif path.endswith("/models"):
            models = [{"id": name, "object": "model", "type": "model", "created": 0} for name in MODELS]
            self._json(200, {"object": "list", "data": models, "has_more": False})
        else:
            self._json(200 if path == "/" else 404, {"ok": path == "/"})

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def do_DELETE(self) -> None:
        self.server.endpoint.forget()
        self._json(200, {"ok": True})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        try:
            body = json.loads(self.rfile.read(min(int(self.headers.get("Content-Length") or 0), MAX_BODY)))
        except ValueError:
            self._json(400, {"error": {"message": "the body is not JSON"}})
            return
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": len(json.dumps(body)) // 4})
            return
        protocol = protocol_of(path)
        if protocol is None or not isinstance(body, dict):
            self._json(404, {"error": {"message": f"nothing is scripted for {path}"}})
            return
        self._answer(protocol, protocol.read(body, path))

    def _answer(self, protocol: Protocol, asked: Conversation) -> None:
        endpoint = self.server.endpoint
        plan = endpoint.script.plan(asked)
        number = endpoint.note(protocol, asked, plan)
        if plan.wait and endpoint.closing.wait(plan.wait):
            self.close_connection = True
        elif plan.status != 200:
            self._json(plan.status, protocol.failure(plan))
        elif asked.stream:
            with suppress(ConnectionError):  # the agent has heard enough
                self._stream(plan, list(protocol.frames(plan, asked.model, number)))
        else:
            endpoint.closing.wait(plan.pause * len(plan.words))
            self._json(200, protocol.whole(plan, asked.model, number))

    def _stream(self, plan: Plan, frames: list[tuple[str | None, Any]]) -> None:
        """To the end of the connection, so that a cut needs no trick."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        for kind, data in frames[: len(frames) // 2] if plan.cut else frames:
            text = data if isinstance(data, str) else json.dumps(data)
            event = f"event: {kind}\n" if kind else ""
            self.wfile.write(f"{event}data: {text}\n\n".encode())
            self.wfile.flush()
            if plan.pause and self.server.endpoint.closing.wait(plan.pause):
                return

    def _json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """The log is at /requests."""

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()
