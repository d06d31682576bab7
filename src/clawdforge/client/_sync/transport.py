"""Sends calls: retries, timeouts, and every failure turned into an error of ours."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2
import orjson

from clawdforge.client._calls import Call, Page
from clawdforge.client._folder import is_loopback
from clawdforge.client._options import KEEP_ALIVE_SECS, SILENCE_SECS, Options, common_headers
from clawdforge.client._retry import PASSING_STATUSES, Retry
from clawdforge.client._waits import sleep
from clawdforge.client.errors import (
    ForgeAPIError,
    ForgeConnectionError,
    ForgeError,
    ForgeTimeout,
    UnexpectedReply,
    error_from,
)

T = TypeVar("T")

NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class Transport:
    """One pool of connections to one server, with one set of options. Copies share the pool."""

    def __init__(self, base_url: str, token: str, options: Options, client: httpx2.Client) -> None:
        self.base_url = base_url
        self.options = options
        self.client = client
        self._headers = common_headers(token)

    def changed(self, options: Options) -> "Transport":
        copy = object.__new__(Transport)
        copy.__dict__.update(self.__dict__, options=options)
        return copy

    def call(self, call: Call[T]) -> T:
        """Send, and read the answer. Anything but a success is raised."""
        response = self.send(call)
        if not response.is_success and response.status_code not in call.fine:
            raise failure(response)
        try:
            return call.parse(response.content)
        except ValueError as error:
            raise UnexpectedReply(f"cannot read the answer to {call.method} {call.path}: {error}") from error

    def send(self, call: Call[Any]) -> httpx2.Response:
        """Send, again if need be, and hand back whatever the server says in the end."""
        retry = Retry(self.options.retries)
        attempt = 0
        while True:
            try:
                response = self.client.send(self._request(call, self.options.timeout(call)))
            except httpx2.RequestError as error:
                sent = not isinstance(error, NEVER_SENT)
                # An answer that is late would only be late again, and the caller's time is up.
                late = isinstance(error, httpx2.ReadTimeout | httpx2.WriteTimeout)
                wait = None if late else retry.after_failure(attempt, sent=sent, safe=call.safe)
                if wait is None:
                    raise self._lost(call, error) from error
            else:
                status, headers = response.status_code, response.headers
                code = _code(response) if status in PASSING_STATUSES else ""
                wait = retry.after_answer(
                    attempt, status, safe=call.safe, code=code, retry_after=headers.get("retry-after")
                )
                if wait is None or status in call.fine:
                    return response
            sleep(wait)
            attempt += 1

    @contextmanager
    def open(self, call: Call[Any]) -> Iterator[Iterator[bytes]]:
        """One attempt whose answer is read piece by piece."""
        timeout = httpx2.Timeout(SILENCE_SECS, connect=self.options.timeout(call).connect)
        try:
            response = self.client.send(self._request(call, timeout), stream=True)
            try:
                if not response.is_success:
                    response.read()
                    raise failure(response)
                yield response.iter_bytes()
            finally:
                response.close()
        except httpx2.RequestError as error:
            raise self._lost(call, error) from error

    def pages(
        self, make: Callable[[str | int | None], Call[Page[T]]], after: str | int | None = None
    ) -> Iterator[T]:
        """Every item of a list, page after page, as far as the caller reads."""
        while True:
            page = self.call(make(after))
            yield from page.items
            if page.next is None or page.next == after or not page.items:
                return
            after = page.next

    def close(self) -> None:
        self.client.close()

    def _request(self, call: Call[Any], timeout: httpx2.Timeout) -> httpx2.Request:
        return self.client.build_request(
            call.method,
            self.base_url + call.path,
            params=call.params or None,
            json=call.json,
            files=call.files,
            headers={**self._headers, **self.options.headers, **call.headers},
            timeout=timeout,
        )

    def _lost(self, call: Call[Any], error: httpx2.RequestError) -> ForgeError:
        what = f"{call.method} {self.base_url}{call.path}"
        why = str(error) or type(error).__name__
        if isinstance(error, httpx2.TimeoutException):
            return ForgeTimeout(f"{what}: no answer in time ({why})")
        hint = "; is the server running?" if isinstance(error, NEVER_SENT) else ""
        return ForgeConnectionError(f"{what}: {why}{hint}")


def make_client(base_url: str) -> httpx2.Client:
    """A pool without a limit of its own: streams hold connections for as long as they like."""
    limits = httpx2.Limits(
        max_connections=None, max_keepalive_connections=32, keepalive_expiry=KEEP_ALIVE_SECS
    )
    return httpx2.Client(
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
