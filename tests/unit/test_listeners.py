"""The listening socket lets nobody in who has hung up while waiting."""

import socket
import struct
from contextlib import closing

import pytest

from clawdforge.listeners import MOST_GONE, Listener

RESET = struct.pack("ii", 1, 0)


def listen() -> Listener:
    listener = Listener(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(100)
    listener.setblocking(False)
    return listener


def test_whoever_only_ended_what_it_sends_is_let_in() -> None:
    """It may still wait for the answer."""
    with closing(listen()) as listener, knock(listener, stay=True) as client:
        client.shutdown(socket.SHUT_WR)
        listener.accept()[0].close()


def knock(listener: Listener, *, stay: bool = False) -> socket.socket:
    client = socket.create_connection(listener.getsockname())
    client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    if not stay:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()
    return client


def test_whoever_is_gone_is_skipped() -> None:
    with closing(listen()) as listener:
        for _ in range(MOST_GONE - 1):
            knock(listener)
        with knock(listener, stay=True) as client:
            connection, address = listener.accept()
            with connection:
                assert address == client.getsockname()
                assert connection.recv(3) == b"GET"


def test_many_who_are_gone_are_skipped_a_few_at_a_time() -> None:
    """The event loop has others to serve in between."""
    with closing(listen()) as listener:
        for _ in range(2 * MOST_GONE):
            knock(listener)
        with knock(listener, stay=True):
            for _ in range(2):
                with pytest.raises(BlockingIOError):
                    listener.accept()
            listener.accept()[0].close()


def test_nobody_there_is_nobody_there() -> None:
    with closing(listen()) as listener, pytest.raises(BlockingIOError):
        listener.accept()
