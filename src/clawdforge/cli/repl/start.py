"""The conversation: on a terminal with a line to type in, over a pipe line by line."""

import asyncio
import os
import sys
from typing import Any, Final

from clawdforge.cli.lazy import load
from clawdforge.cli.repl.commands import Commands
from clawdforge.cli.repl.conversation import Talk
from clawdforge.cli.repl.pipe import PlainFace
from clawdforge.cli.target.find_session import Row
from clawdforge.cli.target.options import Place, Target

TERMINAL: Final = "clawdforge.cli.repl.terminal:TerminalFace"
"""Brings the libraries of a terminal, which a pipe does without."""


def converse(target: Target, place: Place, row: Row, prompt: str) -> None:
    """Until the person leaves."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    asyncio.run(_run(target, place, row, load(TERMINAL)(target, prompt) if terminal else PlainFace(prompt)))


async def _run(target: Target, place: Place, row: Row, face: Any) -> None:
    talk = Talk(target, place, row, face)
    try:
        await face.run(talk, Commands(talk))
    finally:
        await talk.close()
