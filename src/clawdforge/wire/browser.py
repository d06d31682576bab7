"""How a page in a browser logs in and out: it cannot send a bearer token with an EventSource."""

from typing import Annotated, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator

from clawdforge.wire.base import Reply, Request

Secret: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=512)]


class LoginRequest(Request):
    """Body of `POST /login`: a token, or a code of `POST /login/codes`; a cookie takes its place."""

    token: Secret | None = None
    code: Secret | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.token is None) == (self.code is None):
            raise ValueError("send a token or a code, one of both")
        return self


class LoginReply(Reply):
    """Who is logged in: an app, the operator, both, or nobody."""

    ok: bool = True
    app_name: str | None = None
    scopes: list[str] = Field(default_factory=list)
    operator: bool = False
    version: str = ""


class LogoutRequest(Request):
    """Body of `POST /logout`: `everywhere` ends every login that was made with the same token."""

    everywhere: bool = False


class LoginCode(Reply):
    """A code that logs a browser in once, until `expires_at` and never after a restart of the server."""

    ok: bool = True
    code: str
    expires_at: int
