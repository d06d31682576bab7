"""hermes routes about files that a person attaches: they are sent first, and then named in a prompt.

The page knows a file by its name alone, so it is stored with one that no other file has.
"""

import mimetypes
import re
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from clawdforge.core.services.all import Services
from clawdforge.http.dialects.hermes.route import HermesRoute
from clawdforge.http.errors import json_response
from clawdforge.http.requests.multipart import FileForm
from clawdforge.http.routers import Router
from clawdforge.http.routing import App, Core
from clawdforge.wire.base import Json
from clawdforge.wire.errors import MissingParameter
from clawdforge.wire.hermes import AttachedFile, UploadReply

TOKEN: Final = re.compile(r"ff_[\w-]{43}", re.ASCII)
FORM: Final[Json] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["session_id", "file"],
                    "properties": {
                        "session_id": {"type": "string"},
                        "file": {"type": "string", "format": "binary"},
                    },
                }
            }
        },
    }
}


class HermesForm(HermesRoute):
    """A route whose body is a form, read by its handler as it arrives."""

    takes_json = False


def routes(prefix: str) -> Router:
    found = Router(HermesForm, prefix=prefix, tags=["hermes dialect"])
    found.post("/api/upload", response_model=UploadReply, openapi_extra=FORM)(upload)
    return found


async def upload(request: Request, core: Core, app: App) -> Response:
    """Store a file for a session; its `filename` names it in the `attachments` of a prompt."""
    form = FileForm(request)
    try:
        name = await form.name()
        session_id = form.field("session_id")
        if not session_id:
            raise MissingParameter("the form needs a field session_id before the file")
        await core.sessions.get(app, session_id)
        row = await core.files.add(app, name, form.pieces(), marked=True)
    except ClientDisconnect:
        return Response()  # nobody is there to read it, and nothing was kept
    mime = mimetypes.guess_type(row.name)[0] or "application/octet-stream"
    return json_response(
        UploadReply(
            filename=row.name, path=row.name, size=row.size, mime=mime, is_image=mime.startswith("image/")
        )
    )


async def find_files(core: Services, app: str, attached: list[str | AttachedFile]) -> list[str]:
    """The tokens of what a prompt names: by token, by name, or by an object that has a name."""
    names = [one if isinstance(one, str) else one.name for one in attached]
    return [name if TOKEN.fullmatch(name) else await core.files.find_marked(app, name) for name in names]
