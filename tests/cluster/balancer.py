"""What stands before several nodes: it hands each connection to one of them that says that it is ready."""

import contextlib
import socket
import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Self
from urllib.parse import urlsplit

import httpx2

PIECE = 1 << 16
EVERY_SECS = 0.2


class Balancer:
    """Nodes take turns, but for those that were not ready a moment ago. No request is sent again."""

    def __init__(self, find_urls: Callable[[], Sequence[str]]) -> None:
        self._find_urls = find_urls
        self._turns = count()
        self._ready: list[str] = []
        self._is_closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._look()
        for work in (self._accept, self._keep_looking):
            threading.Thread(target=work, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _keep_looking(self) -> None:
        while not self._is_closed.wait(EVERY_SECS):
            self._look()

    def _look(self) -> None:
        ready = []
        for url in self._find_urls():
            with contextlib.suppress(httpx2.TransportError):
                if httpx2.get(f"{url}/readyz", timeout=1).status_code == 200:
                    ready.append(url)
        self._ready = ready

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        node = self._connect()
        if node is None:
            client.close()
            return
        back = threading.Thread(target=_pass_on, args=(node, client), daemon=True)
        back.start()
        _pass_on(client, node)
        back.join()
        client.close()
        node.close()

    def _connect(self) -> socket.socket | None:
        urls = self._ready
        first = next(self._turns)
        for number in range(len(urls)):
            address = urlsplit(urls[(first + number) % len(urls)])
            with contextlib.suppress(OSError):
                return socket.create_connection((address.hostname or "", address.port or 0), timeout=None)
        return None


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(PIECE):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
