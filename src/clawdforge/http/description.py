"""Routes in FastAPI's words, from which it makes the description of the API.

It is imported only for that, and only when somebody asks: no request is answered by it.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from types import MappingProxyType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import fastapi
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from clawdforge.http.openapi import describe
from clawdforge.http.requests.marks import Depends, Header, Mark, Path, Query
from clawdforge.http.requests.models import build_all
from clawdforge.http.routing import OpenRoute
from clawdforge.wire.base import Json

FAILURES: Final = {"default": {"description": "a failure"}}
PARAMETERS: Final = MappingProxyType({Path: fastapi.Path, Query: fastapi.Query, Header: fastapi.Header})


def describe_all(title: str, version: str, table: Iterable[OpenRoute]) -> Json:
    """Every route that is not kept out of it."""
    build_all()
    told = [route for route in table if route.about.get("include_in_schema", True)]
    document = get_openapi(title=title, version=version, routes=[describe_route(route) for route in told])
    return describe(document, table)


def describe_route(route: OpenRoute) -> APIRoute:
    """It as FastAPI knows it.

    FastAPI does not describe failures (`openapi.py`): with a model for them it would build that model anew
    for every route.
    """
    about = {**route.about, "responses": {**FAILURES, **(route.about.get("responses") or {})}}
    return APIRoute(route.path, _translate(route.endpoint), methods=list(route.methods), **about)


def _translate(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A function that takes the same, as FastAPI would have it said. Nobody calls it."""
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    told = [one.replace(annotation=_annotate(hints[name])) for name, one in signature.parameters.items()]

    @wraps(function)
    async def stand_in(**_given: Any) -> Any:
        raise NotImplementedError

    ended = signature.replace(parameters=told, return_annotation=hints.get("return", signature.empty))
    stand_in.__signature__ = ended  # type: ignore[attr-defined]  # where `inspect` looks first
    return stand_in


def _annotate(hint: Any) -> Any:
    if get_origin(hint) is not Annotated:
        return hint
    kind, *words = get_args(hint)
    return Annotated[(kind, *map(_say, words))]


def _say(word: Any) -> Any:
    if isinstance(word, Depends):
        return fastapi.Depends(_translate(word.find))
    if not isinstance(word, Mark):
        return word
    named = {} if word.alias is None else {"alias": word.alias}
    said: Callable[..., Any] = PARAMETERS.get(type(word), fastapi.Body)
    return said(**named, **word.limits)
