"""Sends calls: retries, timeouts, and every failure turned into an error of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Lock as ThreadLock
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from clawdforge.client import _lazy as lazy
from clawdforge.client._async_waits import Lock, run, sleep
from clawdforge.client._calls import Call, Page
from clawdforge.client._folder import is_loopback
from clawdforge.client._options import KEEP_ALIVE_SECS, SILENCE_SECS, Options, common_headers
from clawdforge.client._retry import PASSING_STATUSES, Retry
from clawdforge.client.errors import (
    ForgeAPIError,
    ForgeConnectionError,
    ForgeError,
    ForgeTimeout,
    UnexpectedReply,
    error_from,
)

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")


class AsyncPool:
    """The connections to one server. They are made with the first call, and shared by copies of a client."""

    def __init__(self, client: httpx2.AsyncClient | None) -> None:
        self._client = client
        self._is_closed = False
        self._lock = ThreadLock()

    def open(self, base_url: str) -> httpx2.AsyncClient:
        with self._lock:  # many may make their first call at once
            if self._is_closed:
                raise RuntimeError("this client has been closed")
            if self._client is None:
                self._client = make_client(base_url)
            return self._client

    async def close(self) -> None:
        with self._lock:
            self._is_closed = True
        if self._client is not None:
            await self._client.aclose()


class AsyncTransport:
    """Calls to one server with one set of options, over one pool."""

    def __init__(
        self, options: Options, pool: AsyncPool, find: Callable[[], tuple[str, str]] | None = None
    ) -> None:
        """`find` says where the server is and with which token; again, once nobody answers there."""
        self.base_url = ""
        self.options = options
        self.pool = pool
        self._find = find
        self._headers: dict[str, str] = {}
        self._lock = Lock()

    def use(self, base_url: str, token: str) -> None:
        """Send to this server from now on."""
        self.base_url = base_url
        self._headers = common_headers(token)

    async def find_server(self) -> None:
        """Find the server, or start it, unless it is known."""
        if not self.base_url and self._find is not None:
            async with self._lock:  # many may make their first call at once
                if not self.base_url:
                    self.use(*await run(self._find))

    def with_changes(self, options: Options) -> AsyncTransport:
        copy = object.__new__(AsyncTransport)
        copy.__dict__.update(self.__dict__, options=options)
        return copy

    async def call(self, call: Call[T]) -> T:
        """Send, and read the answer. Anything but a success is raised."""
        response = await self.send(call)
        if not response.is_success and response.status_code not in call.fine:
            raise failure(response)
        try:
            return call.parse(response.content)
        except ValueError as error:
            raise UnexpectedReply(f"cannot read the answer to {call.method} {call.path}: {error}") from error

    async def send(self, call: Call[Any]) -> httpx2.Response:
        """Send, with retries if need be, and return the server's last answer."""
        await self.find_server()
        client = self.pool.open(self.base_url)
        retry = Retry(self.options.retries)
        attempt = 0
        while True:
            try:
                response = await client.send(self._request(client, call, self.options.timeout(call)))
            except lazy.httpx2.RequestError as error:
                sent = not _was_never_sent(error)
                # An answer that is late would only be late again, and the caller's time is up.
                late = isinstance(error, lazy.httpx2.ReadTimeout | lazy.httpx2.WriteTimeout)
                wait = None if late else retry.after_failure(attempt, sent=sent, safe=call.safe)
                if wait is None:
                    raise self._connection_error(call, error) from error
                await self._look_again(error)
            else:
                status, headers = response.status_code, response.headers
                code = _code(response) if status in PASSING_STATUSES else ""
                wait = retry.after_answer(
                    attempt, status, safe=call.safe, code=code, retry_after=headers.get("retry-after")
                )
                if wait is None or status in call.fine:
                    return response
            await sleep(wait)
            attempt += 1

    @asynccontextmanager
    async def open(self, call: Call[Any]) -> AsyncIterator[AsyncIterator[bytes]]:
        """One attempt whose answer is read piece by piece."""
        await self.find_server()
        client = self.pool.open(self.base_url)
        timeout = lazy.httpx2.Timeout(SILENCE_SECS, connect=self.options.timeout(call).connect)
        try:
            response = await client.send(self._request(client, call, timeout), stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise failure(response)
                yield response.aiter_bytes()
            finally:
                await response.aclose()
        except lazy.httpx2.RequestError as error:
            await self._look_again(error)
            raise self._connection_error(call, error) from error

    async def pages(
        self, make: Callable[[str | int | None], Call[Page[T]]], after: str | int | None = None
    ) -> AsyncIterator[T]:
        """Every item of a list, page after page, as far as the caller reads."""
        while True:
            page = await self.call(make(after))
            for item in page.items:
                yield item
            if page.next is None or page.next == after or not page.items:
                return
            after = page.next

    async def close(self) -> None:
        await self.pool.close()

    async def _look_again(self, error: httpx2.RequestError) -> None:
        """A local server that was idle has stopped, and the next one listens elsewhere."""
        if self._find is not None and isinstance(error, lazy.httpx2.ConnectError):
            self.use(*await run(self._find))

    def _request(
        self, client: httpx2.AsyncClient, call: Call[Any], timeout: httpx2.Timeout
    ) -> httpx2.Request:
        return client.build_request(
            call.method,
            self.base_url + call.path,
            params=call.params or None,
            json=call.json,
            files=call.files,
            headers={**self._headers, **self.options.headers, **call.headers},
            timeout=timeout,
        )

    def _connection_error(self, call: Call[Any], error: httpx2.RequestError) -> ForgeError:
        what = f"{call.method} {self.base_url}{call.path}"
        why = str(error) or type(error).__name__
        if isinstance(error, lazy.httpx2.TimeoutException):
            return ForgeTimeout(f"{what}: no answer in time ({why})")
        hint = "; is the server running?" if _was_never_sent(error) else ""
        found = ForgeConnectionError(f"{what}: {why}{hint}")
        found.sent = not _was_never_sent(error)
        return found


def _was_never_sent(error: httpx2.RequestError) -> bool:
    never = (lazy.httpx2.ConnectError, lazy.httpx2.ConnectTimeout, lazy.httpx2.PoolTimeout)
    return isinstance(error, never)


def make_client(base_url: str) -> httpx2.AsyncClient:
    """A pool without a limit of its own: streams hold connections for as long as they like."""
    limits = lazy.httpx2.Limits(
        max_connections=None, max_keepalive_connections=32, keepalive_expiry=KEEP_ALIVE_SECS
    )
    return lazy.httpx2.AsyncClient(
        limits=limits,
        # A proxy is of no use on the way to this machine, and would see the token.
        trust_env=not is_loopback(base_url),
        # Certificates take 50 ms or more to load; without TLS, and without redirects, nobody asks for them.
        verify=not base_url.lower().startswith("http:"),
    )


def failure(response: httpx2.Response) -> ForgeAPIError:
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        body = response.text
    fallback = f"the server answered {response.status_code} {response.reason_phrase}".strip()
    return error_from(response.status_code, body, response.headers.get("x-request-id"), fallback)


def _code(response: httpx2.Response) -> str:
    return failure(response).code
