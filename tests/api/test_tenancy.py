"""Another app's id is an unknown id, and every bad credential is the same, on every route there is.

The routes are taken from the server's own document, so that a new one is covered without being named.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.api.harness import ADMIN_TOKEN, App, Server, until

UNKNOWN = {
    "unknown": "5b0f2a0e-0000-4000-8000-000000000000",
    "malformed": "nonexistent_zzz",
    "nul": "a%00b",
    "long": "x" * 4000,
    "odd": "%F0%9F%A6%80%20%27%3B--",
    "dots": "..%20",
}
REPEATABLE = {"/api/session/delete", "/api/approval/pending", "/api/approval/respond"}
"""Where a session that is not there is no failure: it is deleted already, and nothing waits in it."""


@dataclass(frozen=True)
class Operation:
    """A method and path of the server, with a body that would do."""

    method: str
    path: str
    body: Any
    query: dict[str, str]
    secured: bool

    def call(self, client: httpx2.Client, session_id: str) -> httpx2.Response:
        path = self.path.replace("{session_id}", session_id).replace("{turn_index}", "1")
        for name in ("permission_id", "token_id", "file_token", "name", "app_name"):
            path = path.replace("{" + name + "}", "some")
        query = {name: session_id if name == "session_id" else value for name, value in self.query.items()}
        body = self.body
        if isinstance(body, dict) and "session_id" in body:
            body = {**body, "session_id": session_id}
        return client.request(self.method, path, json=body, params=query or None)

    @property
    def is_for_links(self) -> bool:
        """Whether the token of a share link opens it: every other one is as good as unknown there."""
        return self.path == "/shared" or self.path.startswith("/shared/")

    @property
    def names_a_session(self) -> bool:
        """In its path, its query or its body."""
        in_body = isinstance(self.body, dict) and "session_id" in self.body
        return "{session_id}" in self.path or "session_id" in self.query or in_body


def sample(schema: Any, document: Any) -> Any:
    """The smallest value that a schema takes."""
    if "$ref" in schema:
        return sample(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], document)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return sample(schema[choice][0], document)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        needed = schema.get("required", [])
        return {name: sample(schema["properties"][name], document) for name in needed}
    simple = {"string": "x" * max(1, schema.get("minLength", 1)), "array": [], "boolean": False}
    return simple.get(kind, schema.get("minimum", 1))


def operations(document: Any) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            body = sample(content["schema"], document) if content else None
            query = {
                parameter["name"]: str(sample(parameter["schema"], document))
                for parameter in operation.get("parameters", [])
                if parameter["in"] == "query" and parameter.get("required")
            }
            yield Operation(method.upper(), path, body, query, bool(operation.get("security")))


@pytest.fixture(scope="session")
def table(server: Server) -> list[Operation]:
    return list(operations(server.client().get("/openapi.json").json()))


def test_the_walk_covers_the_routes(table: list[Operation]) -> None:
    found = {(operation.method, operation.path) for operation in table}
    assert ("POST", "/sessions/{session_id}/turn") in found
    assert len([path for _, path in found if "{session_id}" in path]) >= 12
    open_to_all = [operation.path for operation in table if not operation.secured]
    login = [f"/api/auth/{word}" for word in ("login", "logout", "status")]
    assert open_to_all == ["/healthz", "/readyz", "/login", "/login", "/logout", "/health", *login]


def test_a_foreign_id_answers_byte_for_byte_like_an_unknown_one(
    table: list[Operation], app: App, other: App
) -> None:
    """S0-55, S0-56, X-19."""
    foreign = app.session()
    app.turn(foreign, "echo mine")
    head = app.http.get(f"/sessions/{foreign}").json()["head"]
    walked = 0
    for operation in table:
        if not operation.names_a_session:
            continue
        walked += 1
        expected = operation.call(other.http, UNKNOWN["unknown"])
        status, code = (200, None) if operation.path in REPEATABLE else (404, "session_not_found")
        assert (expected.status_code, expected.json().get("code")) == (status, code), operation
        for name, session_id in {"foreign": foreign, **UNKNOWN}.items():
            reply = operation.call(other.http, session_id)
            assert (reply.status_code, reply.content) == (status, expected.content), (name, operation)
            same = {"x-request-id", "date"}
            assert {n: v for n, v in reply.headers.items() if n not in same} == {
                n: v for n, v in expected.headers.items() if n not in same
            }
    assert walked >= 12
    assert app.http.get(f"/sessions/{foreign}").json()["head"] == head


def test_missing_wrong_revoked_and_expired_tokens_are_one_401(table: list[Operation], server: Server) -> None:
    """S0-12."""
    revoked, expired = server.app(), server.app(expires_in_secs=1)
    session_id = revoked.session()
    server.admin().delete(f"/admin/tokens/{revoked.token_id}")
    until(lambda: expired.http.get("/sessions").status_code == 401, "the token's expiry", 5)
    clients = [
        server.client(),
        server.client("cf_wrong"),
        revoked.http,
        expired.http,
        server.client(Authorization="Basic Y2Y6eA=="),
        server.client(Authorization="Bearer"),
        server.client(Authorization=f"Bearer  {revoked.token}x"),
        server.client(Authorization=""),
    ]
    for operation in table:
        if not operation.secured:
            continue
        replies = [operation.call(client, session_id) for client in clients]
        assert len({reply.content for reply in replies}) == 1, operation
        assert {reply.status_code for reply in replies} == {404 if operation.is_for_links else 401}, operation
        if operation.is_for_links:
            continue
        assert {reply.headers["www-authenticate"] for reply in replies} == {"Bearer"}


def test_without_a_token_nothing_about_the_body_is_told(table: list[Operation], server: Server) -> None:
    client = server.client()
    for operation in table:
        if operation.secured and operation.method in ("POST", "PATCH", "PUT", "DELETE"):
            for body, kind in (
                (b"{", "application/json"),
                (b"x=1", "text/plain"),
                (b"[1]", "application/json"),
            ):
                path = operation.path.replace("{", "").replace("}", "")
                reply = client.request(operation.method, path, content=body, headers={"Content-Type": kind})
                assert reply.status_code == 401, (operation, body)


def test_apps_and_the_operator_do_not_stand_in_for_each_other(
    table: list[Operation], server: Server, app: App
) -> None:
    admin = server.client(ADMIN_TOKEN)
    for operation in table:
        if operation.secured:
            operators = operation.path.startswith("/admin/") or operation.path == "/metrics"
            wrong = app.http if operators else admin
            reply = operation.call(wrong, UNKNOWN["unknown"])
            refusal = (404, "share_not_found") if operation.is_for_links else (403, "forbidden")
            assert (reply.status_code, reply.json()["code"]) == refusal, operation


def test_tokens_are_listed_without_their_secret(server: Server, app: App) -> None:
    reply = server.admin().get("/admin/tokens", params={"app_name": app.name})
    rows = reply.json()["tokens"]
    assert [row["token_id"] for row in rows] == [app.token_id]
    assert app.token not in reply.text
    assert app.token.startswith("cf_")
    assert server.admin().delete("/admin/tokens/nope").json()["code"] == "token_not_found"
    assert app.token.encode() not in server.database.read_bytes()
