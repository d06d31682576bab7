"""Calls a handler with what it takes from a request, as FastAPI would, but planned once for each route.

FastAPI goes through all that a handler takes with every request, and keeps stacks of what is to be closed
after it: a tenth of all that a short turn makes the event loop do. What it found out about a handler when its
route was made, and how it checks a value, is used as it is; so the failures are the same.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

FIXED: Final = (str, int, float, bool, Enum, tuple, type(None))
"""What may be given to one request after another, since nobody can change it."""


class Found(NamedTuple):
    values: dict[str, Any]
    errors: list[Any]


class Need(NamedTuple):
    """A dependency: a function whose result is an argument."""

    name: str
    call: Callable[..., Awaitable[Any]]
    arguments: "Arguments"


class Arguments:
    """Those of one function."""

    def __init__(self, dependant: Dependant, *, embeds: bool) -> None:
        """With `embeds` the body holds several arguments by their names, instead of being one."""
        self._embeds = embeds
        self._needs = [
            Need(one.name or "", one.call, Arguments(one, embeds=embeds))
            for one in dependant.dependencies
            if one.call is not None
        ]
        self._request = dependant.request_param_name
        self._ids = {field.name: field.alias for field in dependant.path_params if _is_any_text(field)}
        self._path = [field for field in dependant.path_params if field.name not in self._ids]
        self._query = dependant.query_params
        self._headers = dependant.header_params
        self._body = dependant.body_params
        self._without_query = _find_defaults(self._query)
        self._without_headers = _find_defaults(self._headers)
        self._header_names = frozenset(field.alias.lower().encode() for field in self._headers)

    async def collect(self, request: Request, body: Any) -> Found:
        """All of them by their names, and what is wrong with those that are missing."""
        values: dict[str, Any] = {}
        errors: list[Any] = []
        for name, call, arguments in self._needs:
            theirs, wrong = await arguments.collect(request, body)
            errors += wrong
            if not wrong:
                values[name] = await call(**theirs)
        for name, alias in self._ids.items():
            values[name] = request.path_params[alias]
        for fields, source in self._list_sources(request, values):
            more, wrong = request_params_to_args(fields, source)
            values.update(more)
            errors += wrong
        if self._body:
            more, wrong = await request_body_to_args(self._body, body, self._embeds)
            values.update(more)
            errors += wrong
        if self._request is not None:
            values[self._request] = request
        return Found(values, errors)

    def _list_sources(
        self, request: Request, values: dict[str, Any]
    ) -> list[tuple[Sequence[ModelField], Any]]:
        """What is to be looked at; where nothing was sent, the defaults are among the values already."""
        found: list[tuple[Sequence[ModelField], Any]] = []
        if self._path:
            found.append((self._path, request.path_params))
        if self._query:
            if self._without_query is None or request.scope["query_string"]:
                found.append((self._query, request.query_params))
            else:
                values.update(self._without_query)
        if self._headers:
            is_sent = any(name in self._header_names for name, _ in request.scope["headers"])
            if self._without_headers is None or is_sent:
                found.append((self._headers, request.headers))
            else:
                values.update(self._without_headers)
        return found


class Call:
    """A handler and its arguments."""

    def __init__(
        self, function: Callable[..., Awaitable[Response]], dependant: Dependant, *, embeds: bool
    ) -> None:
        self._function = function
        self._arguments = Arguments(dependant, embeds=embeds)

    async def __call__(self, request: Request, body: Any = None) -> Response:
        """`body` is what the request holds, parsed. Raises RequestValidationError."""
        values, errors = await self._arguments.collect(request, body)
        if errors:
            raise RequestValidationError(errors, body=body)
        return await self._function(**values)


def _is_any_text(field: ModelField) -> bool:
    return field.field_info.annotation is str and not field.field_info.metadata


def _find_defaults(fields: Sequence[ModelField]) -> dict[str, Any] | None:
    """What the arguments are where none of them was sent; None if that has to be looked at."""
    for field in fields:
        info = field.field_info
        if info.is_required() or info.validate_default or not isinstance(field.default, FIXED):
            return None
    return {field.name: field.default for field in fields}
