"""Share links: how they are made and listed, and what whoever has one is shown."""

from pydantic import Field

from clawdforge.wire.base import Reply, Request
from clawdforge.wire.message import Message

WEEK_SECS = 7 * 86_400
YEAR_SECS = 365 * 86_400


class CreateShare(Request):
    """Body of `POST /sessions/{id}/shares`. Without `up_to_turn` it shows all that is there now."""

    expires_in_secs: int = Field(default=WEEK_SECS, ge=1, le=YEAR_SECS)
    up_to_turn: int | None = Field(default=None, ge=1, le=2**53)


class Share(Reply):
    """A share link without its token. Times are whole seconds."""

    share_id: str
    created_at: int
    expires_at: int
    up_to_turn: int


class ShareReply(Share):
    """The only time the token itself is shown; `path` is that of the page, below the server's address."""

    ok: bool = True
    token: str
    path: str


class SharePage(Reply):
    ok: bool = True
    session_id: str
    shares: list[Share]
    count: int


class SharedSession(Reply):
    """What whoever has the link is told of the session."""

    ok: bool = True
    title: str
    agent: str
    created_at: int
    expires_at: int
    up_to_turn: int


class SharedMessages(Reply):
    """A page of a shared transcript, as of `GET /sessions/{id}/messages`."""

    ok: bool = True
    messages: list[Message]
    count: int
    next: int | None = None
    previous: int | None = None
