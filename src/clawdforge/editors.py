"""Serves editors that connect to the server itself: the face of the command line, without a network."""

import asyncio
from functools import partial

from clawdforge.client import AsyncForge
from clawdforge.client._in_process import connect_in_process
from clawdforge.faces.acp.face import AcpFace, Manner
from clawdforge.faces.link import LOOK_SECS, Link
from clawdforge.http.editors import EditorCall, ServeEditor


def editors_of(url: str, introduce_secs: float) -> ServeEditor:
    """Whoever serves the editors of the server at this address. So long each has until its `initialize`."""
    return partial(_serve, url, introduce_secs)


async def _serve(url: str, introduce_secs: float, call: EditorCall) -> None:
    """Until the editor is gone. What it asks is asked of the server with its own token: no right is ours."""

    def connect(url: str, token: str) -> AsyncForge:
        return connect_in_process(call.asgi, url, token, LOOK_SECS)

    link = Link(lambda: (url, call.token), connect=connect)
    manner = Manner(lambda _folder: dict(call.wishes), call.own_folders)
    face = AcpFace(call.line, link, manner, call.pace)
    serving = asyncio.create_task(face.run(), name="editor")
    try:
        await asyncio.wait([serving], timeout=introduce_secs)
        if face.is_ready or serving.done():
            await serving
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        await link.close()
