"""The conversation: on a terminal with a line to type in, over a pipe line by line."""

import asyncio
import os
import sys
from typing import Any, Final

from clawdforge.by_name import load
from clawdforge.cli.repl.commands import Commands
from clawdforge.cli.repl.conversation import Conversation
from clawdforge.cli.repl.pipe import PlainFace
from clawdforge.cli.target.find_session import Row
from clawdforge.cli.target.options import Endpoint, Target

TERMINAL: Final = "clawdforge.cli.repl.terminal:TerminalFace"
"""Brings the libraries of a terminal, which a pipe does without."""


def converse(target: Target, endpoint: Endpoint, row: Row, prompt: str) -> None:
    """Until the person leaves."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    asyncio.run(
        _run(target, endpoint, row, load(TERMINAL)(target, prompt) if terminal else PlainFace(prompt))
    )


async def _run(target: Target, endpoint: Endpoint, row: Row, face: Any) -> None:
    conversation = Conversation(target, endpoint, row, face)
    try:
        await face.run(conversation, Commands(conversation))
    finally:
        await conversation.close()
