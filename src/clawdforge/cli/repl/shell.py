"""`!command`: a shell command of the person at the terminal, and what it printed."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 64 * 1024
"""The end of what it prints is shown; a terminal is no place for more."""


async def run_shell(command: str, folder: Path) -> tuple[int, str]:
    """Its exit code and the end of what it printed. It has no input; Ctrl-C ends it with all it started."""
    process = await _start(command, folder)
    kept = bytearray()
    left_out = 0
    is_over = False
    try:
        while process.stdout is not None and (piece := await process.stdout.read(MOST_BYTES)):
            kept += piece
            excess = max(0, len(kept) - MOST_BYTES)
            del kept[:excess]
            left_out += excess
        code = await process.wait()
        is_over = True
    finally:
        # Not only while the shell lives: a job that it left behind holds the pipe, and so the group's number.
        if not is_over:
            _kill(process)
            await process.wait()
    head = f"… {left_out} bytes before this\n" if left_out else ""
    return code, head + kept.decode("utf-8", "replace")


async def _start(command: str, folder: Path) -> asyncio.subprocess.Process:
    """Never cut off half-way: asyncio would end the shell alone, and leave what it has started meanwhile."""
    starting = asyncio.create_task(
        asyncio.create_subprocess_shell(
            command,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_kill_started)
        await asyncio.wait([starting])
        with contextlib.suppress(OSError):
            await starting.result().wait()
        raise


def _kill_started(starting: asyncio.Task[asyncio.subprocess.Process]) -> None:
    with contextlib.suppress(OSError):
        _kill(starting.result())


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
