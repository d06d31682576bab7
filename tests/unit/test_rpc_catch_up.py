"""Catching up: all that was said before a prompt is handled before the prompt is sent."""

import asyncio
import os
from pathlib import Path

import pytest

from clawdforge.drivers.processes.pipes import Output
from clawdforge.jsonrpc import rpc
from clawdforge.wire.base import Json
from tests.unit.rpc_peer import Heard, block_until, talk, until


def peer(folder: Path, body: str) -> str:
    path = folder / "body.py"
    path.write_text(body)
    return str(path)


async def test_catching_up_waits_for_what_was_said_already(tmp_path: Path) -> None:
    body = "send(id=number, result={})\nfor n in range(50): update(n)\nopen(sys.argv[1] + '.done', 'w')"

    async def told(_message: Json) -> None:
        await asyncio.sleep(0.001)

    heard = Heard(on_message=told)
    path = peer(tmp_path, body)
    async with talk(path, heard) as (connection, _), asyncio.timeout(60):
        await connection.request("go", {})
        await until(Path(path + ".done").exists)
        await connection.catch_up()
        assert heard.numbers() == list(range(50))


async def test_catching_up_sees_what_the_loop_has_not_even_looked_at(tmp_path: Path) -> None:
    path = peer(tmp_path, "send(id=number, result={})\nupdate(1)\nopen(sys.argv[1] + '.done', 'w')")
    heard = Heard()
    async with talk(path, heard) as (connection, _), asyncio.timeout(60):
        asking = asyncio.create_task(connection.request("go", {}))
        await asyncio.sleep(0)  # the request is written; from here on the loop stands still
        block_until(Path(path + ".done").exists)
        assert heard.numbers() == []
        await connection.catch_up()
        assert heard.numbers() == [1]
        await asking


async def test_catching_up_does_not_wait_for_what_is_said_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "CATCH_UP_SECONDS", 600.0)
    heard = Heard()
    async with talk(peer(tmp_path, "while True: update(1)"), heard) as (connection, _), asyncio.timeout(60):
        await connection.notify("go", {})
        await until(lambda: bool(heard.told_messages))
        await connection.catch_up()


async def test_catching_up_ends_with_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "CATCH_UP_SECONDS", 600.0)
    reached = asyncio.Event()
    gate = asyncio.Event()

    async def told(_message: Json) -> None:
        reached.set()
        await gate.wait()
        raise LookupError("the store is gone")

    async with (
        talk(peer(tmp_path, "update(1)"), Heard(on_message=told)) as (connection, _),
        asyncio.timeout(60),
    ):
        await connection.notify("go", {})
        await reached.wait()
        waiting = asyncio.create_task(connection.catch_up())
        await asyncio.sleep(0)
        gate.set()
        await waiting
        assert not connection.is_open


async def test_what_nobody_has_read_yet_is_counted_in_the_pipe_and_out_of_it() -> None:
    reading, writing = os.pipe()
    pipe = os.fdopen(reading, "rb", buffering=0)
    output = Output(pipe, limit=1024)
    os.write(writing, b"12345")
    assert output.unread() == 5
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(output), pipe
    )
    async with asyncio.timeout(60):
        assert await output.read(2) == b"12"
        assert output.unread() == 3
        os.write(writing, b"678")
        assert output.unread() == 6
        os.close(writing)
        assert await output.read() == b"345678"
    await until(lambda: pipe.closed)
    assert output.unread() == 0
    transport.close()
