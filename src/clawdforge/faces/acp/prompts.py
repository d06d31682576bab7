"""What an editor sends as a prompt, as one text and files: texts, links, pictures, contents of files."""

import base64
import binascii
import mimetypes
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from clawdforge.jsonrpc.rpc import INVALID_PARAMS, RpcError
from clawdforge.wire.base import Json

MAX_NAME_CHARS: Final = 200
MAX_FILES: Final = 256


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that is to be uploaded with the prompt."""

    name: str
    data: bytes


@dataclass(slots=True)
class Prompt:
    """Text as the agent is to read it, and what goes along with it."""

    text: str = ""
    files: list[Attachment] = field(default_factory=list)

    def forget(self) -> None:
        """It has been sent, and may be large."""
        self.text = ""
        self.files.clear()


def read_prompt(blocks: Any) -> Prompt:
    """Raises RpcError for a prompt that says nothing, and for a block that cannot be passed on."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise RpcError(INVALID_PARAMS, "prompt must be a list of content blocks")
    found = Prompt()
    context = ""
    after_text = False
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            # Two texts side by side are two paragraphs; around a link they are one sentence.
            found.text += ("\n\n" if after_text and found.text else "") + _text(block, "text")
        elif kind == "resource_link":
            found.text += _link(block)
        elif kind == "resource":
            context += _resource(block, found)
        elif kind == "image":
            found.files.append(Attachment(_file_name(block, len(found.files)), _data(block, "data")))
        else:
            raise RpcError(
                INVALID_PARAMS, f"content of type {str(kind)[:MAX_NAME_CHARS]} cannot be passed to the agent"
            )
        after_text = kind == "text"
    found.text += context
    if not found.text.strip() and found.files:
        found.text = "See the attached files."
    if not found.text:
        raise RpcError(INVALID_PARAMS, "the prompt is empty")
    if len(found.files) > MAX_FILES:
        raise RpcError(INVALID_PARAMS, f"more than {MAX_FILES} files in one prompt")
    return found


def _link(block: Json) -> str:
    uri = _text(block, "uri")
    name = block.get("name")
    return f"[@{name}]({uri})" if isinstance(name, str) and name else f"@{uri}"


def _resource(block: Json, found: Prompt) -> str:
    """The content of a file stands below the prompt, which names it; what is no text is a file."""
    resource = block.get("resource")
    if not isinstance(resource, dict):
        raise RpcError(INVALID_PARAMS, "a block of type resource needs a resource")
    uri = _text(resource, "uri")
    found.text += f"[@{_base_name(uri) or uri}]({uri})"
    if isinstance(resource.get("text"), str):
        return f'\n<context ref="{uri}">\n{resource["text"]}\n</context>'
    found.files.append(Attachment(_file_name(resource, len(found.files)), _data(resource, "blob")))
    return ""


def _text(block: Json, key: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{key} must be a string")
    return value


def _data(block: Json, key: str) -> bytes:
    try:
        return base64.b64decode(_text(block, key), validate=True)
    except (binascii.Error, ValueError):
        raise RpcError(INVALID_PARAMS, f"{key} is not base64") from None


def _file_name(block: Json, number: int) -> str:
    uri, mime = block.get("uri"), block.get("mimeType")
    name = _base_name(uri) if isinstance(uri, str) else ""
    return name or f"file{number + 1}{mimetypes.guess_extension(str(mime)) or ''}"


def _base_name(uri: str) -> str:
    try:
        return PurePosixPath(unquote(urlsplit(uri).path)).name[:MAX_NAME_CHARS]
    except ValueError:
        return ""
