"""The health that the hermes dialect tells while the store is away."""

from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from starlette.requests import Request

from clawdforge.core.services.all import Services
from clawdforge.http.dialects.hermes.routers import alive
from clawdforge.wire.errors import ForgeAPIError, ServerBusy, StoreUnavailable


@pytest.mark.parametrize("problem", [StoreUnavailable, ServerBusy])
@pytest.mark.parametrize("deep", [False, True])
async def test_a_store_that_is_away_does_not_fail_it(problem: type[ForgeAPIError], deep: bool) -> None:
    async def authenticate(_: str) -> Any:
        raise problem

    health = SimpleNamespace(running_turns=1, uptime_secs=2.0, now=3)
    core: Any = SimpleNamespace(access=SimpleNamespace(authenticate=authenticate), health=health)
    scope = {
        "type": "http",
        "method": "GET",
        "app": SimpleNamespace(state=SimpleNamespace(services=core)),
        "route": SimpleNamespace(path_format="/health"),
        "headers": [(b"authorization", b"Bearer cf_x")],
    }
    reply = await alive(Request(scope), cast(Services, core), deep)
    assert reply.status_code == 200
    assert orjson.loads(reply.body)["status"] == "ok"
