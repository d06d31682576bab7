"""A JSON-RPC connection over two pipes: everything in the order it came, nothing unbounded.

The reader awaits the handler for each message before it looks at the next one, so a slow store slows the
agent down. Only what the agent *asks* is worked on beside it, since an answer may take a person's time.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from clawdforge.jsonrpc.alike import Gatherer
from clawdforge.jsonrpc.encoding import encode_lines
from clawdforge.jsonrpc.lost import read_head
from clawdforge.jsonrpc.ndjson import MAX_LINE_BYTES, SHORT_BYTES, Framer, LargeLine, Line, Oversize
from clawdforge.jsonrpc.pace import Pace
from clawdforge.wire.base import Json
from clawdforge.wire.json_bounds import write_briefly

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

FEED_BYTES: Final = 8 * 1024
"""So much is taken apart at once: it may be thousands of lines."""

CATCH_UP_SECONDS: Final = 1.0
PASS_SECS: Final = 0.002
"""So long the lines of one agent are handled before everybody else has a turn."""

MAX_ERROR_CHARS: Final = 64 * 1024
"""So much is kept of what the other side says in an error: it is searched and compared while others wait."""

MAX_OPEN_REQUESTS: Final = 64
"""What an agent may ask at the same time; more is refused at once."""
MAX_OPEN_BYTES: Final = 64 * 1024 * 1024
"""How long these requests may be all together. One alone may be as long as a line may be."""

AnswerHandler = Callable[[Json, int], Awaitable[None]]


class Pipe(Protocol):
    """Both ends of a program's standard streams."""

    async def read(self) -> bytes:
        """The next chunk of its output, as much as there is; nothing at its end."""
        ...

    async def write(self, pieces: Sequence[bytes]) -> None:
        """Write whole lines, cut anywhere. Returns when there is room for more.

        Raises OSError when nobody reads any longer.
        """
        ...

    def unread(self) -> int:
        """How many bytes of its output are there that `read` has not returned."""
        ...


class Handler(Protocol):
    """Receives what the other side sends by itself."""

    async def take_message(self, message: Json, size: int) -> None:
        """Called in order for every notification, and for every request before it is answered."""
        ...

    async def answer_request(self, method: str, params: Json) -> Json:
        """Answer a request, or raise RpcError. Several may run at once."""
        ...

    async def report_lost_line(self, size: int) -> None:
        """Called for a line that was longer than the limit and is lost."""
        ...


