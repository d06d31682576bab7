"""The way past the typed methods: any request with this client's token, retries and pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clawdforge.client._calls import Call
from clawdforge.client._sync.transport import Transport

if TYPE_CHECKING:
    import httpx2


class Raw:
    """`forge.raw`: answers are httpx2 responses, whatever their status; nothing is raised for it."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """`path` begins with a slash. A POST is retried only with an `Idempotency-Key` among `headers`."""
        call = Call(method.upper(), path, bytes, dict(params or {}), json, dict(headers or {}))
        return self._http.send(call)

    def get(self, path: str, *, params: Mapping[str, str] | None = None) -> httpx2.Response:
        return self.request("GET", path, params=params)

    def post(
        self, path: str, *, json: Any = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        return self.request("POST", path, json=json, headers=headers)

    def put(self, path: str, *, json: Any = None) -> httpx2.Response:
        return self.request("PUT", path, json=json)

    def patch(self, path: str, *, json: Any = None) -> httpx2.Response:
        return self.request("PATCH", path, json=json)

    def delete(self, path: str) -> httpx2.Response:
        return self.request("DELETE", path)
