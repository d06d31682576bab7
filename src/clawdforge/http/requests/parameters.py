"""Finds out what a handler takes: which arguments, where each comes from, and how its value is checked."""

import inspect
import re
from collections.abc import Callable, Iterable
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import Field, TypeAdapter
from starlette.requests import Request

from clawdforge.http.requests.marks import Body, Depends, Header, Mark, Path, Query

NEEDED: Final = object()
"""Stands for the default of an argument that has none."""
IN_PATH: Final = re.compile(r"{(\w+)")
PLAIN: Final = (str, int, float, bool, Enum, NoneType)
"""What a path, a query or a header can hold. Of several by one name the last one counts."""


class Parameter(NamedTuple):
    """An argument that a request brings, and how it is called there."""

    name: str
    alias: str
    mark: Mark
    default: Any
    adapter: TypeAdapter[Any]
    is_any_text: bool
    """Whether there is nothing to check: a text is one already."""


class Need(NamedTuple):
    """An argument that a function finds."""

    name: str
    find: Callable[..., Any]
    takes: "Taken"

    @property
    def is_known(self) -> bool:
        """Whether it takes nothing but the request, and waits for nothing."""
        nothing = Taken([], [], [], None, [], self.takes.request)
        return self.takes == nothing and not inspect.iscoroutinefunction(self.find)


class Taken(NamedTuple):
    """All that a function takes; `request` is the name of the argument that is the request itself."""

    path: list[Parameter]
    query: list[Parameter]
    headers: list[Parameter]
    body: Parameter | None
    needs: list[Need]
    request: str | None

    def list_queries(self) -> frozenset[str]:
        """The names of all query parameters, also of what its dependencies take."""
        own = {parameter.alias for parameter in self.query}
        return frozenset(own.union(*(need.takes.list_queries() for need in self.needs)))


def find_taken(function: Callable[..., Any], path: str) -> Taken:
    """What a handler takes from requests to a route's path."""
    in_path = frozenset(IN_PATH.findall(path))
    hints = get_type_hints(function, include_extras=True)
    needs: list[Need] = []
    found: list[Parameter] = []
    request = None
    for name, one in inspect.signature(function).parameters.items():
        kind, words = _split(hints[name])
        depends = next((word for word in words if isinstance(word, Depends)), None)
        if depends is not None:
            needs.append(Need(name, depends.find, find_taken(depends.find, path)))
        elif isinstance(kind, type) and issubclass(kind, Request):
            request = name
        else:
            found.append(_read(name, kind, words, one.default, is_in_path=name in in_path))
    by_place = {
        kind: [one for one in found if isinstance(one.mark, kind)] for kind in (Path, Query, Header, Body)
    }
    if len(by_place[Body]) > 1:
        raise TypeError(f"{function.__name__} takes more than one body")
    body = by_place[Body][0] if by_place[Body] else None
    return Taken(by_place[Path], by_place[Query], by_place[Header], body, needs, request)


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type, and what is said of it."""
    if get_origin(hint) is not Annotated:
        return hint, ()
    kind, *words = get_args(hint)
    return kind, tuple(words)


def _read(name: str, kind: Any, words: Iterable[Any], default: Any, *, is_in_path: bool) -> Parameter:
    mark = next((word for word in words if isinstance(word, Mark)), None)
    others = [word for word in words if not isinstance(word, Mark)]
    if mark is None:
        mark = Path() if is_in_path else Query() if _is_plain(kind) else Body()
    if not isinstance(mark, Body) and not _is_plain(kind):
        raise TypeError(f"{name} cannot come from a {mark.place}: it is no single value")
    if mark.limits:
        others.append(Field(**mark.limits))
    hidden = name.replace("_", "-") if isinstance(mark, Header) else name
    return Parameter(
        name,
        mark.alias or hidden,
        mark,
        NEEDED if default is inspect.Parameter.empty else default,
        TypeAdapter(Annotated[(kind, *others)] if others else kind),
        kind is str and not others,
    )


def _is_plain(kind: Any) -> bool:
    if get_origin(kind) is Annotated:
        return _is_plain(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return all(map(_is_plain, get_args(kind)))
    return get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, PLAIN))
