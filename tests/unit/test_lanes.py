"""Requests begin one app after another; whose one is, is known by a credential that was good before."""

import asyncio
from unittest.mock import Mock

from starlette.types import Scope

from clawdforge.core.pacing.loop_turns import LoopTurns
from clawdforge.http.connections import lanes
from clawdforge.http.connections.connection import KEY, Connection
from clawdforge.http.connections.lanes import OPERATOR, STRANGERS, Lanes


def scope(*headers: tuple[bytes, bytes], is_unix: bool = False, is_gone: bool = False) -> Scope:
    connection = Mock(spec=Connection, is_unix=is_unix, is_gone=is_gone)
    return {"headers": [(b"host", b"localhost"), *headers], "state": {KEY: connection}}


def bearer(token: str) -> tuple[bytes, bytes]:
    return (b"authorization", f"Bearer {token}".encode())


def make() -> Lanes:
    return Lanes(Mock(loop_turns=LoopTurns()))


def test_a_credential_that_was_good_has_the_lane_of_its_app() -> None:
    found = make()
    assert found.lane_of(scope(bearer("one"))) == STRANGERS
    found.remember(scope(bearer("one")), "alpha")
    found.remember(scope((b"cookie", b"login=x")), "beta")
    assert found.lane_of(scope(bearer("one"))) == "alpha"
    assert found.lane_of(scope((b"cookie", b"login=x"))) == "beta"
    assert found.lane_of(scope(bearer("guessed"))) == STRANGERS
    assert found.lane_of(scope()) == STRANGERS
    assert found.lane_of(scope(is_unix=True)) == OPERATOR
    assert found.lane_of({"headers": []}) == STRANGERS


def test_only_so_many_are_remembered_and_the_oldest_is_forgotten() -> None:
    found = make()
    for number in range(lanes.MAX_KNOWN + 1):
        found.remember(scope(bearer(str(number))), "alpha")
    assert len(found._apps) == lanes.MAX_KNOWN
    assert found.lane_of(scope(bearer("0"))) == STRANGERS
    assert found.lane_of(scope(bearer(str(lanes.MAX_KNOWN)))) == "alpha"


async def test_a_known_app_does_not_wait_for_a_crowd_of_strangers() -> None:
    found = make()
    found.remember(scope(bearer("good")), "quiet")
    came: list[str] = []

    async def come(name: str, request: Scope) -> None:
        await found.enter(request)
        came.append(name)

    crowd = [come("stranger", scope(bearer(str(number)))) for number in range(500)]
    await asyncio.gather(*crowd, come("quiet", scope(bearer("good"))))
    assert came.index("quiet") < 10


async def test_a_request_whose_caller_is_gone_does_not_begin() -> None:
    found = make()
    assert await found.enter(scope())
    assert not await found.enter(scope(is_gone=True))
    assert await found.enter({"headers": []})


def test_another_cookie_each_time_leads_to_no_other_lane() -> None:
    found = make()
    found.remember(scope(bearer("one"), (b"cookie", b"x=1")), "alpha")
    assert found.lane_of(scope(bearer("one"), (b"cookie", b"x=2"))) == "alpha"
    assert found.lane_of(scope((b"cookie", b"y=3"), bearer("one"))) == "alpha"
    for number in range(100):
        found.remember(scope(bearer("one"), (b"cookie", f"x={number}".encode())), "alpha")
    assert len(found._apps) == 1
