"""Spare agents: the next session of a kind gets one, nobody else does, and nothing of them is left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from clawdforge.core.clock import SECOND, SystemClock
from clawdforge.core.models.rows import SessionQuery, SessionRow
from clawdforge.core.running.pool import Seat
from clawdforge.parts import Parts, open_parts
from clawdforge.wire.admin import Limits
from clawdforge.wire.base import Micros
from clawdforge.wire.errors import LimitExceeded, SessionNotFound
from clawdforge.wire.pauses import PauseRequest
from clawdforge.wire.session import CreateSession, PatchSession
from tests.unit.acp_bench import until
from tests.unit.supervised import APP, make_settings, say

OTHER = "other"


@asynccontextmanager
async def opened(tmp_path: Path, **settings: float) -> AsyncIterator[Parts]:
    async with open_parts(make_settings(tmp_path, **{"spare_agents": 1, **settings})) as parts:
        try:
            yield parts
        finally:
            await parts.supervisor.stop(0)


def seats(parts: Parts) -> dict[str, Seat]:
    return parts.supervisor._pool._seats


def spares(parts: Parts) -> list[Seat]:
    return [seat for seat in seats(parts).values() if seat.is_spare]


async def new(parts: Parts, app: str = APP, **request: object) -> SessionRow:
    return (await parts.services.sessions.create(app, CreateSession.model_validate(request))).row


async def wait_for_spare(parts: Parts) -> Seat:
    await until(lambda: any(seat.prepared is not None for seat in spares(parts)))
    return next(seat for seat in spares(parts) if seat.prepared is not None)


async def with_spare(parts: Parts) -> Seat:
    """Somebody has used a session, and an agent waits for the next."""
    await say(parts, (await new(parts)).session_id, "echo hi")
    return await wait_for_spare(parts)


async def test_the_next_session_gets_the_agent_that_waits_for_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        spare = await with_spare(parts)
        waiting = spare.agent
        session = await new(parts, title="mine", labels=["one"])
        assert session.session_id == spare.session_id
        assert (session.title, session.labels, session.deleted_at) == ("mine", ("one",), None)
        await say(parts, session.session_id, "write a.txt hello\necho hi")
        assert seats(parts)[session.session_id].agent is waiting
        assert (Path(session.cwd) / "a.txt").read_text() == "hello"
        events = [one.type for one in await parts.services.log.page(APP, session.session_id, 0, 100)]
        assert events[0] == "session.created"
        assert events.count("context.started") == 1
        assert (await wait_for_spare(parts)).session_id != session.session_id


async def test_a_spare_is_seen_by_nobody_until_it_is_a_session(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        spare = await with_spare(parts)
        listed, _ = await parts.services.sessions.list(APP, SessionQuery())
        assert spare.session_id not in [state.row.session_id for state in listed]
        assert await parts.services.sessions.count(APP) == 1
        with pytest.raises(SessionNotFound):
            await parts.services.sessions.get(APP, spare.session_id)


async def test_who_wants_another_kind_or_folder_or_is_another_app_does_not_get_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        await parts.services.apps.put(OTHER, None, None)
        spare = await with_spare(parts)
        folder = tmp_path / "work"
        folder.mkdir()
        for app, request in (
            (OTHER, {}),
            (APP, {"model": "large"}),
            (APP, {"cwd": str(folder)}),
        ):
            made = await new(parts, app, **request)
            assert made.session_id != spare.session_id, request
        assert spares(parts) == [spare]


async def test_an_agent_that_is_not_what_the_session_became_is_replaced(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        spare = await with_spare(parts)
        waiting = spare.agent
        session = await new(parts)
        assert session.session_id == spare.session_id
        patch = PatchSession(model="large")
        await parts.services.sessions.patch(APP, session.session_id, patch)
        await say(parts, session.session_id, "echo hi")
        assert waiting is not None
        assert not waiting.alive
        assert seats(parts)[session.session_id].agent is not waiting


async def test_the_home_of_a_spare_is_made_fit_for_another_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as parts:
        await with_spare(parts)
        session = await new(parts)
        await parts.services.sessions.patch(APP, session.session_id, PatchSession(agent="demo"))
        homes = parts.supervisor._boundary._homes
        prepare = AsyncMock(side_effect=homes.prepare)
        monkeypatch.setattr(homes, "prepare", prepare)
        await say(parts, session.session_id, "hello")
        prepared = [(call.args[0], call.args[1].name) for call in prepare.call_args_list]
        assert (session.session_id, "demo") in prepared


async def test_a_spare_that_is_taken_stays_awake_for_its_first_prompt(tmp_path: Path) -> None:
    async with opened(tmp_path, agent_idle_secs=60) as parts:
        spare = await with_spare(parts)
        spare.used_at -= 59
        session = await new(parts)
        assert session.session_id == spare.session_id
        parts.supervisor._pool.sleep_idle(asyncio.get_running_loop().time() + 2)
        assert session.session_id in seats(parts)


async def test_one_that_is_broken_off_takes_nothing_from_its_successor(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        session = await new(parts)
        found = parts.services.sessions._spares
        found.follow(session)
        (first,) = spares(parts)
        parts.supervisor._pool.retire_agent(first.session_id)
        found.follow(session)
        second = await wait_for_spare(parts)
        assert second is not first
        assert (await new(parts)).session_id == second.session_id


async def test_a_refused_session_leaves_the_spare_for_the_next(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        spare = await with_spare(parts)
        await parts.services.apps.put(APP, Limits(max_sessions=1), None)
        with pytest.raises(LimitExceeded):
            await new(parts)
        assert spares(parts) == [spare]
        await parts.services.apps.put(APP, Limits(max_sessions=10), None)
        assert (await new(parts)).session_id == spare.session_id


async def test_a_spare_makes_room_for_whoever_needs_it(tmp_path: Path) -> None:
    async with opened(tmp_path, max_live_agents=3) as parts:
        spare = await with_spare(parts)
        assert (await new(parts)).session_id == spare.session_id  # so that those below have no spare
        await say(parts, spare.session_id, "echo hi")
        third = await new(parts)
        await say(parts, third.session_id, "echo hi")
        assert len(seats(parts)) <= 3
        assert not spares(parts)


@pytest.mark.parametrize("is_ready", [True, False], ids=["ready", "starting"])
async def test_a_spare_goes_first_even_while_it_starts(tmp_path: Path, is_ready: bool) -> None:
    async with opened(tmp_path, max_live_agents=3) as parts:
        first = await new(parts)
        await say(parts, first.session_id, "echo hi")
        if is_ready:
            await wait_for_spare(parts)
        others = [await new(parts, model=name) for name in ("one", "two")]
        await asyncio.gather(*(say(parts, other.session_id, "echo hi") for other in others))
        assert first.session_id in seats(parts)  # which has the agent that was used least lately


async def test_there_are_no_more_than_the_setting_says(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        first = await with_spare(parts)
        other = await new(parts, model="large")
        await say(parts, other.session_id, "echo hi")
        await until(lambda: [seat for seat in spares(parts) if seat.prepared and seat is not first] != [])
        (second,) = spares(parts)
        assert second.prepared is not None
        assert second.prepared.launch.model == "large"


async def test_none_is_started_where_they_are_off_or_a_turn_failed(tmp_path: Path) -> None:
    async with opened(tmp_path, spare_agents=0) as parts:
        await say(parts, (await new(parts)).session_id, "echo hi")
        assert not spares(parts)


@pytest.mark.parametrize("pause", [{}, {"app_name": APP}, {"agent": "scripted"}], ids=str)
async def test_none_is_started_of_what_is_paused(tmp_path: Path, pause: dict[str, str]) -> None:
    async with opened(tmp_path) as parts:
        session = await new(parts)
        await parts.services.pauses.pause(PauseRequest.model_validate(pause))
        parts.services.sessions._spares.follow(session)
        assert spares(parts)
        await until(lambda: not spares(parts))
        assert not list((tmp_path / "data" / "homes").iterdir())
        workspaces = tmp_path / "data" / "workspaces"
        assert [path.name for path in workspaces.iterdir()] == [session.session_id]


async def test_what_nobody_used_in_time_is_swept_away(tmp_path: Path) -> None:
    async with opened(tmp_path, agent_idle_secs=1) as parts:
        spare = await with_spare(parts)
        folders = [tmp_path / "data" / kind / spare.session_id for kind in ("homes", "workspaces")]
        assert all(folder.is_dir() for folder in folders)
        sweeper = parts.services.sweeper
        await sweeper.sweep()
        assert all(folder.is_dir() for folder in folders)
        sweeper._clock = Later()
        await sweeper.sweep()
        assert not any(folder.exists() for folder in folders)
        assert spare.session_id not in seats(parts)
        assert (await new(parts)).session_id != spare.session_id


async def test_a_server_that_was_killed_leaves_no_session_behind(tmp_path: Path) -> None:
    async with opened(tmp_path) as parts:
        spare = await with_spare(parts)
    async with opened(tmp_path) as parts:
        session = await new(parts)
        assert session.session_id != spare.session_id
        assert await parts.services.sessions.count(APP) == 2
        await parts.recovery.note_folders()
        await parts.recovery.set_aside_unknown_folders()
        assert (tmp_path / "data" / "homes" / spare.session_id).is_dir()  # the sweeper's, in time


class Later(SystemClock):
    """A clock that is an hour ahead."""

    def now(self) -> Micros:
        return super().now() + 3600 * SECOND
