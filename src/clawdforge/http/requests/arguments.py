"""Calls a handler with what it takes from a request, as FastAPI would, but planned once for each route.

FastAPI goes through all that a handler takes with every request, and keeps stacks of what is to be closed
after it: a tenth of all that a short turn makes the event loop do. What is wrong with a value is said in the
same way, which is pydantic's.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from enum import Enum
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.http.head import head_of
from clawdforge.http.requests.parameters import NEEDED, Need, Parameter, Taken
from clawdforge.wire.base import Json

FIXED: Final = (str, int, float, bool, Enum, tuple, type(None))
"""What may be given to one request after another, since nobody can change it."""


class BadArguments(Exception):
    """A request does not bring what its route takes; `problems` as pydantic tells them."""

    def __init__(self, problems: Sequence[Json]) -> None:
        super().__init__(problems)
        self.problems = problems


class Found(NamedTuple):
    values: dict[str, Any]
    problems: list[Json]


class Arguments:
    """Those of one function."""

    def __init__(self, taken: Taken) -> None:
        self._known = [(need.name, need.find) for need in taken.needs if need.is_known]
        self._needs = [(need, Arguments(need.takes)) for need in taken.needs if not need.is_known]
        self._request = taken.request
        self._ids = {one.name: one.alias for one in taken.path if one.is_any_text}
        self._path = [one for one in taken.path if not one.is_any_text]
        self._query = taken.query
        self._headers = taken.headers
        self._body = taken.body
        self._without_query = _find_defaults(self._query)
        self._without_headers = _find_defaults(self._headers)
        self._header_names = frozenset(one.alias.lower().encode() for one in self._headers)

    async def collect(self, request: Request, body: Any) -> Found:
        """All of them by their names, and what is wrong with those that are missing."""
        values: dict[str, Any] = {}
        problems: list[Json] = []
        for name, find in self._known:
            values[name] = find(request)
        for need, arguments in self._needs:
            await _fill(need, arguments, request, body, values, problems)
        for name, alias in self._ids.items():
            values[name] = request.path_params[alias]
        for parameters, source in self._list_sources(request, values):
            for one in parameters:
                take(one, source.get(one.alias), (one.mark.place, one.alias), values, problems)
        if self._body is not None:
            check(self._body, body, ("body",), values, problems)
        if self._request is not None:
            values[self._request] = request
        return Found(values, problems)

    def _list_sources(
        self, request: Request, values: dict[str, Any]
    ) -> list[tuple[Sequence[Parameter], Mapping[str, Any]]]:
        """What is to be looked at; where nothing was sent, the defaults are among the values already."""
        found: list[tuple[Sequence[Parameter], Mapping[str, Any]]] = []
        if self._path:
            found.append((self._path, request.path_params))
        if self._query:
            if self._without_query is None or request.scope["query_string"]:
                found.append((self._query, request.query_params))
            else:
                values.update(self._without_query)
        if self._headers:
            is_silent = head_of(request.scope).is_without(self._header_names)
            if self._without_headers is None or not is_silent:
                found.append((self._headers, request.headers))
            else:
                values.update(self._without_headers)
        return found


class Call:
    """A handler and its arguments."""

    def __init__(self, function: Callable[..., Awaitable[Response]], taken: Taken) -> None:
        self._function = function
        self._arguments = Arguments(taken)

    async def __call__(self, request: Request, body: Any = None) -> Response:
        """`body` is what the request holds, parsed. Raises BadArguments."""
        values, problems = await self._arguments.collect(request, body)
        if problems:
            raise BadArguments(problems)
        return await self._function(**values)


async def _fill(
    need: Need,
    arguments: Arguments,
    request: Request,
    body: Any,
    values: dict[str, Any],
    problems: list[Json],
) -> None:
    theirs, wrong = await arguments.collect(request, body)
    problems += wrong
    if not wrong:
        values[need.name] = await need.find(**theirs)


def take(
    one: Parameter, said: str | None, where: tuple[str, ...], values: dict[str, Any], problems: list[Json]
) -> None:
    """Put what was said into `values`, or its default where nothing was."""
    if said is not None:
        check(one, said, where, values, problems)
    elif one.default is NEEDED:
        problems.append({"type": "missing", "loc": where, "msg": "Field required", "input": None})
    else:
        values[one.name] = one.default if isinstance(one.default, FIXED) else deepcopy(one.default)


def check(
    one: Parameter, value: Any, where: tuple[str, ...], values: dict[str, Any], problems: list[Json]
) -> None:
    """Put a value into `values` as its type has it, or what is wrong with it into `problems`."""
    try:
        values[one.name] = one.adapter.validate_python(value, from_attributes=True)
    except ValidationError as error:
        problems += [{**each, "loc": where + each["loc"]} for each in error.errors(include_url=False)]


def _find_defaults(parameters: Sequence[Parameter]) -> dict[str, Any] | None:
    """What the arguments are where none of them was sent; None if that has to be looked at."""
    if all(isinstance(one.default, FIXED) for one in parameters):
        return {one.name: one.default for one in parameters}
    return None
