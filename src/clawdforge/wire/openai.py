"""The OpenAI dialect, `/v1/…`: what chat completions and responses send and get, as far as agents have it."""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints

from clawdforge.wire.base import Json, Reply, Request

MAX_ITEMS: Final = 100_000
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=257)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ChatMessage(Request):
    """One message of a conversation. `content` is text, or parts of type `text`."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Json] | None = None
    tool_calls: list[Any] | None = None
    function_call: Json | None = None


class StreamOptions(Request):
    include_usage: bool = False


class ChatRequest(Request):
    """Body of `POST /v1/chat/completions`. What only steers a model, such as `temperature`, is ignored."""

    model: ModelName
    stream: bool | None = False
    tools: list[Any] | None = None
    messages: list[ChatMessage] = Field(min_length=1, max_length=MAX_ITEMS)
    n: int | None = 1
    functions: list[Any] | None = None
    response_format: Json | None = None
    logprobs: bool | None = None
    audio: Json | None = None
    stream_options: StreamOptions | None = None


class Conversation(Request):
    id: Id


class ResponseRequest(Request):
    """Body of `POST /v1/responses`."""

    model: ModelName
    stream: bool | None = False
    tools: list[Any] | None = None
    input: str | Annotated[list[Json], Field(min_length=1, max_length=MAX_ITEMS)]
    instructions: str | None = None
    previous_response_id: Id | None = None
    conversation: Id | Conversation | None = None
    background: bool | None = None
    prompt: Json | None = None
    text: Json | None = None
    store: bool | None = True
    metadata: Json | None = None


class Model(Reply):
    """An agent by its name, or a persona as `persona/NAME`."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelPage(Reply):
    object: Literal["list"] = "list"
    data: list[Model]


class ChatCompletion(Reply):
    """`session_id` is the session that answered, which `X-Clawdforge-Session` names as well."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Json]
    usage: Json
    session_id: str


class ResponseObject(Reply):
    """`conversation` names the session that answered."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: str
    model: str
    output: list[Json]
    conversation: Json
    usage: Json | None = None
