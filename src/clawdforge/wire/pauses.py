"""A pause: the operator's word that no turn may begin, for everybody, an app or an agent."""

from typing import Annotated

from pydantic import Field, StringConstraints

from clawdforge.wire.base import Reply, StrictRequest

Paused = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class ResumeRequest(StrictRequest):
    """Whose pause ends: without a name the server's own, which leaves those of apps and agents."""

    app_name: Paused | None = None
    agent: Paused | None = None


class PauseRequest(ResumeRequest):
    """Who is paused: without a name everybody. `stop` also cancels what runs there."""

    reason: str | None = Field(default=None, min_length=1, max_length=500)
    stop: bool = False


class Pause(Reply):
    """A pause in force. Null names mean everybody; `since` is in whole seconds."""

    app_name: str | None = None
    agent: str | None = None
    reason: str | None = None
    since: int


class PauseReply(Reply):
    """`stopped` counts the turns and runs that were cancelled."""

    ok: bool = True
    pause: Pause
    stopped: int = 0


class ResumeReply(Reply):
    """`resumed` is false when there was no such pause; `pauses` are those that are left."""

    ok: bool = True
    resumed: bool
    pauses: list[Pause]


class PausePage(Reply):
    ok: bool = True
    pauses: list[Pause]
    count: int