class RpcError(Exception):
    """An error as JSON-RPC puts it: what the other side answered, or what it is to be answered."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @classmethod
    def of(cls, error: Any) -> "RpcError":
        """From the `error` member of an answer, whatever the other side put there."""
        if not isinstance(error, dict):
            return cls(INTERNAL_ERROR, write_briefly(error, MAX_ERROR_CHARS))
        code = error.get("code")
        return cls(
            code if isinstance(code, int) else INTERNAL_ERROR,
            write_briefly(error.get("message") or "no message", MAX_ERROR_CHARS),
            error.get("data"),
        )

    def describe(self) -> str:
        """The message, and what `data` adds to it."""
        data = self.data
        if isinstance(data, dict):
            data = next((data[key] for key in ("details", "message", "reason") if data.get(key)), None)
        more = data[:MAX_ERROR_CHARS].strip() if isinstance(data, str) else ""
        return f"{self.message}: {more}" if more and more not in self.message else self.message


class Disconnected(Exception):
    """The other side is gone."""


class Connection:
    """Requests and notifications to the other side; a handler for what it says by itself."""

    def __init__(
        self,
        pipe: Pipe,
        handler: Handler,
        pace: Pace,
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        answers_garbage: bool = False,
        gatherer: Callable[[], Gatherer | None] = lambda: None,
    ) -> None:
        """With `answers_garbage` the other side is told of lines that cannot be read; agents print such.

        `gatherer` says who gathers notifications at the moment, if anybody does.
        """
        self._pipe = pipe
        self._pace = pace
        self._handler = handler
        self._gatherer = gatherer
        self._framer = Framer(max_line_bytes)
        self._answers_garbage = answers_garbage
        self._garbage_told = 0
        self._ids = itertools.count(1)
        self._waiting: dict[int, tuple[asyncio.Future[Json], AnswerHandler | None]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._open_bytes = 0  # of the requests that are being answered
        self._failure: Exception | None = None
        self._bytes_read = 0
        self._bytes_handled = 0
        self._progress = asyncio.Event()
        self._encoding = asyncio.Lock()
        self._reader = asyncio.create_task(self._read(), name="rpc reader")

    @property
    def is_open(self) -> bool:
        return self._failure is None

    @property
    def bytes_read(self) -> int:
        """How much the other side has said so far."""
        return self._bytes_read

    @property
    def is_asked(self) -> bool:
        """Whether the other side waits for an answer of ours."""
        return bool(self._answering)

    def garbage(self) -> str:
        """The last lines that were not JSON; they often tell why a program failed."""
        return self._framer.garbage_tail()

    async def request(
        self, method: str, params: Json, *, on_answer: AnswerHandler | None = None, withdraws: bool = False
    ) -> Json:
        """The result. Raises RpcError with the other side's words, or what ended the connection.

        `on_answer` gets the whole answer in its place between the other messages: after all that came
        before it, and before any that came after it. With `withdraws` the other side is told when the caller
        is cancelled, since nobody waits for its answer then.
        """
        if self._failure is not None:
            raise self._failure
        number = next(self._ids)
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (future, on_answer)
        try:
            await self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            message = await future
        except asyncio.CancelledError:
            if withdraws and self.is_open:
                with suppress(Disconnected):
                    await self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            del self._waiting[number]
            future.cancel()
        if message.get("error") is not None:
            raise RpcError.of(message["error"])
        result = message.get("result")
        return result if isinstance(result, dict) else {}

    async def notify(self, method: str, params: Json) -> None:
        await self._write({"jsonrpc": "2.0", "method": method, "params": params})

    async def notify_all(self, method: str, many: Iterable[Json]) -> None:
        """One notification after another, in one write."""
        await self._write(*({"jsonrpc": "2.0", "method": method, "params": params} for params in many))

    async def catch_up(self) -> None:
        """Returns when all that was said before this call has been handled, or when that takes too long."""
        said = self._bytes_read + self._pipe.unread()
        if self._bytes_handled >= said:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while self._bytes_handled < said and self.is_open:
                    self._progress.clear()
                    await self._progress.wait()

    async def wait_closed(self) -> None:
        """Returns when the other side is gone and all that it had said has been handled."""
        await asyncio.wait([self._reader])

    async def close(self) -> None:
        """Stop reading and answering. The pipe is its owner's to close."""
        if self._failure is None:
            self._fail(Disconnected("the connection was closed"))
        tasks = [self._reader, *self._answering]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(self, *messages: Json) -> None:
        async with self._encoding:  # what is said after a long message comes after it
            pieces = await encode_lines(messages, self._pace.enter)
        try:
            await self._pipe.write(pieces)
        except OSError as error:
            raise self._failure or Disconnected("it no longer reads its input") from error

    async def _read(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            while chunk := await self._pipe.read():
                self._bytes_read += len(chunk)
                await self._pace.enter()
                pause_at = clock() + PASS_SECS
                for start in range(0, len(chunk), FEED_BYTES):
                    frames = self._framer.frames(chunk[start : start + FEED_BYTES], self._gather_line)
                    pause_at = await self._handle(frames, pause_at)
                    if clock() > pause_at:  # what is no JSON is nothing to dispatch, and costs the most
                        pause_at = await self._let_others_run()
                self._bytes_handled = self._bytes_read
                self._progress.set()
                await asyncio.sleep(0)
            await self._handle(iter(self._framer.finish()), clock() + PASS_SECS)
            self._fail(Disconnected("it closed its output"))
        except OSError as error:
            self._fail(Disconnected(f"its output cannot be read: {error}"))
        except Exception as error:  # noqa: BLE001 - top of the task; whoever waits for an answer gets it
            self._fail(error)

    async def _handle(self, frames: Iterator[Line | Oversize | LargeLine], pause_at: float) -> float:
        """Until when to go on after these."""
        clock = asyncio.get_running_loop().time
        frame: Line | Oversize | LargeLine | None
        while (frame := next(frames, None)) is not None:
            if isinstance(frame, LargeLine):
                await self._hand_over()
                frame = await self._framer.decode(frame.data, self._pace)
            if frame is None:
                continue
            if not self._is_gathered(frame):
                await self._hand_over()
                await self._dispatch(frame)
            if clock() > pause_at:  # a flood must not keep the rest of the server from running
                await self._hand_over()
                pause_at = await self._let_others_run()
        await self._hand_over()
        await self._tell_garbage()
        return pause_at

    def _gather_line(self, line: bytes | bytearray) -> bool:
        gatherer = self._gatherer()
        return gatherer is not None and gatherer.gather_line(line)

    def _is_gathered(self, frame: Line | Oversize) -> bool:
        if isinstance(frame, Oversize) or frame.size > SHORT_BYTES or "id" in frame.message:
            return False  # what is long would take long to compare
        gatherer = self._gatherer()
        return gatherer is not None and gatherer.gather(frame.message, frame.size)

    async def _hand_over(self) -> None:
        gatherer = self._gatherer()
        if gatherer is not None:
            await gatherer.hand_over()

    async def _tell_garbage(self) -> None:
        """Once for as many lines as came together: who sends a flood of them need not get one back."""
        if self._answers_garbage and self._framer.garbage_lines > self._garbage_told:
            self._garbage_told = self._framer.garbage_lines
            await self._reply_error(None, RpcError(PARSE_ERROR, "a line was not a JSON object"))

    async def _let_others_run(self) -> float:
        """Until when to go on. Alone, it goes on in the next pass of the loop."""
        await asyncio.sleep(0)
        await self._pace.enter()
        return asyncio.get_running_loop().time() + PASS_SECS

    def _fail(self, failure: Exception) -> None:
        self._failure = failure
        self._progress.set()
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(failure)

    async def _dispatch(self, frame: Line | Oversize) -> None:
        if isinstance(frame, Oversize):
            await self._handler.report_lost_line(frame.dropped_bytes)
            await self._answer_for_lost(frame)
            return
        message = frame.message
        method = message.get("method")
        if not isinstance(method, str):
            await self._deliver_answer(message, frame.size)
        elif message.get("id") is None:
            await self._handler.take_message(message, frame.size)
        else:
            await self._handler.take_message(message, frame.size)
            await self._accept_request(message["id"], method, message.get("params"), frame.size)

    async def _deliver_answer(self, message: Json, size: int) -> None:
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is None or waiting[0].done():
            return
        future, on_answer = waiting
        if on_answer is not None:
            await on_answer(message, size)
        if not future.done():
            future.set_result(message)

    async def _accept_request(self, number: Any, method: str, params: Any, size: int) -> None:
        is_long = self._answering and self._open_bytes + size > MAX_OPEN_BYTES
        if is_long or len(self._answering) >= MAX_OPEN_REQUESTS:
            most = f"{MAX_OPEN_REQUESTS} open requests, or {MAX_OPEN_BYTES} bytes of them"
            await self._reply_error(number, RpcError(INTERNAL_ERROR, f"more than {most}; try again later"))
            return
        task = asyncio.create_task(self._answer(number, method, params), name=f"rpc {method}")
        self._answering.add(task)
        self._open_bytes += size
        task.add_done_callback(lambda done: self._finish_request(done, size))
        await asyncio.sleep(0)  # its first step comes before the next message, which keeps their order

    def _finish_request(self, done: asyncio.Task[None], size: int) -> None:
        self._answering.discard(done)
        self._open_bytes -= size

    async def _answer(self, number: Any, method: str, params: Any) -> None:
        try:
            result = await self._handler.answer_request(method, params if isinstance(params, dict) else {})
        except RpcError as error:
            await self._reply_error(number, error)
        except Exception as error:  # noqa: BLE001 - top of the task; the other side must not wait for ever
            await self._reply_error(number, RpcError(INTERNAL_ERROR, str(error) or type(error).__name__))
        else:
            with suppress(Disconnected):
                await self._write({"jsonrpc": "2.0", "id": number, "result": result})

    async def _reply_error(self, number: Any, error: RpcError) -> None:
        body: Json = {"code": error.code, "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        with suppress(Disconnected):
            await self._write({"jsonrpc": "2.0", "id": number, "error": body})

    async def _answer_for_lost(self, lost: Oversize) -> None:
        """Answer for a line that was dropped, if its start shows what it was: nobody may wait for ever."""
        found = read_head(lost.head)
        error = {"code": INVALID_REQUEST, "message": f"a line of {lost.dropped_bytes} bytes is too long"}
        if found.is_answer:
            await self._deliver_answer({"jsonrpc": "2.0", "id": found.number, "error": error}, 0)
        elif found.number is not None and found.is_request:
            await self._reply_error(found.number, RpcError.of(error))
        elif self._answers_garbage:
            await self._reply_error(None, RpcError.of(error))
