"""Cookies and codes by a clock that the test moves: good up to their end, and not a moment longer."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from clawdforge.core.callbacks import CallbackTokens
from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.principal import Principal
from clawdforge.core.services.access import AccessService
from clawdforge.core.services.login_codes import CODE_SECS, MOST_CODES
from clawdforge.core.services.logins import LOGIN_SECS, OPERATOR_SECS, LoginService
from clawdforge.stores.sqlite.store import SqliteStore
from clawdforge.wire.admin import CreateToken
from clawdforge.wire.errors import Unauthenticated
from tests.unit.test_membership import SharedStore


@dataclass
class HandClock(SystemClock):
    at: int = 1_800_000_000 * SECOND

    def now(self) -> int:
        return self.at

    def steady(self) -> int:
        return self.at


@dataclass
class Desk:
    clock: HandClock
    access: AccessService
    logins: LoginService
    principal: Principal

    async def is_good(self, cookie: str, *, is_operators: bool = False) -> bool:
        try:
            return bool(await self.logins.authenticate(cookie, is_operators=is_operators))
        except Unauthenticated:
            return False

    async def works(self, code: str) -> bool:
        try:
            return (await self.logins.use_code(code)).app == "a"
        except Unauthenticated:
            return False


@pytest.fixture(params=[SqliteStore, SharedStore], ids=["alone", "shared"])
async def desk(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    """Codes are in memory where there is one node, and in the store where there may be several."""
    clock = HandClock()
    store = await request.param.open(tmp_path / "data", clock)
    access = AccessService(store, clock, "the operator's", CallbackTokens(""))
    token, _ = await access.create_token(CreateToken(app_name="a"))
    yield Desk(
        clock,
        access,
        LoginService(store, clock, access, "the operator's"),
        await access.authenticate(token),
    )
    await store.close()


@pytest.mark.parametrize(("admin", "seconds"), [(False, LOGIN_SECS), (True, OPERATOR_SECS)])
async def test_a_cookie_ends_on_time(desk: Desk, admin: bool, seconds: int) -> None:
    principal = Principal(app="", admin=True) if admin else desk.principal
    cookie, told = await desk.logins.log_in(principal)
    assert told == seconds
    found = await desk.logins.authenticate(cookie, is_operators=admin)
    assert await desk.access.seconds_left(found) == seconds, "and a stream that it opened with it"
    desk.clock.at += (seconds - 1) * SECOND
    assert await desk.is_good(cookie, is_operators=admin)
    desk.clock.at += SECOND
    assert not await desk.is_good(cookie, is_operators=admin)


@pytest.mark.parametrize(("more", "works"), [(-1, True), (0, False), (1, False)])
async def test_a_code_lasts_a_minute(desk: Desk, more: int, works: bool) -> None:
    code, ends_at = await desk.logins.make_code(desk.principal)
    assert ends_at == desk.clock.at + CODE_SECS * SECOND
    desk.clock.at += (CODE_SECS + more) * SECOND
    assert await desk.works(code) is works
    assert not await desk.works(code)


async def test_so_many_codes_wait_and_the_oldest_make_room(desk: Desk) -> None:
    codes = []
    for _ in range(MOST_CODES + 1):
        desk.clock.at += 1
        codes.append((await desk.logins.make_code(desk.principal))[0])
    extra = codes.pop()
    assert [await desk.works(code) for code in (codes[0], codes[1], codes[-1], extra)] == [False] + [True] * 3
    for _ in range(10):
        assert await desk.works((await desk.logins.make_code(desk.principal))[0])


@pytest.mark.parametrize("mangle", ["expiry", "holder", "digits", "app", "short"])
async def test_a_changed_cookie_is_no_cookie(desk: Desk, mangle: str) -> None:
    cookie, _ = await desk.logins.log_in(desk.principal)
    parts = cookie.split(".", 4)
    changed = {
        "expiry": [parts[0], str(int(parts[1]) + 1), *parts[2:]],
        "holder": ["x", *parts[1:]],
        "digits": [parts[0], "9" * 5000, *parts[2:]],
        "app": [*parts[:4], "b"],
        "short": parts[:4],
    }[mangle]
    assert await desk.is_good(cookie)
    assert not await desk.is_good(".".join(changed))
    assert not await desk.is_good(cookie, is_operators=True)


async def test_a_stream_of_a_login_that_ended_meanwhile_is_over_before_it_begins(desk: Desk) -> None:
    """Between the check of the cookie and the stream's first moment the logins may be ended."""
    cookie, _ = await desk.logins.log_in(desk.principal)
    found = await desk.logins.authenticate(cookie, is_operators=False)
    await desk.logins.end_all(desk.principal)
    with desk.access.watch(found) as ended:
        left = await desk.access.seconds_left(found)
        assert left is not None
        assert left <= 0
        assert not ended.is_set()
        await desk.logins.end_all(desk.principal)
        assert ended.is_set()
    assert await desk.access.seconds_left(desk.principal) is None, "the token is good"
