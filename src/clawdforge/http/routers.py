"""Collects the routes of one kind, in their order."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from clawdforge.http.routing import OpenRoute

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Router:
    """`router.get("/path", response_model=Reply)(handler)`; what is said of it is for its description."""

    def __init__(
        self,
        kind: type[OpenRoute],
        *,
        prefix: str = "",
        tags: Sequence[str] = (),
        include_in_schema: bool = True,
    ) -> None:
        self.routes: list[OpenRoute] = []
        self._kind = kind
        self._prefix = prefix
        self._about = {"tags": list(tags), "include_in_schema": include_in_schema}

    def add(self, method: str, path: str, endpoint: Callable[..., Any], **about: Any) -> None:
        self.routes.append(self._kind(method, self._prefix + path, endpoint, **{**self._about, **about}))

    def get(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._take("GET", path, about)

    def post(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._take("POST", path, about)

    def put(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._take("PUT", path, about)

    def patch(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._take("PATCH", path, about)

    def delete(self, path: str, **about: Any) -> Callable[[Endpoint], Endpoint]:
        return self._take("DELETE", path, about)

    def _take(self, method: str, path: str, about: dict[str, Any]) -> Callable[[Endpoint], Endpoint]:
        def add(endpoint: Endpoint) -> Endpoint:
            self.add(method, path, endpoint, **about)
            return endpoint

        return add
