"""Our own standard streams, when whoever started us no longer reads."""

import asyncio
import os
from contextlib import suppress

import pytest

from clawdforge.faces import stdio
from clawdforge.faces.stdio import OwnStdio


async def test_a_close_does_not_wait_for_an_editor_that_never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "CLOSE_SECS", 0.05)
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, os.fdopen(writing, "wb", 0)
        )
        pipe = OwnStdio(asyncio.StreamReader(), asyncio.StreamWriter(transport, protocol, None, loop))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await pipe.write([b"x" * 2**20])
        assert transport.get_write_buffer_size() > 0
        async with asyncio.timeout(10):
            await pipe.close()
        assert transport.is_closing()
        assert transport.get_write_buffer_size() == 0
    finally:
        os.close(reading)
