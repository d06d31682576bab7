"""The agent's end of the pipe: JSON lines out, and the calls that wait for the client's answer."""

# ruff: noqa: SLF001 - of `posix`, which is `os` without 2 ms of imports, `_exit` is no secret

from __future__ import annotations

import posix as os
from _queue import SimpleQueue
from _thread import allocate_lock

from clawdforge.scripted.plain_json import encode

STDOUT = 1


class RpcError(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Call:
    """A request to the client, and its answer once it came."""

    def __init__(self, wake: SimpleQueue[None]) -> None:
        self.wake = wake
        self.answered = False
        self.result: dict[str, object] = {}
        self.error: RpcError | None = None

    def resolve(self, message: dict[str, object]) -> None:
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            self.error = RpcError(int(error.get("code", 0)), str(error.get("message", "")))
        elif isinstance(result, dict):
            self.result = result
        self.answered = True
        self.wake.put(None)


class Connection:
    """Writes whole lines from any thread."""

    def __init__(self) -> None:
        self.deaf = False  # true: neither a signal nor the end of stdin ends the program
        self._lock = allocate_lock()
        self._closed = False
        self._calls: dict[int, Call] = {}
        self._last_id = 0

    def write(self, *parts: bytes) -> None:
        """Write the parts as one; a client that is gone ends the program."""
        with self._lock:
            if self._closed:
                return
            try:
                for part in parts:
                    view = memoryview(part)
                    while view:
                        view = view[os.write(STDOUT, view) :]
            except OSError:
                if self.deaf:
                    self._closed = True
                    return
                os._exit(0)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            os.close(STDOUT)

    def send(self, message: dict[str, object]) -> None:
        self.write(encode({"jsonrpc": "2.0", **message}) + b"\n")

    def update(self, session: str, update: object) -> None:
        self.send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def answer(self, request: object, result: dict[str, object]) -> None:
        self.send({"id": request, "result": result})

    def refuse(self, request: object, error: RpcError) -> None:
        self.send({"id": request, "error": {"code": error.code, "message": error.message}})

    def call(self, method: str, params: dict[str, object], wake: SimpleQueue[None]) -> Call:
        """Send a request; something is put into `wake` when its answer is there."""
        call = Call(wake)
        with self._lock:
            self._last_id += 1
            number = self._last_id
            self._calls[number] = call
        self.send({"id": number, "method": method, "params": params})
        return call

    def resolve(self, message: dict[str, object]) -> None:
        number = message.get("id")
        call = self._calls.pop(number, None) if isinstance(number, int) else None
        if call is not None:
            call.resolve(message)
