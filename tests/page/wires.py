"""A wire between browser and server that a test may cut, whole or after some bytes, or lay below a path."""

import random
import re
import socket
import threading
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from tests.api.harness import Server

PIECE: Final = 16 * 1024


class Wire:
    """Looks like a server to `Tabs`: it has an address. Every connection is a thread in each direction."""

    def __init__(self, server: Server, seed: int = 0, below: str = "") -> None:
        self._target = urlsplit(server.url)
        self._below = re.compile(rb"^([A-Z]+ )" + re.escape(below.encode()) + rb"(?=/)")
        self._random = random.Random(seed)  # noqa: S311 - the same cuts in every run
        self._bytes: tuple[int, int] | None = None
        self._is_up = True
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.cuts = 0
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}{below}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, least: int, most: int) -> None:
        """From now on a connection ends after so many bytes to the browser; with 0, 0 no more."""
        with self._lock:
            self._bytes = (least, most) if most else None
        self._end_all()

    def down(self) -> None:
        with self._lock:
            self._is_up = False
        self._end_all()

    def up(self) -> None:
        with self._lock:
            self._is_up = True

    def close(self) -> None:
        self.down()
        self._door.close()

    def _end_all(self) -> None:
        with self._lock:
            found, self._open = self._open, set()
        for one in found:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            with self._lock:
                is_up = self._is_up
                room = self._random.randint(*self._bytes) if self._bytes else None
            if not is_up:
                near.close()
                continue
            far = socket.create_connection((self._target.hostname, self._target.port))
            with self._lock:
                self._open |= {near, far}
            for come, go, count in ((near, far, None), (far, near, room)):
                threading.Thread(target=self._carry, args=(come, go, count), daemon=True).start()

    def _carry(self, come: socket.socket, go: socket.socket, room: int | None) -> None:
        with suppress(OSError):
            while piece := come.recv(PIECE if room is None else min(PIECE, room)):
                go.sendall(self._below.sub(rb"\1", piece))  # a browser sends a request's head in one piece
                if room is not None:
                    room -= len(piece)
                    if room <= 0:
                        self.cuts += 1
                        break
        for one in (come, go):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {come, go}
        come.close()
