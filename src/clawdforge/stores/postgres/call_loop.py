"""An event loop for one connection that is used by one call at a time: most calls need no turn of it.

A call sends something and waits for the answer. So the coroutine is run as far as it goes, then the socket
is waited for and read, then it goes on. A task, and four turns of a loop for it, would take longer than the
driver. Whatever is not that simple is left to the loop: a connection that is made, TLS, one that is lost.
"""

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, TypeVar

T = TypeVar("T")
AT_ONCE: Final = 64 * 1024  # more would be mapped into memory anew for each call


class Alarm:
    """What is to be called at a time, unless the answer comes first."""

    def __init__(self, at: float, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.at = at
        self.callback = callback
        self.args = args
        self.is_off = False

    def cancel(self) -> None:
        self.is_off = True


class CallLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._transport: Any = None
        self._fd = -1
        self._poll = select.poll()
        self._is_usable = self._is_plain = self._is_calling = self._is_given_up = False
        self._soon: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._alarm: Alarm | None = None

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """As `run_until_complete`, for what only asks the connection and waits for its answers."""
        if not self._is_usable:
            return self.run_until_complete(coroutine)
        self._is_calling = True
        try:
            while True:
                answer = coroutine.send(None)
                while not answer.done():
                    self._wait(answer)
                self._catch_up()
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            self._catch_up()
            self._is_calling = False
            self._alarm = None

    def run_whole(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What takes several answers. When it took too long, the driver has more to do."""
        try:
            return self.run_until_complete(coroutine)
        except TimeoutError:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """From here on all is left to the loop, also connections that are made to cancel something."""
        self._is_given_up = True
        self._is_usable = self._is_calling = False

    def call_soon(  # type: ignore[override]  # what it gives is asked for by nobody
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        if not self._is_calling:
            return super().call_soon(callback, *args, context=context)
        self._soon.append((callback, args))
        return None

    def call_later(  # type: ignore[override]  # an alarm can be put off, and nothing else is done with it
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        if not self._is_calling:
            return super().call_later(delay, callback, *args, context=context)
        self._alarm = Alarm(self.time() + delay, callback, args)
        return self._alarm

    async def create_connection(self, *args: Any, **keywords: Any) -> Any:
        return self._use(await super().create_connection(*args, **keywords))

    async def create_unix_connection(self, *args: Any, **keywords: Any) -> Any:
        return self._use(await super().create_unix_connection(*args, **keywords))

    async def start_tls(self, *args: Any, **keywords: Any) -> Any:
        self._is_plain = False
        return await super().start_tls(*args, **keywords)

    def _use(self, made: tuple[Any, Any]) -> tuple[Any, Any]:
        if self._is_given_up:
            return made
        if self._is_usable:  # of several addresses, the last one
            self._poll.unregister(self._fd)
        self._transport = made[0]
        self._fd = self._transport.get_extra_info("socket").fileno()
        self._poll.register(self._fd, select.POLLIN)
        self._is_plain = self._transport.get_extra_info("ssl_object") is None
        self._is_usable = True
        return made

    def _wait(self, answer: asyncio.Future[Any]) -> None:
        """For some bytes, or for the whole answer."""
        if self._soon:  # what was sent did not get there
            self._catch_up()
        elif not self._is_plain or self._transport.is_closing() or self._transport.get_write_buffer_size():
            self._wait_in_loop(answer)
        elif not self._poll.poll(self._find_patience()):
            self._ring()
        elif some := self._read():
            self._transport.get_protocol().data_received(some)
        else:
            self._wait_in_loop(answer)  # the connection is lost, as the loop will find

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, AT_ONCE)
        except OSError:
            return b""

    def _find_patience(self) -> float | None:
        """In milliseconds."""
        if self._alarm is None or self._alarm.is_off:
            return None
        return max(0.0, (self._alarm.at - self.time()) * 1000)

    def _wait_in_loop(self, answer: asyncio.Future[Any]) -> None:
        self._is_calling = False
        alarm = self._alarm
        timer = None if alarm is None else self.call_at(alarm.at, self._ring)
        self.run_until_complete(asyncio.wait([answer]))
        if timer is not None:
            timer.cancel()
        self._is_calling = self._is_usable

    def _ring(self) -> None:
        """It took too long, as the driver is told."""
        alarm, self._alarm = self._alarm, None
        if alarm is not None and not alarm.is_off:
            self._give_up()
            alarm.callback(*alarm.args)

    def _catch_up(self) -> None:
        while self._soon:
            callback, args = self._soon.popleft()
            callback(*args)
