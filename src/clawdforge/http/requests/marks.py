"""What a handler says of its arguments, beside their types: where they come from, and what they may be.

    async def read(core: Core, session_id: str, limit: Annotated[int, Query(ge=1)] = 200) -> Response: ...

The words are FastAPI's, which makes the description of the API from them (`description.py`). A server does
without it until somebody asks for that: to import it takes a fifth of what a start may.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

Place: TypeAlias = Literal["path", "query", "header", "body"]


class Mark:
    """Where an argument comes from. `alias` is its name there, and `limits` are those that pydantic knows."""

    place: ClassVar[Place]

    def __init__(self, *, alias: str | None = None, **limits: Any) -> None:
        self.alias = alias
        self.limits = limits


class Path(Mark):
    place = "path"


class Query(Mark):
    place = "query"


class Header(Mark):
    place = "header"


class Body(Mark):
    place = "body"


class Depends:
    """An argument that a function finds, which may take arguments as a handler does.

    One that only looks at the request, and waits for nothing, need be no coroutine.
    """

    def __init__(self, find: Callable[..., Any]) -> None:
        self.find = find
