"""What a handler takes is found and checked as FastAPI does it, in whose words the API is described."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, cast, get_args

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import Response

from clawdforge.core.services.all import Services
from clawdforge.http.app import ForgeAPI, build_asgi
from clawdforge.http.description import describe_route
from clawdforge.http.requests.arguments import Arguments, BadArguments, Call, check, take
from clawdforge.http.requests.marks import Query
from clawdforge.http.requests.parameters import Parameter, Taken, find_taken
from clawdforge.http.routing import OpenRoute
from clawdforge.http.settings import HttpSettings
from clawdforge.settings.kinds import Face
from clawdforge.wire.base import Json

WORDS = (
    "",
    "0",
    "1",
    "-1",
    "7.5",
    "true",
    "no",
    "x",
    "x" * 600,
    "x" * 9000,
    "a b",
    "NaN",
    "9" * 30,
    "\u00e9",
    "null",
)
BODIES: tuple[Any, ...] = (
    *({}, [], None, 5, "text", True, {"prompt": "hi"}, {"prompt": 5, "agent": []}, {"title": "x" * 5000}),
    *({"session_id": "a", "message": "b"}, {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
    {"name": "n", "agent": "claude", "url": "https://example.org", "events": ["turn.ended"], "unknown": 1},
)


def all_routes() -> list[OpenRoute]:
    asgi: Any = build_asgi(cast(Services, None), HttpSettings(stopping=asyncio.Event(), faces=get_args(Face)))
    while not isinstance(asgi, ForgeAPI):
        asgi = asgi._asgi
    return list(asgi.state.table)


ROUTES = {f"{min(route.methods)} {route.path}": route for route in all_routes()}


@pytest.fixture(scope="module", params=[*ROUTES.values()], ids=[*ROUTES])
def both(request: pytest.FixtureRequest) -> tuple[Taken, Dependant]:
    """What a route takes, as we and as FastAPI find it."""
    return request.param.plan(), describe_route(request.param).dependant


def shapes(found: Taken | Dependant) -> Any:
    if isinstance(found, Taken):
        places = (found.path, found.query, found.headers, [] if found.body is None else [found.body])
        needs = [(need.name, shapes(need.takes)) for need in found.needs]
        return [[(one.name, one.alias) for one in place] for place in places], needs, found.request
    fields = (found.path_params, found.query_params, found.header_params, found.body_params)
    needs = [(str(one.name), shapes(one)) for one in found.dependencies]
    return [[(one.name, one.alias) for one in place] for place in fields], needs, found.request_param_name


def test_it_finds_the_same_arguments(both: tuple[Taken, Dependant]) -> None:
    ours, theirs = both
    assert shapes(ours) == shapes(theirs)


def taken_from(parameters: list[Parameter], source: Any) -> tuple[Json, list[Json]]:
    values: Json = {}
    problems: list[Json] = []
    for one in parameters:
        take(one, source.get(one.alias), (one.mark.place, one.alias), values, problems)
    return values, problems


def test_it_finds_the_same_values_and_the_same_faults(both: tuple[Taken, Dependant]) -> None:
    ours, theirs = both
    places = (
        (ours.path, theirs.path_params, dict),
        (ours.query, theirs.query_params, QueryParams),
        (ours.headers, theirs.header_params, Headers),
    )
    for parameters, fields, kind in places:
        for word in WORDS:
            source = cast("Callable[[Json], Any]", kind)({one.alias: word for one in parameters})
            assert taken_from(parameters, source) == request_params_to_args(fields, source), word
        assert taken_from(parameters, {}) == request_params_to_args(fields, {})


async def test_it_finds_the_same_bodies(both: tuple[Taken, Dependant]) -> None:
    ours, theirs = both
    if ours.body is None:
        return
    for body in BODIES:
        values: Json = {}
        problems: list[Json] = []
        check(ours.body, body, ("body",), values, problems)
        expected, faults = await request_body_to_args(theirs.body_params, body, False)
        assert [{**one, "ctx": str(one.get("ctx"))} for one in problems] == [
            {**one, "ctx": str(one.get("ctx"))}
            for one in faults  # a fault of ours holds an exception
        ]
        assert problems or values == expected


def test_what_one_request_can_change_is_not_given_to_the_next() -> None:
    """A default that is a list is a new one each time."""

    async def handler(words: Annotated[str | None, Query()] = None) -> Response:
        raise NotImplementedError

    taken = find_taken(handler, "/")
    shared: list[int] = []
    one = taken.query[0]._replace(default=shared)
    values: Json = {}
    take(one, None, ("query", "words"), values, [])
    assert values["words"] == []
    assert values["words"] is not shared
    assert Arguments(taken._replace(query=[one]))._without_query is None


def test_two_bodies_are_refused_when_a_route_is_planned() -> None:
    async def handler(one: dict[str, int], other: dict[str, int]) -> Response:
        raise NotImplementedError

    with pytest.raises(TypeError, match="more than one body"):
        find_taken(handler, "/")


def test_several_values_by_one_name_are_refused_when_a_route_is_planned() -> None:
    async def handler(words: Annotated[list[str], Query()]) -> Response:
        raise NotImplementedError

    with pytest.raises(TypeError, match="no single value"):
        find_taken(handler, "/")


async def test_a_handler_is_not_called_with_what_is_wrong() -> None:
    async def handler(after: int, at: Annotated[str, Query(max_length=1)]) -> Response:
        raise NotImplementedError

    call = Call(handler, find_taken(handler, "/"))
    scope = {"type": "http", "method": "GET", "query_string": b"at=xx", "headers": []}
    with pytest.raises(BadArguments) as caught:
        await call(Request(scope))
    assert [(one["type"], one["loc"]) for one in caught.value.problems] == [
        ("missing", ("query", "after")),
        ("string_too_long", ("query", "at")),
    ]
