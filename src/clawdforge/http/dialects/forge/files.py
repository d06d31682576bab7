"""Forge routes about uploads: send a file, get it back, delete it."""

import asyncio
from typing import BinaryIO, Final
from urllib.parse import quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from clawdforge.core.models.rows import FileRow
from clawdforge.http.connections.waiting import wait_disconnected, wait_first
from clawdforge.http.errors import json_response
from clawdforge.http.requests.multipart import FileForm
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, AppRoute, Core
from clawdforge.wire.admin import Done, FileReply
from clawdforge.wire.base import Json

PIECE: Final = 256 * 1024
FORM: Final[Json] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}
BYTES: Final[Json] = {
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
}


class FormRoute(AppRoute):
    """A route whose body is a form, read by its handler as it arrives."""

    takes_json = False


def form_routes() -> Router:
    router = Router(FormRoute, tags=["files"])
    router.post("/files", response_model=FileReply, openapi_extra=FORM)(upload)
    return router


def routes() -> Router:
    router = Router(AppRoute, tags=["files"])
    router.get("/files/{file_token}", response_class=Response, responses={200: BYTES})(download)
    router.delete("/files/{file_token}", response_model=Done)(delete)
    return router


async def upload(request: Request, core: Core, app: App) -> Response:
    """Store a file; its token names it in the `files` of a turn or a run."""
    form = FileForm(request)
    try:
        row = await core.files.add(app, await form.name(), form.pieces())
    except ClientDisconnect:
        return Response()  # nobody is there to read it, and nothing was kept
    return json_response(FileReply(file_token=row.file_token, name=row.name, size=row.size))


async def download(core: Core, app: App, file_token: str) -> Response:
    """The file as it was sent."""
    row, file = await core.files.open(app, file_token)
    return Download(row, file)


async def delete(core: Core, app: App, file_token: str) -> Response:
    """Delete a file. Sessions that were given it keep their copy."""
    await core.files.remove(app, file_token)
    return json_response(Done())


class Download(Response):
    """Sends an open file piece by piece, and closes it whatever happens."""

    media_type = "application/octet-stream"

    def __init__(self, row: FileRow, file: BinaryIO) -> None:
        disposition = f"attachment; filename*=UTF-8''{quote(row.name, safe='')}"
        super().__init__(headers={"Content-Disposition": disposition, "Content-Length": str(row.size)})
        self._file = file

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            await wait_first(self._pump(send), wait_disconnected(receive))

    async def _pump(self, send: Send) -> None:
        while data := await asyncio.to_thread(self._file.read, PIECE):
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
