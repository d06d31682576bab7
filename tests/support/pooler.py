"""What may stand between a server and Postgres, and loses some of what it should pass on."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.postgres import Postgres

SOCKET: Final = ".s.PGSQL.5432"
NOTIFICATION: Final = b"A"
PARAMETER: Final = b"S"
TLS_PLEASE: Final = struct.pack("!ii", 8, 80877103)
OF_THE_ADDRESS: Final = frozenset({"user", "database", "client_encoding"})


class Pooler:
    """Passes everything on, over a socket in a folder of its own, but for what it `loses`."""

    def __init__(
        self,
        postgres: Postgres,
        folder: Path,
        *,
        loses_notifications: bool = False,
        loses_settings: bool = False,
        version: str | None = None,
        certificate: Path | None = None,
    ) -> None:
        """With a `version` it tells servers that Postgres is of that one.

        With a `certificate`, a file that has its key too, it speaks TLS, on a port of this machine.
        """
        self.folder = folder
        self.loses_notifications = loses_notifications
        self._loses_settings = loses_settings
        self._version = version
        self._postgres = postgres
        self._ends: list[socket.socket] = []
        self._tls = None if certificate is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self._tls is None:
            self._door = socket.socket(socket.AF_UNIX)
            self._door.bind(str(folder / SOCKET))
        else:
            self._tls.load_cert_chain(str(certificate))
            self._door = socket.socket()
            self._door.bind(("127.0.0.1", 0))
        self._door.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def fit(self, url: str) -> str:
        """The address of a database, by way of here."""
        if self._tls is None:
            return url.replace(str(self._postgres.folder), str(self.folder))
        port = self._door.getsockname()[1]
        return url.partition("?")[0].replace("@/", f"@localhost:{port}/")

    def close(self) -> None:
        for end in (self._door, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                near, _ = self._door.accept()
                with contextlib.suppress(ssl.SSLError):  # it does not like our certificate
                    self._connect(near if self._tls is None else self._begin_tls(near, self._tls))

    def _begin_tls(self, near: socket.socket, context: ssl.SSLContext) -> socket.socket:
        asked = near.recv(8, socket.MSG_WAITALL)
        assert asked == TLS_PLEASE
        near.sendall(b"S")
        return context.wrap_socket(near, server_side=True)

    def _connect(self, near: socket.socket) -> None:
        far = socket.socket(socket.AF_UNIX)
        far.connect(str(self._postgres.folder / SOCKET))
        self._ends += [near, far]
        for work in (self._pass_up, self._pass_down):
            threading.Thread(target=work, args=(near, far), daemon=True).start()

    def _pass_up(self, near: socket.socket, far: socket.socket) -> None:
        with _ending(near, far):
            begin = near.makefile("rb")
            (length,) = struct.unpack("!i", begin.read(4))
            far.sendall(self._fit_beginning(begin.read(length - 4)))
            while some := begin.read1(65536):
                far.sendall(some)

    def _fit_beginning(self, body: bytes) -> bytes:
        words = body[4:].rstrip(b"\0").split(b"\0")
        pairs = [(name, value) for name, value in zip(words[::2], words[1::2], strict=True)]
        if self._loses_settings:
            pairs = [(name, value) for name, value in pairs if name.decode() in OF_THE_ADDRESS]
        fitted = body[:4] + b"".join(name + b"\0" + value + b"\0" for name, value in pairs) + b"\0"
        return struct.pack("!i", len(fitted) + 4) + fitted

    def _pass_down(self, near: socket.socket, far: socket.socket) -> None:
        with _ending(near, far):
            coming = far.makefile("rb")
            while head := coming.read(5):
                kind, (length,) = head[:1], struct.unpack("!i", head[1:])
                body = coming.read(length - 4)
                if kind == NOTIFICATION and self.loses_notifications:
                    continue
                if kind == PARAMETER and self._version and body.startswith(b"server_version\0"):
                    body = f"server_version\0{self._version}\0".encode()
                near.sendall(kind + struct.pack("!i", len(body) + 4) + body)


@contextlib.contextmanager
def _ending(*ends: socket.socket) -> Iterator[None]:
    try:
        with contextlib.suppress(OSError, struct.error):
            yield
    finally:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
