"""One session in the agent, and one turn of it: how a command speaks, waits, asks and is cancelled."""

from __future__ import annotations

import time
from _queue import Empty, SimpleQueue

from clawdforge.scripted.connection import Call, Connection, RpcError
from clawdforge.scripted.memory import Memory
from clawdforge.scripted.plain_json import encode

BLOCK = 65536  # bytes written at once by a stream without delays
KEPT = 65536  # characters of an answer that go to memory
TEXT_HEAD = b'"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'
TEXT_TAIL = b'"}}}}\n'


class Cancelled(Exception):
    """The client cancelled this turn."""


class Refused(RpcError):
    """The turn fails here; nothing more of it is run."""


class Session:
    """A conversation that is open in this process."""

    def __init__(self, name: str, cwd: str, memory: Memory) -> None:
        self.name = name
        self.cwd = cwd
        self.mode = "default"
        self.model = "scripted-1"
        self.memory = memory
        self.forgotten = False
        self.servers: object = []  # the MCP servers that it was told of
        self.turns: list[Turn] = []
        self.inbox: SimpleQueue[Turn | None] = SimpleQueue()

    def head(self) -> dict[str, object]:
        return {"cwd": self.cwd, "mode": self.mode, "model": self.model}


class Turn:
    """One prompt until its answer."""

    def __init__(self, connection: Connection, session: Session, request: object, blocks: list[str]) -> None:
        self.connection = connection
        self.session = session
        self.request = request
        self.context = blocks[:-1]
        self.text = blocks[-1]
        self.meta: object = None  # what came beside the prompt
        self.number = 0
        self.stop = "end_turn"
        self.error: RpcError | None = None
        self.usage: dict[str, int] | None = None
        self.answers = 1
        self.cancelled = False
        self.begun = time.monotonic()
        self.said_bytes = 0
        self._said: list[str] = []
        self._kept = 0
        self._tools = 0
        self._wake: SimpleQueue[None] = SimpleQueue()  # an event, without all that `threading` imports
        self._head = (
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'
            + encode(session.name)
            + b","
            + TEXT_HEAD
        )

    def cancel(self) -> None:
        self.cancelled = True
        self._wake.put(None)

    def check(self) -> None:
        """Stop here if the turn was cancelled."""
        if self.cancelled:
            raise Cancelled

    def sleep(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.check()
            self._wait(left)
        self.check()

    def answer_text(self) -> str:
        return "".join(self._said)

    def update(self, kind: str, /, **fields: object) -> None:
        self.connection.update(self.session.name, {"sessionUpdate": kind, **fields})

    def say(self, text: str) -> None:
        """Send one chunk of the answer."""
        self.connection.write(self._head, encode(text)[1:-1], TEXT_TAIL)
        self._note(text, len(text.encode("utf-8", "surrogatepass")))

    def say_raw(self, data: bytes) -> None:
        """Send one chunk with these very bytes between its quotes."""
        self.connection.write(self._head, data, TEXT_TAIL)

    def say_large(self, size: int) -> None:
        """Send one chunk of `size` bytes in one line, without building the line."""
        blocks, rest = divmod(size, BLOCK)
        self.connection.write(self._head, *[b"x" * BLOCK] * blocks, b"x" * rest, TEXT_TAIL)
        self._note("x" * min(size, KEPT), size)

    def say_many(self, texts: list[bytes]) -> None:
        """Send many chunks with one write; the texts are plain ASCII that needs no escapes."""
        self.check()
        self.connection.write(self._head, (TEXT_TAIL + self._head).join(texts), TEXT_TAIL)
        joined = b"".join(texts)
        self._note(joined[:KEPT].decode(), len(joined))

    def batch(self, size: int) -> int:
        """Return how many chunks of this size make one write."""
        return max(1, BLOCK // (len(self._head) + size + len(TEXT_TAIL)))

    def tool_id(self) -> str:
        self._tools += 1
        return f"call_{self.number}_{self._tools}"

    def ask(self, method: str, **params: object) -> dict[str, object]:
        """Call the client and wait for its answer; raises RpcError for an error."""
        call = self.post(method, **params)
        while not call.answered:
            self.check()
            self._wait()
        self.check()  # a cancel and the answer that it brings may come together
        if call.error is not None:
            raise call.error
        return call.result

    def post(self, method: str, **params: object) -> Call:
        """Call the client and do not wait."""
        return self.connection.call(method, {"sessionId": self.session.name, **params}, self._wake)

    def _wait(self, seconds: float | None = None) -> None:
        """Until something happens that the turn has to look at, or the time is up."""
        try:
            self._wake.get(timeout=seconds)
        except Empty:
            return  # the time is up

    def _note(self, text: str, size: int) -> None:
        self.said_bytes += size
        if self._kept < KEPT:
            self._said.append(text[: KEPT - self._kept])
            self._kept += len(text)
