"""What the page in a browser says to log in: it cannot send a bearer token with an EventSource."""

from typing import Annotated

from pydantic import StringConstraints

from clawdforge.wire.base import Reply, Request


class LoginRequest(Request):
    """Body of `POST /login`: an app's token, shown once; a cookie takes its place."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=512)]


class LoginReply(Reply):
    ok: bool = True
    app_name: str
