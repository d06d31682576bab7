"""Every path takes the methods that its description names, refuses the others, and says which it takes."""

import re

import pytest

from tests.api.harness import App, Server

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.fixture(scope="module")
def described(server: Server) -> dict[str, set[str]]:
    """The methods of each path. HEAD comes with GET."""
    paths = server.client().get("/openapi.json").json()["paths"]
    found = {path: {method.upper() for method in paths[path]} & set(METHODS) for path in paths}
    return {path: methods | ({"HEAD"} if "GET" in methods else set()) for path, methods in found.items()}


def allowed(header: str) -> set[str]:
    return set(re.split(r",\s*", header))


def test_the_header_names_what_the_description_names(app: App, described: dict[str, set[str]]) -> None:
    wrong = {}
    for path, methods in described.items():
        reply = app.http.options(re.sub(r"{\w+}", "5d7fd1c4-6e46-4f0e-8b52-ba2ff4ac9a5f", path))
        if reply.status_code != 405 or allowed(reply.headers.get("allow", "")) != methods:
            wrong[path] = (reply.status_code, reply.headers.get("allow"), sorted(methods))
    assert wrong == {}


def test_a_path_that_is_spelled_out_is_no_id(app: App) -> None:
    for method in ("GET", "DELETE", "PATCH", "OPTIONS"):
        reply = app.http.request(method, "/sessions/import")
        assert (reply.status_code, reply.headers.get("allow")) == (405, "POST"), method
    assert app.http.post("/api/sessions/search").headers["allow"] == "GET, HEAD"
    assert app.http.post("/openapi.json").headers["allow"] == "GET, HEAD"
