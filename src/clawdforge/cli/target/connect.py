"""The SDK's clients for a command: made for the server that is meant, their errors turned into messages."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from clawdforge.cli.failures import Exit, Failure, refusal
from clawdforge.cli.target.operator_socket import SOCKET_URL, open_socket
from clawdforge.cli.target.options import Target
from clawdforge.client import Forge
from clawdforge.client.errors import (
    ForgeAPIError,
    ForgeConnectionError,
    ForgeError,
    ForgeTimeout,
    StreamBroken,
)
from clawdforge.wire.local import OPERATOR_SOCKET

ENV_ADMIN_TOKEN: Final = "CLAWDFORGE_ADMIN_TOKEN"  # noqa: S105 - a variable's name, not a secret
ADMIN_TOKEN_FILE: Final = "admin.token"  # noqa: S105 - a file's name, not a secret


@contextmanager
def connect(target: Target) -> Iterator[Forge]:
    """A client of the server that is meant."""
    endpoint = target.reach()
    target.detail(f"server {endpoint.url}")
    with translate_errors(), Forge(endpoint.url, endpoint.token) as forge:
        yield forge


@contextmanager
def connect_as_operator(target: Target) -> Iterator[Forge]:
    """A client that is the operator: through the socket of a server on this machine, else by the token.

    The token is also for a socket whose server cannot tell who we are.
    """
    if target.address is None:
        url = target.reach_with("").url
        with open_socket(target.folder, partial(_find_admin_token, target)) as client, translate_errors():
            if client is not None:
                target.detail(f"server {url}, as its operator, over {target.folder / OPERATOR_SOCKET}")
                yield Forge(SOCKET_URL, "", http_client=client)
                return
    endpoint = target.reach_with(_admin_token(target))
    target.detail(f"server {endpoint.url}, as its operator")
    with translate_errors(), Forge(endpoint.url, endpoint.token) as forge:
        yield forge


@contextmanager
def translate_errors() -> Iterator[None]:
    """Errors of the SDK become failures of the command."""
    try:
        yield
    except ForgeError as error:
        raise failure_of(error) from None


def failure_of(error: ForgeError) -> Failure:
    if isinstance(error, ForgeAPIError):
        return refusal(error.status_code, error.code, error.message)
    if isinstance(error, ForgeTimeout):
        return Failure(f"{error}; the server may still be working on it", Exit.TIMEOUT)
    if isinstance(error, ForgeConnectionError | StreamBroken):
        hint = "" if "is the server running?" in str(error) else "; is the server running?"
        return Failure(f"{error}{hint} Start it with `clawdforge serve`", Exit.UNREACHABLE)
    return Failure(str(error))


def _find_admin_token(target: Target) -> str | None:
    try:
        return _admin_token(target)
    except Failure:  # then the server's own words count
        return None


def _admin_token(target: Target) -> str:
    named = os.environ.get(ENV_ADMIN_TOKEN)
    if named and (target.data_dir is None or target.server):
        return named
    if target.address:
        raise Failure(f"set the token of that server's operator in {ENV_ADMIN_TOKEN}", Exit.AUTH)
    path = target.folder / ADMIN_TOKEN_FILE
    try:
        return path.read_text().strip()
    except OSError as error:
        raise Failure(
            f"cannot read the operator's token {path} ({error.strerror}); name the server's folder with "
            f"--data-dir or give the token in {ENV_ADMIN_TOKEN}",
            Exit.AUTH,
        ) from None
