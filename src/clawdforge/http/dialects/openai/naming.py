"""Which session a request of the OpenAI dialect names: by our header, by ids of ours, or by a chat's id."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers

from clawdforge.wire.errors import InvalidRequest, SessionNotFound
from clawdforge.wire.openai import Conversation, ResponseRequest

SESSION_HEADER: Final = "X-Clawdforge-Session"
KEY_HEADER: Final = "Idempotency-Key"
MAX_ID: Final = 1024
RESPONSE: Final = re.compile(r"resp_([^_]{1,128})_([0-9]{1,9})")
KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class Named:
    """A session by its id, perhaps at a turn; or a chat of a front end, by which its sessions are found.

    A key alone stands for a chat of one message, which need not last.
    """

    session_id: str | None = None
    turn: int | None = None
    chat: str | None = None
    key: str | None = None
    lasts: bool = False


def find_names(headers: Headers, chat_header: str, body: ResponseRequest | None = None) -> Named:
    """Raises if the request names two sessions. A chat is looked up later, since it may have none yet."""
    ids = {one.strip() for one in headers.getlist(SESSION_HEADER)}
    turn: int | None = None
    if body is not None and body.conversation is not None:
        named = body.conversation
        text = named.id if isinstance(named, Conversation) else named
        ids.add(text.removeprefix("conv_"))
    if body is not None and body.previous_response_id is not None:
        found = RESPONSE.fullmatch(body.previous_response_id)
        if found is None:
            raise SessionNotFound
        ids.add(found[1])
        turn = int(found[2])
    if len(ids) > 1:
        raise InvalidRequest("the request names two sessions; name one")
    chats = set(headers.getlist(chat_header)) - {""} if chat_header else set()
    if len(chats) > 1:
        raise InvalidRequest(f"the request has two {chat_header} headers; send one")
    key = headers.get(KEY_HEADER)
    if key is not None and not KEY.fullmatch(key):
        raise InvalidRequest(f"{KEY_HEADER} is 1 to 255 printable characters")
    lasts = bool(chats)
    chat = _digest("chat", chats.pop()) if chats else None
    if chat is None and not ids and key is not None:
        chat = _digest("key", key)  # the same request, sent again, must find the session that it made
    return Named(next(iter(ids), None), turn, chat, key, lasts)


def _digest(kind: str, text: str) -> str:
    if len(text) > MAX_ID:
        raise InvalidRequest(f"the id of a chat has more than {MAX_ID} characters")
    return f"openai-{kind}-{hashlib.sha256(text.encode()).hexdigest()[:40]}"
