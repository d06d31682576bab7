"""The sockets of a server: its port, one for the operator in the data folder, and how many there may be."""

import contextlib
import logging
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

from clawdforge.settings import Settings
from clawdforge.wire.errors import InvalidRequest
from clawdforge.wire.local import OPERATOR_SOCKET

log = logging.getLogger(__name__)
BACKLOG = 1024
MAX_DESCRIPTORS = 65_536


def bind_port(settings: Settings) -> socket.socket:
    """The address is ours from now on, but nobody can connect before we listen."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With the protocol named, the event loop sets TCP_NODELAY; without, an answer waits 40 ms for an ack.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise InvalidRequest(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; "
            "name another port with --port, or 0 for a free one"
        ) from error
    return listener


def raise_descriptor_limit() -> int:
    """Let this process open as many files as the machine allows, within reason; how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        return allowed
    return soft if soft != resource.RLIM_INFINITY else MAX_DESCRIPTORS


def url_of(settings: Settings, listener: socket.socket) -> str:
    host = settings.host if settings.host not in ("0.0.0.0", "::") else "127.0.0.1"  # noqa: S104 - compared
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


@contextlib.contextmanager
def operator_socket(data_dir: Path) -> Iterator[socket.socket | None]:
    """The operator's socket, bound and not yet listening; None where the folder cannot hold one.

    The caller holds the folder's lock, so a socket that is there already was left by a server that is dead.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        bound = _bind_in(data_dir, listener)
        try:
            yield listener if bound else None
        finally:
            if bound:
                with contextlib.suppress(OSError):
                    (data_dir / OPERATOR_SOCKET).unlink()


def _bind_in(data_dir: Path, listener: socket.socket) -> bool:
    """Bind by way of the folder's descriptor: an address holds 107 bytes, and the path may be longer."""
    try:
        folder = os.open(data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(OPERATOR_SOCKET, dir_fd=folder)
            listener.bind(f"/proc/self/fd/{folder}/{OPERATOR_SOCKET}")
            os.chmod(OPERATOR_SOCKET, 0o600, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        log.warning(
            "the operator's socket %s cannot be made (%s); use the operator's token instead",
            data_dir / OPERATOR_SOCKET,
            error.strerror,
        )
        return False
    return True
