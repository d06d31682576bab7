"""The operator's socket of a server on this machine: whom the server knows there needs no token."""

import contextlib
import os
import socket
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clawdforge.client import _lazy as lazy
from clawdforge.wire.local import OPERATOR_SOCKET

if TYPE_CHECKING:
    import httpx2

SOCKET_URL: Final = "http://localhost"
"""The address of requests over the socket; only their Host header shows it."""

CONNECT_SECS: Final = 5.0
UNAUTHENTICATED: Final = 401


@contextlib.contextmanager
def open_socket(folder: Path, find_token: Callable[[], str | None]) -> Iterator["httpx2.Client | None"]:
    """An HTTP client over the socket in a data folder; None where nobody listens there or we may not.

    Where the server cannot tell who we are, requests are sent again with the token, if one is found.
    """
    with contextlib.ExitStack() as ends:
        try:
            handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            ends.callback(os.close, handle)
            # By way of the descriptor, since a socket's address holds no more than 107 bytes.
            path = f"/proc/self/fd/{handle}/{OPERATOR_SOCKET}"
            with socket.socket(socket.AF_UNIX) as trial:
                trial.settimeout(CONNECT_SECS)
                trial.connect(path)
        except OSError:
            yield None
            return
        transport = lazy.httpx2.HTTPTransport(uds=path, verify=False)  # plain HTTP: no certificates to read
        auth = _make_auth(find_token)
        yield ends.enter_context(lazy.httpx2.Client(transport=transport, auth=auth, trust_env=False))


def _make_auth(find_token: Callable[[], str | None]) -> "httpx2.Auth":
    class TokenWhereRefused(lazy.httpx2.Auth):  # in here, since its library takes long to import
        def auth_flow(
            self, request: "httpx2.Request"
        ) -> Generator["httpx2.Request", "httpx2.Response", None]:
            response = yield request
            token = find_token() if response.status_code == UNAUTHENTICATED else None
            if token is not None:
                request.headers["Authorization"] = f"Bearer {token}"
                yield request

    return TokenWhereRefused()
