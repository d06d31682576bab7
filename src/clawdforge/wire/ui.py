"""What pages built with AG-UI or with Vercel's UI stream send: a conversation whose last message is new."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from clawdforge.wire.base import Json, Request

Id = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]


class AguiRun(Request):
    """Body of `POST /sessions/{id}/ag-ui`: AG-UI's RunAgentInput. The same `runId` is the same turn."""

    threadId: Id  # noqa: N815 - its name on the wire
    runId: Id  # noqa: N815
    messages: list[Json] = Field(min_length=1, max_length=100_000)
    tools: list[Any] | None = None


class UiChat(Request):
    """Body of `POST /sessions/{id}/ui`, as `useChat` sends it. The same last message is the same turn."""

    id: Id | None = None
    messages: list[Json] = Field(min_length=1, max_length=100_000)
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"
