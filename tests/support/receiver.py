"""A receiver of webhooks on a loopback port, which answers as a test tells it to and keeps what it got."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


def answer(status: int, *headers: str) -> bytes:
    lines = "".join(f"{line}\r\n" for line in headers)
    return f"HTTP/1.1 {status} Whatever\r\ncontent-length: 2\r\n{lines}\r\nhi".encode()


@dataclass(frozen=True)
class Got:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """`answers` are given one after the other, then `OK`. None keeps silent until the end of the test."""

    listener: socket.socket
    got: list[Got] = field(default_factory=list)
    answers: list[bytes | None] = field(default_factory=list)
    before_answer: Callable[[], None] | None = None
    over: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/hook") -> str:
        return f"http://{self.host}{path}"

    def of(self, path: str) -> list[Got]:
        return [one for one in self.got if one.path == path]

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.threads.append(threading.Thread(target=self._answer, args=(connection,)))
            self.threads[-1].start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as file:
            line = file.readline().decode("latin-1")
            if "HTTP/1.1" not in line:
                return
            headers = {}
            while (one := file.readline()) not in (b"\r\n", b""):
                name, value = _split(one)
                headers[name] = value
            body = file.read(int(headers.get("content-length", "0")))
            given = self.answers.pop(0) if self.answers else OK
            self.got.append(Got(line.split()[1], headers, body))
            if self.before_answer is not None:
                self.before_answer()
            if given is None:
                self.over.wait(60)
            else:
                try:
                    connection.sendall(given)
                except OSError:
                    return


def _split(line: bytes) -> tuple[str, str]:
    name, _, value = line.decode("latin-1").partition(":")
    return name.strip().lower(), value.strip()


@contextmanager
def receiving() -> Iterator[Receiver]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = Receiver(listener)
        serving = threading.Thread(target=receiver.serve)
        serving.start()
        try:
            yield receiver
        finally:
            receiver.over.set()
            listener.shutdown(socket.SHUT_RDWR)
            for thread in (serving, *receiver.threads):
                thread.join()
