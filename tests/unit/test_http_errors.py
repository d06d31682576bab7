"""One status for every code, and one body for every failure."""

import inspect

import orjson
import pytest

from clawdforge.http.errors import OVERRIDES, error_response
from clawdforge.wire import errors
from clawdforge.wire.error_codes import ErrorCode
from clawdforge.wire.errors import (
    BY_CODE,
    ForgeAPIError,
    LimitExceeded,
    SessionClosed,
    SessionNotFound,
    Unauthenticated,
)


def _classes() -> list[type[ForgeAPIError]]:
    found = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    return [kind for kind in found if issubclass(kind, ForgeAPIError) and kind.code in vars(kind).values()]


def test_every_code_has_exactly_one_status_that_is_a_failure() -> None:
    assert set(BY_CODE) == set(ErrorCode)
    assert all(400 <= kind.status <= 599 for kind in BY_CODE.values())
    for override in OVERRIDES.values():
        assert all(BY_CODE[code].status != status for code, status in override.items())


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__name__)
def test_every_failure_has_the_one_shape(kind: type[ForgeAPIError]) -> None:
    response = error_response(kind())
    body = orjson.loads(response.body)
    assert set(body) == {"ok", "error", "detail", "code"}
    assert body["ok"] is False
    assert body["error"] == body["detail"] != ""
    assert body["code"] == kind.code
    assert response.status_code == kind.status


def test_extra_keys_travel_beside_the_four() -> None:
    body = orjson.loads(error_response(ForgeAPIError("no", stderr="tail", duration_ms=3)).body)
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
