"""One status for every code, and one body for every failure."""

import inspect

import orjson
import pytest

from clawdforge.core import errors as core_errors
from clawdforge.core.errors import ForgeError, LimitExceeded, SessionClosed, SessionNotFound, Unauthenticated
from clawdforge.http import errors as http_errors
from clawdforge.http.errors import OVERRIDES, STATUS, error_response
from clawdforge.wire.error import ErrorCode


def _classes() -> list[type[ForgeError]]:
    found = [*vars(core_errors).values(), *vars(http_errors).values()]
    return [item for item in found if inspect.isclass(item) and issubclass(item, ForgeError)]


def test_every_code_has_exactly_one_status_that_is_a_failure() -> None:
    assert set(STATUS) == set(ErrorCode)
    assert all(400 <= status <= 599 for status in STATUS.values())
    for override in OVERRIDES.values():
        assert all(STATUS[code] != status for code, status in override.items())


def test_every_code_is_raised_by_some_class() -> None:
    assert {kind.code for kind in _classes()} == set(ErrorCode)


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__name__)
def test_every_failure_has_the_one_shape(kind: type[ForgeError]) -> None:
    response = error_response(kind())
    body = orjson.loads(response.body)
    assert set(body) == {"ok", "error", "detail", "code"}
    assert body["ok"] is False
    assert body["error"] == body["detail"] != ""
    assert body["code"] == kind.code.value
    assert response.status_code == STATUS[kind.code]


def test_extra_keys_travel_beside_the_four() -> None:
    body = orjson.loads(error_response(ForgeError("no", stderr="tail", duration_ms=3)).body)
    assert (body["stderr"], body["duration_ms"], body["error"]) == ("tail", 3, "no")


def test_a_closed_session_is_410_on_forge_and_409_on_the_api_dialects() -> None:
    """X-06: the code follows the path called."""
    assert error_response(SessionClosed()).status_code == 410
    assert error_response(SessionClosed(), "deepagent").status_code == 409
    assert "ended" in orjson.loads(error_response(SessionClosed(), "deepagent").body)["detail"]


def test_retry_after_is_whole_seconds_and_at_least_one() -> None:
    assert error_response(LimitExceeded(retry_after=0.2)).headers["retry-after"] == "1"
    assert error_response(LimitExceeded(retry_after=2.1)).headers["retry-after"] == "3"
    assert "retry-after" not in error_response(SessionNotFound()).headers


def test_a_401_names_the_scheme() -> None:
    assert error_response(Unauthenticated()).headers["www-authenticate"] == "Bearer"
