"""What all routes of the hermes dialect share: how they fail, and how they name a session."""

from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Query

from clawdforge.http.routing import AppRoute
from clawdforge.wire.error_body import ErrorBody

SessionId: TypeAlias = Annotated[str, Query(min_length=1, max_length=4096)]
StreamId: TypeAlias = Annotated[str, Query(min_length=1, max_length=8192)]
ERRORS: Final[dict[int | str, dict[str, Any]]] = {"default": {"model": ErrorBody}}


class HermesRoute(AppRoute):
    """A route whose callers expect 400 for a body that is wrong, and 409 from a session that has ended."""

    dialect = "hermes"


def router(prefix: str) -> APIRouter:
    return APIRouter(prefix=prefix, route_class=HermesRoute, tags=["hermes dialect"], responses=ERRORS)
